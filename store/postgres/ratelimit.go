package postgres

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

var _ store.SharedRateLimiter = (*Store)(nil)

// TakeTurns implements store.SharedRateLimiter with the generic cell rate algorithm: used is the time at which
// the bucket is full again, so a row whose used has passed is meaningless.
func (s *members) TakeTurns(ctx context.Context, origin string, n int, p store.RateLimit) (first, closed time.Duration,
	err error) {
	var used, now, until time.Time
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		r := c.QueryRow(ctx, `insert into pace (origin, used, closed) values ($1, clock_timestamp() + $2, to_timestamp(0))
			on conflict (origin) do update set used = greatest(pace.used, clock_timestamp()) + $2
			returning used, closed, clock_timestamp()`, origin, time.Duration(n)*p.Every)
		return r.Scan(&used, &until, &now)
	})
	return used.Sub(now) - time.Duration(n-1+p.Burst)*p.Every, max(until.Sub(now), 0), err
}

// CloseOrigin implements store.SharedRateLimiter.
func (s *members) CloseOrigin(ctx context.Context, origin string, stop time.Duration, p store.RateLimit) error {
	return s.read(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.Exec(ctx, `insert into pace (origin, used, closed)
			values ($1, clock_timestamp() + $2 + $3, clock_timestamp() + $2) on conflict (origin) do update
			set used = greatest(pace.used, excluded.used), closed = greatest(pace.closed, excluded.closed)`,
			origin, stop, time.Duration(p.Burst-1)*p.Every)
		return err
	})
}

// sweepPace deletes rows that have become meaningless.
func sweepPace(ctx context.Context, c *conn) error {
	_, err := c.Exec(ctx, "delete from pace where used < clock_timestamp()")
	return err
}
