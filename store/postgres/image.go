package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

var (
	_ store.Imager = (*Store)(nil)
	_ store.Image  = (*image)(nil)
)

// An image is a view from which everything can be read.
type image struct{ *view }

// Image implements store.Imager. Like a view it holds a connection and a snapshot.
func (s *Store) Image(ctx context.Context) (store.Image, error) {
	v, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	i := &image{v.(*view)}
	err = i.with(func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "set local statement_timeout = 0")
		return err
	})
	if err != nil {
		i.Close()
		return nil, s.told(ctx, err)
	}
	return i, nil
}

func (i *image) with(fn func(*pgx.Conn) error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.conn == nil {
		return store.ErrClosed
	}
	return fn(i.conn)
}

// Counters implements store.Image. Sum stays empty because it is specific to this driver.
func (i *image) Counters(ctx context.Context) (all []store.Counters, err error) {
	err = i.with(func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `select connection, name, live, dead, last from stream join heap on heap.number = heap
			where not erased and last > 0 order by octet_length(connection), connection, name`)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (n store.Counters, err error) {
			return n, r.Scan(&n.Connection, &n.Stream, &n.Live, &n.Tombstones, &n.LastVersion)
		})
		return err
	})
	return all, i.s.told(ctx, err)
}

// A lister reads the items of one kind that come after a key.
type lister struct {
	ctx   context.Context
	c     *pgx.Conn
	after store.Item // Kind and Key; nil stands for the beginning
	fn    func(store.Item) error
}

// Items implements store.Image.
func (i *image) Items(ctx context.Context, kind store.ItemKind, after []byte, fn func(store.Item) error) error {
	err := i.with(func(c *pgx.Conn) error {
		l := lister{ctx, c, store.Item{Kind: kind, Key: after}, fn}
		return l.list()
	})
	return i.s.told(ctx, err)
}

func (l *lister) list() error {
	switch l.after.Kind {
	case store.ConnectorItem:
		return l.few(`select array[decode(case when bundled then '01' else '00' end, 'hex'), convert_to(id, 'UTF8')], body from connector`, body)
	case store.PinItem:
		return l.few(`select array[convert_to(id, 'UTF8')], body from pin`, body)
	case store.ConnectionItem:
		return l.few(`select array[convert_to(id, 'UTF8')], body from connection`, body)
	case store.DocumentItem:
		return l.documents()
	case store.FenceItem:
		return l.few(`select array[convert_to(connection, 'UTF8')], convert_to(fence::text, 'UTF8') from fence`, body)
	case store.RunItem:
		return l.runs()
	case store.LeaseItem:
		return l.few(`select array[convert_to(connection, 'UTF8')], body, expires from lease`, lease)
	case store.EventItem:
		return l.events()
	case store.StagedItem:
		return l.few(`select array[convert_to(run, 'UTF8'), convert_to(stream, 'UTF8')], body from staged`, body)
	case store.QuestionItem:
		return l.few(`select array[convert_to(run, 'UTF8'), convert_to(id, 'UTF8')], body from question`, body)
	case store.StateItem:
		return l.few(`select array[convert_to(connection, 'UTF8'), convert_to(permit, 'UTF8'), convert_to(stream, 'UTF8')], body from state`, body)
	case store.GapItem:
		return l.gaps()
	case store.StreamItem:
		return l.few(`select array[convert_to(connection, 'UTF8'), convert_to(name, 'UTF8')], live, dead, last, bytes, updated
			from stream join heap on heap.number = heap where not erased and last > 0`, counted)
	case store.RecordItem:
		return l.records()
	}
	return l.files()
}

// body scans a column that contains the value as JSON.
func body(r pgx.Rows, key *[][]byte) (v any, err error) {
	var b []byte
	err = r.Scan(key, &b)
	return json.RawMessage(b), err
}

func lease(r pgx.Rows, key *[][]byte) (any, error) {
	var b []byte
	var expires time.Time
	var l store.Lease
	err := r.Scan(key, &b, &expires)
	if err == nil {
		err = decode(b, &l)
	}
	l.ExpiresAt = expires.UTC()
	return l, err
}

func counted(r pgx.Rows, key *[][]byte) (any, error) {
	var v store.StreamValue
	var updated time.Time
	err := r.Scan(key, &v.Live, &v.Tombstones, &v.Last, &v.Bytes, &updated)
	v.Updated = updated.UnixMicro()
	return v, err
}

// parted returns the item key with the given parts.
func parted(parts [][]byte) []byte {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = string(p)
	}
	return store.ItemKey(texts...)
}

// few lists all items of a kind that never has many, in key order.
func (l *lister) few(sql string, scan func(pgx.Rows, *[][]byte) (any, error), args ...any) error {
	rows, err := l.c.Query(l.ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var all []store.Item
	for rows.Next() {
		var key [][]byte
		v, err := scan(rows, &key)
		if err != nil {
			return err
		}
		item, err := store.NewItem(l.after.Kind, v, parted(key))
		if err != nil {
			return err
		}
		all = append(all, item)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b store.Item) int { return bytes.Compare(a.Key, b.Key) })
	for _, item := range all {
		if bytes.Compare(item.Key, l.after.Key) <= 0 {
			continue
		}
		if err := l.fn(item); err != nil {
			return err
		}
	}
	return nil
}

// groups reads the possible first parts of the keys of a kind, in order, without those that lie entirely before after.
func (l *lister) groups(sql string) (all [][]string, err error) {
	rows, err := l.c.Query(l.ctx, sql)
	if err != nil {
		return nil, err
	}
	all, err = pgx.CollectRows(rows, pgx.RowTo[[]string])
	slices.SortFunc(all, func(a, b []string) int { return bytes.Compare(begin(a), begin(b)) })
	return slices.DeleteFunc(all, func(g []string) bool {
		b := begin(g)
		return bytes.Compare(b, l.after.Key) < 0 && !bytes.HasPrefix(l.after.Key, b)
	}), err
}

// begin returns the beginning of all keys with the given first parts.
func begin(parts []string) []byte { return store.ItemKey(append(slices.Clone(parts), "")...) }

// last returns the last part of after if it belongs to the group, or nil if the whole group comes after it.
func (l *lister) last(group []string) []byte {
	if rest, ok := bytes.CutPrefix(l.after.Key, begin(group)); ok {
		return rest
	}
	return nil
}

// pageItems is how many items one query reads.
const pageItems = 1000

// pages calls next until it returns fewer than pageItems rows. next reads the rows after the last one it has read.
func pages(next func() (rows int, err error)) error {
	for {
		if n, err := next(); err != nil || n < pageItems {
			return err
		}
	}
}

// page calls scan for up to pageItems rows of a query and returns their number.
func (l *lister) page(scan func(pgx.Rows) error, sql string, args ...any) (n int, err error) {
	rows, err := l.c.Query(l.ctx, fmt.Sprintf("%s limit %d", sql, pageItems), args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		if err := scan(rows); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// value passes on an item whose value is JSON.
func (l *lister) value(v any, key []byte) error {
	item, err := store.NewItem(l.after.Kind, v, key)
	if err != nil {
		return err
	}
	return l.fn(item)
}

func (l *lister) documents() error {
	kinds, err := l.groups("select distinct array[kind] from document")
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		id := l.last(kind)
		err := pages(func() (int, error) {
			return l.page(func(r pgx.Rows) error {
				d, err := scanDocument(store.Kind(kind[0]), r)
				if err != nil {
					return err
				}
				if id = []byte(d.ID); d.Kind == store.Copying {
					return nil
				}
				v := store.DocumentValue{Revision: d.Revision, Data: d.Data}
				if !d.ExpiresAt.IsZero() {
					v.Expires = d.ExpiresAt.UnixMicro()
				}
				return l.value(v, store.ItemKey(kind[0], d.ID))
			}, "select id, revision, data, expires from document where kind = $1 and id > coalesce($2, ''::bytea) order by id",
				kind[0], id)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) runs() error {
	id := string(l.after.Key)
	return pages(func() (int, error) {
		return l.page(func(r pgx.Rows) error {
			var v store.RunValue
			if err := r.Scan(&id, &v.Next, &v.Ended, &v.Run); err != nil {
				return err
			}
			return l.value(v, []byte(id))
		}, "select r.id, coalesce(l.next, r.next), r.ended, r.body from run r left join lease l on l.run = r.id where r.id > $1 order by r.id", id)
	})
}

// A timed run is a run with the location of its timeline.
type timed struct {
	id           string
	number, week int64
}

// events lists the timelines in the order of the runs.
func (l *lister) events() error {
	at, seq := []byte(nil), int64(-1)
	if l.after.Key != nil {
		names, n, err := l.after.Numbered(2)
		if err != nil {
			return err
		}
		at, seq = begin(names), int64(n) // #nosec G115 -- it was below 1 << 63
	}
	first := true
	id := ""
	if at != nil {
		id = string(at[2:])
	}
	return pages(func() (int, error) {
		var some []timed
		// Longer ids sort behind shorter ones, as they do in keys.
		n, err := l.page(func(r pgx.Rows) error {
			var t timed
			err := r.Scan(&t.id, &t.number, &t.week)
			some = append(some, t)
			return err
		}, `select id, number, week from run where not pruned and (octet_length(id), id) `+map[bool]string{true: ">=", false: ">"}[first]+` (octet_length($1::text), $1)
			order by octet_length(id), id`, id)
		first = false
		for _, t := range some {
			id = t.id
			from := int64(-1)
			if at != nil && bytes.Equal(at, begin([]string{t.id})) {
				from = seq
			}
			if err := l.timeline(t, from); err != nil {
				return n, err
			}
		}
		return n, err
	})
}

func (l *lister) timeline(t timed, seq int64) error {
	return pages(func() (int, error) {
		return l.page(func(r pgx.Rows) error {
			var text json.RawMessage
			if err := r.Scan(&seq, &text); err != nil {
				return err
			}
			return l.value(text, store.ItemKey(t.id, store.ItemNumber(uint64(seq)))) // #nosec G115 -- it counts up from 0
		}, fmt.Sprintf("select seq, body from timeline_%d where run = $1 and seq > $2 order by seq", t.week), t.number, seq)
	})
}

func (l *lister) gaps() error {
	spaces, err := l.groups("select distinct array[connection, permit] from gap")
	if err != nil {
		return err
	}
	for _, space := range spaces {
		id := l.last(space)
		err := pages(func() (int, error) {
			return l.page(func(r pgx.Rows) error {
				var text json.RawMessage
				if err := r.Scan(&id, &text); err != nil {
					return err
				}
				return l.value(text, store.ItemKey(append(slices.Clone(space), string(id))...))
			}, "select id, body from gap where connection = $1 and permit = $2 and id > coalesce($3, ''::bytea) order by id",
				space[0], space[1], id)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) records() error {
	streams, err := l.groups(
		"select array[connection, name] from stream join heap on heap.number = heap where not erased and last > 0")
	if err != nil {
		return err
	}
	for _, names := range streams {
		version := int64(0)
		if l.last(names) != nil {
			_, n, err := l.after.Numbered(3)
			if err != nil {
				return err
			}
			version = int64(n) // #nosec G115 -- it was below 1 << 63
		}
		if err := l.stream(names, version); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) stream(names []string, version int64) error {
	at, err := find(l.ctx, l.c, store.ConnectionID(names[0]), store.Stream(names[1]))
	if err != nil {
		return err
	}
	b := new(store.Batch)
	return pages(func() (int, error) {
		return l.page(func(r pgx.Rows) error {
			record, err := scanRecord(store.Stream(names[1]), r, new(int))
			if err != nil {
				return err
			}
			version = int64(record.Version) // #nosec G115 -- it is one
			c := store.Change{Compound: record.Compound, EmittedAt: record.EmittedAt.UnixMicro(),
				Key: []byte(record.Key), Data: record.Data}
			if record.Deleted {
				c.Op = store.Delete
			}
			b.Reset("")
			b.Append(c)
			return l.fn(store.Item{
				Kind: store.RecordItem, Key: store.ItemKey(names[0], names[1], store.ItemNumber(record.Version)),
				Value: store.RecordValue(record.IngestedAt.UnixMicro(), string(record.RunID), b.Packed()),
			})
		}, fmt.Sprintf(`select r.version, r.flags, r.emitted, r.ingested, u.id, r.key, r.data, 0::bigint from records_%d r left join run u on u.number = r.run
			where stream = $1 and version > $2 order by version`, at.heap), at.stream, version)
	})
}
