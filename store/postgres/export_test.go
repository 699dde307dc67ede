package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// MakeVersion makes the tables that an earlier version had.
func MakeVersion(ctx context.Context, url string, version int) error {
	a, err := parse(url, Options{})
	if err != nil {
		return err
	}
	s := newStore(a)
	c, err := pgx.ConnectConfig(ctx, a.config)
	if err != nil {
		return err
	}
	defer end(c)
	if _, err := s.version(ctx, c); err != nil {
		return err
	}
	for v := 1; v <= version; v++ {
		if err := step(ctx, c, v); err != nil {
			return err
		}
	}
	return nil
}

// Unfit is why a server of a version, a standby or one behind a pooler, cannot keep a store.
func Unfit(version int, standby, pooled bool) error {
	v := server{version: version, standby: standby, fsync: "on", pages: "on", commits: "on", pid: 1}
	pid := uint32(1)
	if pooled {
		pid = 2
	}
	return v.unfit(pid, false)
}

// Unanswered begins a transaction that writes, and returns its number and what finds out whether it is durable.
func (s *Store) Unanswered(ctx context.Context) (number uint64, durable func() error, err error) {
	c, err := s.pool.get(ctx)
	if err != nil {
		return 0, nil, err
	}
	t := &tx{conn: c}
	if err := t.begin(ctx, s.db, nil); err != nil {
		return 0, nil, err
	}
	if _, err := t.exec(ctx, "insert into fence (connection, fence) values ('unanswered', 1)"); err != nil {
		return 0, nil, err
	}
	number, err = strconv.ParseUint(t.id, 10, 64)
	return number, func() error {
		s.pool.put(ctx, c)
		return s.resolve(ctx, t)
	}, err
}

// Sleep reads for so many seconds.
func (s *Store) Sleep(ctx context.Context, seconds float64) error {
	return s.read(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.Exec(ctx, "select pg_sleep($1)", seconds)
		return err
	})
}

// Idle is how many connections are kept that nobody uses.
func (s *Store) Idle() int { return len(s.pool.idle) }

// Lanes is of how many runs the store remembers what they committed.
func (s *Store) Lanes() int {
	s.submitted.mu.Lock()
	defer s.submitted.mu.Unlock()
	return len(s.submitted.byRun)
}
