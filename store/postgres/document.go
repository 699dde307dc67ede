package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// errDocumentID reports a mistake in the calling program.
var errDocumentID = errors.New("a document wants a kind, and an id of 1 to 512 bytes")

// Write implements store.Store.
func (s *documents) Write(ctx context.Context, writes ...store.Write) error {
	err := s.write(ctx, nil, func(ctx context.Context, t *tx) error { return t.writeDocuments(ctx, s.db, writes) })
	if err == nil {
		s.wrote(writes)
	}
	return err
}

// writeDocuments checks all writes before it makes the first.
func (t *tx) writeDocuments(ctx context.Context, s *db, writes []store.Write) error {
	if len(writes) == 0 {
		return nil
	}
	locks := make([]lock, len(writes))
	for i, w := range writes {
		if w.Kind == "" || w.ID == "" || len(w.ID) > 512 {
			return errDocumentID
		}
		locks[i] = s.lock("document", string(w.Kind)+"\x00"+w.ID)
	}
	slices.Sort(locks) // so that two writers of the same documents do not deadlock
	b := &pgx.Batch{}
	for _, l := range slices.Compact(locks) {
		l.alone(b)
	}
	before := make([]uint64, len(writes)) // revisions
	over := make([]bool, len(writes))
	for i, w := range writes {
		b.Queue("select revision, coalesce(expires <= $3, false) from document where kind = $1 and id = $2", string(w.Kind),
			[]byte(w.ID), t.now).
			QueryRow(func(r pgx.Row) error {
				if err := r.Scan(&before[i], &over[i]); !errors.Is(err, pgx.ErrNoRows) {
					return err
				}
				return nil
			})
	}
	if err := t.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	for i, w := range writes {
		seen := before[i]
		if over[i] {
			seen = 0
		}
		if w.If != nil && *w.If != seen {
			return &store.ConflictError{Kind: w.Kind, ID: w.ID, Revision: seen}
		}
	}
	return t.putDocuments(ctx, writes, before)
}

func (t *tx) putDocuments(ctx context.Context, writes []store.Write, before []uint64) error {
	b := &pgx.Batch{}
	for i, w := range writes {
		if w.Data == nil {
			b.Queue("delete from document where kind = $1 and id = $2", string(w.Kind), []byte(w.ID))
			continue
		}
		var expires *time.Time
		if !w.ExpiresAt.IsZero() {
			expires = &w.ExpiresAt
		}
		b.Queue(`insert into document (kind, id, revision, data, expires) values ($1, $2, $3, $4, $5)
			on conflict (kind, id) do update set revision = excluded.revision, data = excluded.data, expires = excluded.expires`,
			string(w.Kind), []byte(w.ID), before[i]+1, []byte(w.Data), expires)
	}
	return t.SendBatch(ctx, b).Close()
}

// scanDocument scans the columns id, revision, data and expires.
func scanDocument(kind store.Kind, r pgx.Row) (store.Document, error) {
	d := store.Document{Kind: kind}
	var id, data []byte
	var expires *time.Time
	err := r.Scan(&id, &d.Revision, &data, &expires)
	if expires != nil {
		d.ExpiresAt = expires.UTC()
	}
	d.ID, d.Data = string(id), data
	return d, err
}

// Document implements store.Store.
func (s *documents) Document(ctx context.Context, kind store.Kind, id string) (d store.Document, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		d, err = scanDocument(kind, c.QueryRow(ctx, `select id, revision, data, expires from document
			where kind = $1 and id = $2 and (expires is null or expires > clock_timestamp())`, string(kind), []byte(id)))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Document{}, missing(nil, "%s", kind)
	}
	return d, err
}

// Documents implements store.Store.
func (s *documents) Documents(ctx context.Context, q store.DocumentQuery) (all []store.Document, err error) {
	order, from, to := "", []byte(q.Prefix), behind(q.Prefix)
	switch {
	case q.Descending:
		order = "desc"
		if after := []byte(q.After); q.After != "" && (to == nil || bytes.Compare(after, to) < 0) {
			to = after
		}
	case q.After >= q.Prefix && q.After != "":
		from = append([]byte(q.After), 0) // the smallest id behind it
	}
	sql, args := "select id, revision, data, expires from document where kind = $1 and id >= $2",
		[]any{string(q.Kind), from, bounded(q.Limit)}
	if to != nil {
		sql, args = sql+" and id < $4", append(args, to)
	}
	sql += " and (expires is null or expires > clock_timestamp()) order by id " + order + " limit $3"
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows,
			func(r pgx.CollectableRow) (store.Document, error) { return scanDocument(q.Kind, r) })
		return err
	})
	return all, err
}

// behind returns the smallest string greater than all that begin with prefix, or nil if there is none.
func behind(prefix string) []byte {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xFF {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return nil
	}
	b[len(b)-1]++
	return b
}

// Sweep implements store.Store.
func (s *documents) Sweep(ctx context.Context) error {
	for swept := int64(1000); swept == 1000; {
		err := s.write(ctx, nil, func(ctx context.Context, t *tx) (err error) {
			swept, err = t.exec(ctx, `delete from document where (kind, id) in
				(select kind, id from document where expires <= $1 order by expires limit 1000 for update skip locked) and expires <= $1`, t.now)
			return err
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(s.read(ctx, sweepPace), s.read(ctx, sweepAttempts))
}
