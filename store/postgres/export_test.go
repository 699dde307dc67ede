package postgres

import (
	"context"

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
