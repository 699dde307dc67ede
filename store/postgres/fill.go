package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

var _ store.Filler = (*filler)(nil)

// Limits of one transaction of a filler.
const (
	fillItems = 5000
	fillBytes = 4 << 20
)

// A filler writes items in batches, each together with a note of how far it has come.
type filler struct {
	s      *Store
	source string
	at     store.Place // up to which items are durable
	items  []store.Item
	bytes  int
	runs   map[string]timed // cache of runs found in this transaction
}

// Fill implements store.Imager.
func (s *Store) Fill(ctx context.Context, source string) (store.Filler, store.Place, error) {
	f := &filler{s: s, source: source}
	f.forget()
	d, err := s.Document(ctx, store.Copying, store.CopyNote)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return f, store.Place{}, s.empty(ctx)
	case err != nil:
		return nil, store.Place{}, err
	}
	var note store.Copied
	if err := decode(d.Data, &note); err != nil {
		return nil, store.Place{}, err
	}
	if note.Source != source {
		return nil, store.Place{}, &store.OtherCopyError{}
	}
	f.at = note.Place
	return f, f.at, nil
}

func (f *filler) forget() { f.runs = map[string]timed{} }

// empty returns store.ErrNotEmpty unless nothing was ever written.
func (s *Store) empty(ctx context.Context) error {
	return s.read(ctx, func(ctx context.Context, c *conn) error {
		var some bool
		err := c.QueryRow(ctx, `select exists (select from connector) or exists (select from pin) or exists (select from connection) or exists (select from document)
			or exists (select from fence) or exists (select from run) or exists (select from state) or exists (select from gap) or exists (select from heap)`).Scan(&some)
		if err == nil && some {
			err = store.ErrNotEmpty
		}
		return err
	})
}

// Put implements store.Filler.
func (f *filler) Put(ctx context.Context, i store.Item) error {
	i.Value = append([]byte{}, i.Value...)
	f.items = append(f.items, i)
	if f.bytes += len(i.Key) + len(i.Value); len(f.items) < fillItems && f.bytes < fillBytes {
		return nil
	}
	return f.Flush(ctx)
}

// Flush implements store.Filler.
func (f *filler) Flush(ctx context.Context) error {
	if len(f.items) == 0 {
		return nil
	}
	last := f.items[len(f.items)-1]
	at := store.Place{Kind: last.Kind, Key: last.Key}
	note, err := json.Marshal(store.Copied{Source: f.source, Place: at})
	if err != nil {
		return err
	}
	err = f.s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		f.forget() // an earlier attempt may have been rolled back
		if err := f.fill(ctx, t); err != nil {
			return err
		}
		return t.writeDocuments(ctx, f.s.db, []store.Write{{Kind: store.Copying, ID: store.CopyNote, Data: note}})
	})
	if err == nil {
		f.at, f.items, f.bytes = at, nil, 0
	}
	return err
}

// Finish implements store.Filler.
func (f *filler) Finish(ctx context.Context) error {
	if err := f.Flush(ctx); err != nil {
		return err
	}
	return f.s.Write(ctx, store.Write{Kind: store.Copying, ID: store.CopyNote})
}

// Close implements store.Filler.
func (f *filler) Close() {}

// fill writes the items.
func (f *filler) fill(ctx context.Context, t *tx) error {
	for rest := f.items; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Kind == rest[0].Kind {
			n++
		}
		if err := f.some(ctx, t, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// some writes items that are all of one kind.
func (f *filler) some(ctx context.Context, t *tx, items []store.Item) error {
	switch items[0].Kind {
	case store.RunItem:
		return f.fillRuns(ctx, t, items)
	case store.EventItem:
		return f.fillEvents(ctx, t, items)
	case store.RecordItem:
		return f.fillRecords(ctx, t, items)
	}
	b := &pgx.Batch{}
	for _, i := range items {
		if err := f.queue(ctx, t, b, i); err != nil {
			return err
		}
	}
	return t.SendBatch(ctx, b).Close()
}

// queue queues the statements for one item of a kind that is not written in bulk.
func (f *filler) queue(ctx context.Context, t *tx, b *pgx.Batch, i store.Item) error {
	parts := map[store.ItemKind]int{store.StateItem: 3, store.GapItem: 3, store.PinItem: 1, store.ConnectionItem: 1,
		store.FenceItem: 1, store.LeaseItem: 1}
	n, ok := parts[i.Kind]
	if !ok {
		n = 2
	}
	k, err := i.Parts(n)
	if err != nil {
		return err
	}
	switch i.Kind {
	case store.ConnectorItem:
		b.Queue("insert into connector (id, bundled, body) values ($1, $2, $3)", k[1], k[0] == "\x01", i.Value)
	case store.PinItem:
		b.Queue("insert into pin (id, body) values ($1, $2)", k[0], i.Value)
	case store.ConnectionItem:
		var c store.Connection
		if err := i.Decode(&c); err != nil {
			return err
		}
		permit, err := permitOf(c)
		if err != nil {
			return err
		}
		b.Queue("insert into connection (id, permit, body) values ($1, $2, $3)", k[0], permit, i.Value)
	case store.DocumentItem:
		return queueDocument(b, i, k)
	case store.FenceItem:
		var fence uint64
		if err := i.Decode(&fence); err != nil {
			return err
		}
		b.Queue("insert into fence (connection, fence) values ($1, $2)", k[0], fence)
	case store.LeaseItem:
		var l store.Lease
		if err := i.Decode(&l); err != nil {
			return err
		}
		b.Queue(`insert into lease (connection, run, number, week, fence, next, epoch, expires, body)
			select $1, id, number, week, $3, next, $4, $5, $6 from run where id = $2`, k[0], string(l.RunID), l.Fence, l.BootEpoch, l.ExpiresAt, i.Value)
	case store.StagedItem:
		b.Queue("insert into staged (run, stream, body) values ($1, $2, $3)", k[0], k[1], i.Value)
	case store.QuestionItem:
		b.Queue("insert into question (run, id, body) values ($1, $2, $3)", k[0], k[1], i.Value)
	case store.StateItem:
		b.Queue("insert into state (connection, permit, stream, body) values ($1, $2, $3, $4)", k[0], k[1], k[2], i.Value)
	case store.GapItem:
		b.Queue("insert into gap (connection, permit, id, body) values ($1, $2, $3, $4)", k[0], k[1], []byte(k[2]), i.Value)
	case store.StreamItem:
		return f.queueStream(ctx, t, b, i, k)
	default:
		return f.queueFile(ctx, t, b, i)
	}
	return nil
}

func queueDocument(b *pgx.Batch, i store.Item, k []string) error {
	var v store.DocumentValue
	if err := i.Decode(&v); err != nil {
		return err
	}
	if k[0] == string(store.Copying) {
		return store.Corrupt("a document of kind %s is no item", k[0])
	}
	var expires *time.Time
	if at := v.ExpiresAt(); !at.IsZero() {
		expires = &at
	}
	b.Queue("insert into document (kind, id, revision, data, expires) values ($1, $2, $3, $4, $5)", k[0], []byte(k[1]),
		v.Revision, []byte(v.Data), expires)
	return nil
}

// queueStream inserts a stream with its counters, except for the sum, to which the records are added later.
func (f *filler) queueStream(ctx context.Context, t *tx, b *pgx.Batch, i store.Item, k []string) error {
	var v store.StreamValue
	if err := i.Decode(&v); err != nil {
		return err
	}
	heap, err := t.findHeap(ctx, k[0])
	if err != nil {
		return err
	}
	b.Queue("insert into stream (heap, name, live, dead, last, bytes, updated) values ($1, $2, $3, $4, $5, $6, $7)",
		heap, k[1], v.Live, v.Tombstones, v.Last, v.Bytes, time.UnixMicro(v.Updated).UTC())
	return nil
}

func (f *filler) fillRuns(ctx context.Context, t *tx, items []store.Item) error {
	b, made := &pgx.Batch{}, map[int64]bool{}
	for _, i := range items {
		var v store.RunValue
		var r store.Run
		err := i.Decode(&v)
		if err == nil {
			err = decode(v.Run, &r)
		}
		if err != nil {
			return err
		}
		week := weekOf(r.StartedAt)
		if !made[week] {
			if err := t.makeTimeline(ctx, f.s.db, week); err != nil {
				return err
			}
			made[week] = true
		}
		b.Queue("insert into run (id, connection, week, next, ended, pruned, body) values ($1, $2, $3, $4, $5, $6, $7)",
			string(i.Key), string(r.ConnectionID), week, v.Next, v.Ended, r.Pruned, []byte(v.Run))
	}
	return t.SendBatch(ctx, b).Close()
}

// find looks up runs that were already written and adds them to f.runs.
func (f *filler) find(ctx context.Context, t *tx, ids map[string]bool) error {
	var unknown []string
	for id := range ids {
		if _, ok := f.runs[id]; !ok {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	rows, err := t.Query(ctx, "select id, number, week from run where id = any($1)", unknown)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows,
		func(r pgx.CollectableRow) (x timed, err error) { return x, r.Scan(&x.id, &x.number, &x.week) })
	for _, x := range found {
		f.runs[x.id] = x
	}
	if err == nil && len(found) != len(unknown) {
		err = store.Corrupt("the record of a run is missing")
	}
	return err
}

func (f *filler) fillEvents(ctx context.Context, t *tx, items []store.Item) error {
	ids := map[string]bool{}
	seqs := make([]uint64, len(items))
	names := make([]string, len(items))
	for n, i := range items {
		of, seq, err := i.Numbered(2)
		if err != nil {
			return err
		}
		seqs[n], names[n], ids[of[0]] = seq, of[0], true
	}
	if err := f.find(ctx, t, ids); err != nil {
		return err
	}
	byWeek := map[int64][][]any{}
	for n, i := range items {
		r := f.runs[names[n]]
		byWeek[r.week] = append(byWeek[r.week], []any{r.number, seqs[n], i.Value})
	}
	for week, rows := range byWeek {
		_, err := t.CopyFrom(ctx, pgx.Identifier{fmt.Sprintf("timeline_%d", week)}, []string{"run", "seq", "body"},
			pgx.CopyFromRows(rows))
		if err != nil {
			return err
		}
	}
	return nil
}

// fillRecords writes records of any number of streams.
func (f *filler) fillRecords(ctx context.Context, t *tx, items []store.Item) error {
	ids := map[string]bool{}
	for _, i := range items {
		_, run, _, _, err := i.Record()
		if err != nil {
			return err
		}
		ids[run] = true
	}
	if err := f.find(ctx, t, ids); err != nil {
		return err
	}
	for len(items) > 0 {
		n, err := f.fillStream(ctx, t, items)
		if err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

var recordColumns = []string{"stream", "version", "emitted", "ingested", "run", "sum", "flags", "key", "data"}

// fillStream writes the records at the beginning of items that belong to one stream and returns their number.
func (f *filler) fillStream(ctx context.Context, t *tx, items []store.Item) (n int, err error) {
	names, _, err := items[0].Numbered(3)
	if err != nil {
		return 0, err
	}
	at, err := find(ctx, t.conn.Conn, store.ConnectionID(names[0]), store.Stream(names[1]))
	if err == nil && at.stream == 0 {
		err = store.Corrupt("records of stream %s of %s come without their counters", names[1], names[0])
	}
	if err != nil {
		return 0, err
	}
	var rows [][]any
	var sum big.Int
	var scratch []byte
	for ; n < len(items); n++ {
		of, version, err := items[n].Numbered(3)
		if err != nil {
			return 0, err
		}
		if of[0] != names[0] || of[1] != names[1] {
			break
		}
		ingested, run, c, _, err := items[n].Record()
		if err != nil {
			return 0, err
		}
		var part int64
		part, scratch = sumOf(c, scratch)
		sum.Add(&sum, big.NewInt(part))
		rows = append(rows, []any{at.stream, version, c.EmittedAt, ingested, f.runs[run].number, part, int16(flagsOf(c)), c.Key, c.Data}) // #nosec G115 -- two bits
	}
	if _, err = t.CopyFrom(ctx, pgx.Identifier{fmt.Sprintf("records_%d", at.heap)}, recordColumns,
		pgx.CopyFromRows(rows)); err != nil {
		return 0, err
	}
	_, err = t.exec(ctx, "update stream set sum = sum + $2::text::numeric where number = $1", at.stream, sum.String())
	return n, err
}
