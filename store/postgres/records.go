package postgres

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// pageBytes bounds the data in a page of records; the record that exceeds it is still included.
const pageBytes = 8 << 20

// Limits on the records, and bytes of their data, for which one page calls Match.
const (
	scanRecords = 10_000
	scanBytes   = 64 << 20
)

// Streams implements store.Store.
func (s *records) Streams(ctx context.Context, connection store.ConnectionID) (all []store.StreamStats, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, `select name, live, dead, last, bytes, updated from stream join heap on heap.number = heap
			where connection = $1 and not erased and last > 0 order by name`, string(connection))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (st store.StreamStats, err error) {
			err = r.Scan(&st.Stream, &st.Live, &st.Tombstones, &st.LastVersion, &st.Bytes, &st.UpdatedAt)
			st.UpdatedAt = st.UpdatedAt.UTC()
			return st, err
		})
		return err
	})
	return all, err
}

// Record implements store.Store.
func (s *records) Record(ctx context.Context, connection store.ConnectionID, stream store.Stream,
	key string) (r store.Record, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, c *conn) error {
		at, err := find(ctx, c.Conn, connection, stream)
		if err == nil && at.last > 0 {
			r, err = scanRecord(stream, c.QueryRow(ctx, fmt.Sprintf(`select r.version, r.flags, r.emitted, r.ingested, u.id, r.key, r.data, 0::bigint
				from records_%d r left join run u on u.number = r.run where stream = $1 and key = $2`, at.heap), at.stream, []byte(key)), new(int))
		}
		if at.last == 0 || errors.Is(err, pgx.ErrNoRows) {
			return missing(nil, "record of %s", stream)
		}
		return err
	})
	return r, err
}

// A location is where the records of a stream are stored.
type location struct{ heap, stream, last int64 }

// find locates a stream. It returns the zero location if there is none.
func find(ctx context.Context, c *pgx.Conn, connection store.ConnectionID,
	stream store.Stream) (at location, err error) {
	err = c.QueryRow(ctx, `select stream.heap, stream.number, last from stream join heap on heap.number = heap
		where connection = $1 and not erased and name = $2`, string(connection), string(stream)).Scan(&at.heap, &at.stream, &at.last)
	return at, absent(err)
}

// scanRecord scans a row of pageSQL.
func scanRecord(stream store.Stream, row pgx.Row, many *int) (r store.Record, err error) {
	var flags int16
	var emitted, ingested int64
	var run *string
	var key, data []byte
	if err := row.Scan(&r.Version, &flags, &emitted, &ingested, &run, &key, &data, many); err != nil {
		return r, err
	}
	if run == nil {
		return r, store.Corrupt("the run of version %d of %s is missing", r.Version, stream)
	}
	r.Stream, r.Key, r.RunID = stream, string(key), store.RunID(*run)
	r.Compound, r.Deleted = flags&flagCompound != 0, flags&flagDeleted != 0
	r.EmittedAt, r.IngestedAt = time.UnixMicro(emitted).UTC(), time.UnixMicro(ingested).UTC()
	if !r.Deleted {
		r.Data = json.RawMessage(data)
	}
	return r, nil
}

// Records implements store.Store. A page ends early when its data exceeds 8 MiB.
func (s *records) Records(ctx context.Context, q store.RecordQuery) (page store.RecordPage, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, c *conn) error {
		page, err = recordPage(ctx, c.Conn, q)
		return err
	})
	return page, err
}

// errOrder reports a mistake in the calling program.
var errOrder = errors.New("records have no such order")

// recordPage reads one page.
func recordPage(ctx context.Context, c *pgx.Conn, q store.RecordQuery) (page store.RecordPage, err error) {
	if _, ok := orders[q.Order]; !ok {
		return page, errOrder
	}
	at, err := find(ctx, c, q.Connection, q.Stream)
	if err != nil || at.last == 0 {
		return page, err
	}
	version := uint64(at.last) // #nosec G115 -- it counts up
	if q.Order != store.ByKey && q.Order != store.ByEmitted && q.After > version {
		return store.RecordPage{Version: version}, store.ErrCursorExpired
	}
	p := pager{q: q, limit: bounded(q.Limit),
		page: store.RecordPage{After: q.After, AfterKey: q.AfterKey, Version: version}}
	for !p.page.More {
		n := p.limit + 1
		if q.Match != nil {
			n = maxLimit
		}
		more, err := p.fetch(ctx, c, at, n)
		if err != nil || !more {
			return p.page, err
		}
	}
	return p.page, nil
}

// orders maps an order to the columns by which records are sorted.
var orders = map[store.Order]string{"": "version", store.ByVersion: "version", store.ByKey: "key",
	store.ByEmitted: "emitted, key"}

// pageSQL reads a slice of a table that ends early if it has too much data. The last column is the number of rows
// without that limit, by which fetch recognizes the end of the stream.
const pageSQL = `
select r.version, r.flags, r.emitted, r.ingested, u.id, r.key, r.data, r.many from (
  select *, sum(octet_length(data)) over (order by ORDER rows unbounded preceding) - octet_length(data) as before, count(*) over () as many
  from (select * from records_%d where stream = $1 and flags & $2 = 0 AND order by ORDER limit $3) p
) r left join run u on u.number = r.run where before <= $4 order by ORDER`

// A pager fills one page.
type pager struct {
	q              store.RecordQuery
	limit          int // records in the page
	bytes          int // of data in it
	asked, scanned int // calls of Match, and bytes of data passed to it
	page           store.RecordPage
}

// fetch reads up to n records after the current position and reports whether there may be more.
func (p *pager) fetch(ctx context.Context, c *pgx.Conn, at location, n int) (bool, error) {
	columns := orders[p.q.Order]
	order, and, args := columns, "", []any{at.stream, flagDeleted, n, pageBytes}
	if p.q.Deleted {
		args[1] = 0
	}
	compare := ">"
	if p.q.Descending {
		order, compare = strings.ReplaceAll(columns, ",", " desc,")+" desc", "<"
	}
	if cursor, ok, err := p.cursor(); err != nil {
		return false, err
	} else if ok {
		places := "$5"
		if args = append(args, cursor...); len(cursor) == 2 {
			places = "$5, $6"
		}
		and = fmt.Sprintf("and (%s) %s (%s)", columns, compare, places)
	}
	sql := fmt.Sprintf(strings.NewReplacer("ORDER", order, "AND", and).Replace(pageSQL), at.heap)
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	got, many := 0, 0
	for ; rows.Next(); got++ {
		r, err := scanRecord(p.q.Stream, rows, &many)
		if err != nil {
			return false, err
		}
		if !p.take(r) {
			break
		}
	}
	rows.Close()
	return got < many || many == n, rows.Err()
}

// cursor returns the current position in the columns of the order; false stands for the beginning.
func (p *pager) cursor() ([]any, bool, error) {
	switch key := p.page.AfterKey; p.q.Order {
	case store.ByKey:
		return []any{[]byte(key)}, key != "", nil
	case store.ByEmitted:
		at, err := hex.DecodeString(key[:min(16, len(key))])
		if err != nil || len(at) != 8 && key != "" {
			return nil, false, store.ErrCursorExpired
		}
		if key == "" {
			return nil, false, nil
		}
		return []any{int64(binary.BigEndian.Uint64(at)), []byte(key[16:])}, true, nil // #nosec G115 -- the same bits
	}
	return []any{int64(p.page.After)}, p.page.After != 0, nil // #nosec G115 -- not above the newest version
}

// take adds a record to the page unless it does not match. It returns false when the page is full and the record
// belongs to the next one.
func (p *pager) take(r store.Record) bool {
	if len(p.page.Records) == p.limit || p.bytes > pageBytes || p.asked == scanRecords || p.scanned > scanBytes {
		p.page.More = true
		return false
	}
	switch p.q.Order {
	case store.ByKey:
		p.page.AfterKey = r.Key
	case store.ByEmitted:
		p.page.AfterKey = fmt.Sprintf("%016x", uint64(r.EmittedAt.UnixMicro())) + r.Key // #nosec G115 -- the same bits
	default:
		p.page.After = r.Version
	}
	if p.q.Match != nil {
		p.asked++
		p.scanned += len(r.Data)
		if !p.q.Match(r) {
			return true
		}
	}
	p.bytes += len(r.Data)
	p.page.Records = append(p.page.Records, r)
	return true
}
