package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// Run implements store.Store.
func (s *timelines) Run(ctx context.Context, id store.RunID) (store.Run, error) {
	return one[store.Run](ctx, s.db, "run", string(id), "select body from run where id = $1", string(id))
}

// Runs implements store.Store. A limit of 0 means 100; the maximum is 1000.
func (s *timelines) Runs(ctx context.Context, connection store.ConnectionID, before store.RunID,
	limit int) ([]store.Run, error) {
	sql, args := "select body from run where true", []any{bounded(limit)}
	if connection != "" {
		args = append(args, string(connection))
		sql += fmt.Sprintf(" and connection = $%d", len(args))
	}
	if before != "" {
		args = append(args, string(before))
		sql += fmt.Sprintf(" and id < $%d", len(args))
	}
	sql += " order by id desc limit $1"
	return list[store.Run](ctx, s.db, sql, args...)
}

// A place is the location of a run's timeline.
type place struct {
	number, week int64
	pruned       bool
	head         store.RunHead
}

func placeOf(ctx context.Context, c *conn, id store.RunID) (p place, err error) {
	err = c.QueryRow(ctx, "select r.number, r.week, r.pruned, r.ended, coalesce(l.next, r.next) from run r left join lease l on l.run = r.id where r.id = $1", string(id)).
		Scan(&p.number, &p.week, &p.pruned, &p.head.Ended, &p.head.Next)
	return p, err
}

// RunHead implements store.Store.
func (s *timelines) RunHead(ctx context.Context, id store.RunID) (store.RunHead, error) {
	var p place
	err := s.read(ctx, func(ctx context.Context, c *conn) (err error) { p, err = placeOf(ctx, c, id); return err })
	if errors.Is(err, pgx.ErrNoRows) {
		err = missing(nil, "run %s", id)
	}
	return p.head, err
}

// Events implements store.Store. A limit of 0 means 100; the maximum is 1000.
func (s *timelines) Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error) {
	return s.events(ctx, id, func(place) (uint64, int) { return from, bounded(limit) })
}

// EventsBefore implements store.Store. A limit of 0 means 100; the maximum is 1000.
func (s *timelines) EventsBefore(ctx context.Context, id store.RunID, before uint64, limit int) ([]store.Event, error) {
	return s.events(ctx, id, func(p place) (uint64, int) {
		end := p.head.Next
		if before != 0 {
			end = min(end, before)
		}
		n := min(end, uint64(bounded(limit)))
		return end - n, int(n) // #nosec G115 -- at most 1000
	})
}

// events reads the events of a run that which selects. It returns none if the timeline was pruned.
func (s *timelines) events(ctx context.Context, id store.RunID,
	which func(place) (from uint64, limit int)) (all []store.Event, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, c *conn) error {
		all = nil
		p, err := placeOf(ctx, c, id)
		if errors.Is(err, pgx.ErrNoRows) || p.pruned {
			return nil
		}
		if err != nil {
			return err
		}
		from, limit := which(p)
		if limit == 0 || from >= p.head.Next {
			return nil
		}
		all, err = bodies[store.Event](c.Query(ctx, fmt.Sprintf("select body from timeline_%d where run = $1 and seq >= $2 order by seq limit $3", p.week), p.number, int64(from), limit)) // #nosec G115 -- below Next
		for i, e := range all {
			if e.Sequence != from+uint64(i) {
				return store.Corrupt("run %s has event %d where %d belongs", id, e.Sequence, from+uint64(i))
			}
		}
		return err
	})
	return all, err
}

// makeTimeline creates the table for the timelines of a week if it is missing.
func (t *tx) makeTimeline(ctx context.Context, s *db, week int64) error {
	if _, ok := s.weeks.Load(week); ok {
		return nil
	}
	b := &pgx.Batch{}
	s.lock("timeline", "").alone(b)
	if err := t.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	var made bool
	err := t.QueryRow(ctx, "select exists (select from timeline where week = $1)", week).Scan(&made)
	if err != nil {
		return err
	}
	if made {
		s.weeks.Store(week, true) // the table was already durable
		return nil
	}
	_, err = t.exec(ctx, fmt.Sprintf(
		"create table timeline_%d (run bigint, seq bigint, body bytea not null, primary key (run, seq))", week))
	if err == nil {
		_, err = t.exec(ctx, "insert into timeline (week) values ($1)", week)
	}
	return err
}

// Prune implements store.Store. If no other timeline of the week is left, it drops the table.
func (s *timelines) Prune(ctx context.Context, id store.RunID) error {
	var p place
	err := s.write(ctx, nil, func(ctx context.Context, t *tx) (err error) {
		p, err = placeOf(ctx, t.conn, id)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return missing(nil, "run %s", id)
		case err != nil:
			return err
		case !p.head.Ended:
			return &store.ActiveError{RunID: id}
		case p.pruned:
			return nil
		}
		r, err := oneBody[store.Run](t.QueryRow(ctx, "select body from run where id = $1 for update", string(id)), "run",
			string(id))
		if err != nil {
			return err
		}
		r.Pruned = true
		body, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, "update run set pruned = true, body = $2 where id = $1", string(id), body)
		return err
	})
	if err != nil || p.pruned {
		return err
	}
	return s.dropTimeline(ctx, p)
}

// pruneAtOnce is how many events are deleted in one transaction.
const pruneAtOnce = 10_000

// dropTimeline deletes the events of a pruned run, or the whole table if all timelines of its week are pruned and the
// week is over.
func (s *timelines) dropTimeline(ctx context.Context, p place) error {
	gone := false
	err := s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		var left bool
		err := t.QueryRow(ctx, "select exists (select from run where week = $1 and not pruned)", p.week).Scan(&left)
		if gone = !left && p.week < weekOf(t.now)-1; err != nil || !gone {
			return err
		}
		if _, err = t.exec(ctx, fmt.Sprintf("drop table if exists timeline_%d", p.week)); err == nil {
			_, err = t.exec(ctx, "delete from timeline where week = $1", p.week)
		}
		return err
	})
	for n := int64(pruneAtOnce); err == nil && !gone && n == pruneAtOnce; {
		err = s.write(ctx, nil, func(ctx context.Context, t *tx) (err error) {
			n, err = t.exec(ctx, fmt.Sprintf(
				`delete from timeline_%[1]d where run = $1 and seq >= (select coalesce(max(seq), 0) - %[2]d + 1 from timeline_%[1]d where run = $1)`,
				p.week, pruneAtOnce), p.number)
			return err
		})
	}
	return err
}
