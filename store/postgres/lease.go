package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// Acquire implements store.Store.
func (s *leases) Acquire(ctx context.Context, r store.Run, hostID, bootEpoch string, ttl time.Duration,
	with ...store.Write) (l store.Lease, err error) {
	l = store.Lease{
		ConnectionID: r.ConnectionID, RunID: r.ID, TraceID: r.TraceID, HostID: hostID, BootEpoch: bootEpoch,
		TriggerKind: r.TriggerKind, StartedAt: r.StartedAt,
	}
	err = s.write(ctx, s.owning(r.ConnectionID), func(ctx context.Context, t *tx) error {
		if err := t.idle(ctx, r.ConnectionID); err != nil {
			return err
		}
		l.ExpiresAt = t.now.Add(ttl)
		if err := t.insertRun(ctx, s.db, r, &l); err != nil {
			return err
		}
		return t.writeDocuments(ctx, s.db, with)
	})
	if err != nil {
		return store.Lease{}, err
	}
	l.ExpiresAt = s.here(l.ExpiresAt)
	s.wrote(with)
	return l, nil
}

// weekOf returns the number of the week whose table holds the timelines of runs that start at a time.
func weekOf(at time.Time) int64 { return at.Unix() / (7 * 24 * 3600) }

// insertRun inserts the run and its lease, and sets the lease's fence.
func (t *tx) insertRun(ctx context.Context, s *db, r store.Run, l *store.Lease) error {
	week := weekOf(t.now)
	if err := t.makeTimeline(ctx, s, week); err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var number int64
	err = t.QueryRow(ctx, "insert into run (id, connection, week, body) values ($1, $2, $3, $4) on conflict (id) do nothing returning number",
		string(r.ID), string(r.ConnectionID), week, body).Scan(&number)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("run %s exists already", r.ID) // ids are never reused
	}
	if err != nil {
		return err
	}
	err = t.QueryRow(ctx, `insert into fence (connection, fence) values ($1, 1)
		on conflict (connection) do update set fence = fence.fence + 1 returning fence`, string(r.ConnectionID)).Scan(&l.Fence)
	if err != nil {
		return err
	}
	if body, err = json.Marshal(l); err != nil {
		return err
	}
	_, err = t.exec(ctx, "insert into lease (connection, run, number, week, fence, epoch, expires, body) values ($1, $2, $3, $4, $5, $6, $7, $8)",
		string(l.ConnectionID), string(l.RunID), number, week, l.Fence, l.BootEpoch, l.ExpiresAt, body)
	return err
}

// Renew implements store.Store. It writes nothing: a lease is valid as long as its host is a member.
func (s *leases) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	var now time.Time
	err := s.read(ctx, func(ctx context.Context, c *conn) error {
		return c.QueryRow(ctx, "select clock_timestamp() from lease where connection = $1 and run = $2 and fence = $3",
			string(l.ConnectionID), string(l.RunID), l.Fence).Scan(&now)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Lease{}, store.ErrFenced
	}
	if err != nil {
		return store.Lease{}, err
	}
	l.ExpiresAt = s.here(now.Add(ttl))
	return l, nil
}

// TakeOver implements store.Store.
func (s *leases) TakeOver(ctx context.Context, l store.Lease, hostID, bootEpoch string,
	ttl time.Duration) (taken store.Lease, err error) {
	err = s.write(ctx, s.owning(l.ConnectionID), func(ctx context.Context, t *tx) error {
		taken, err = oneBody[store.Lease](t.QueryRow(ctx,
			"select body from lease where connection = $1 and run = $2 and fence = $3 for update",
			string(l.ConnectionID), string(l.RunID), l.Fence), "lease", string(l.RunID))
		if errors.Is(err, store.ErrNotFound) {
			return store.ErrFenced
		}
		if err != nil {
			return err
		}
		if err = t.QueryRow(ctx, "update fence set fence = fence + 1 where connection = $1 returning fence",
			string(l.ConnectionID)).Scan(&taken.Fence); err != nil {
			return err
		}
		taken.HostID, taken.BootEpoch, taken.ExpiresAt = hostID, bootEpoch, t.now.Add(ttl)
		body, err := json.Marshal(taken)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, "update lease set fence = $2, epoch = $3, expires = $4, body = $5 where run = $1",
			string(l.RunID), taken.Fence, bootEpoch, taken.ExpiresAt, body)
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	taken.ExpiresAt = s.here(taken.ExpiresAt)
	return taken, nil
}

// Journal implements store.Store.
func (s *leases) Journal(ctx context.Context, id store.RunID, n uint64) (b []byte, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		return c.QueryRow(ctx, "select body from journal where run = $1 and n = $2", string(id), int64(n)).Scan(&b) // #nosec G115 -- it counts up from 0
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = missing(nil, "piece %d of the journal of run %s", n, id)
	}
	return b, err
}

// Leases implements store.Store.
func (s *leases) Leases(ctx context.Context) (all []store.Lease, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx,
			"select greatest(l.expires, m.expires), body from lease l left join member m using (epoch) order by connection")
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (l store.Lease, err error) {
			var body []byte
			var expires time.Time
			if err = r.Scan(&expires, &body); err == nil {
				err = decode(body, &l)
			}
			l.ExpiresAt = s.here(expires)
			return l, err
		})
		return err
	})
	return all, err
}
