package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// openTime bounds opening.
const openTime = time.Minute

// OpenURL opens the database of a URL as a host that shares it with others, and creates missing tables. It returns an
// error that wraps *store.BusyError while another process runs as the same host. No error contains the password.
func OpenURL(text string, o Options) (*Store, error) {
	a, err := parse(text, o)
	if err != nil {
		return nil, fmt.Errorf("store postgres: %w", err)
	}
	s := newStore(a)
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	if err := s.open(ctx); err != nil {
		s.keeper.release()
		s.pool.drain()
		return nil, fmt.Errorf("open store %s: %w", a.shown, s.told(ctx, err))
	}
	s.news.init()
	s.ear.init()
	s.jobs.Go(s.keep)
	s.jobs.Go(s.tidy)
	s.jobs.Go(s.listen)
	s.jobs.Go(s.notify)
	s.jobs.Go(s.probe)
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, s.address.config.Copy())
	if err != nil {
		return err
	}
	s.keeper.conn = c
	if err := s.suits(ctx, c); err != nil {
		return err
	}
	if err := s.hold(ctx, c); err != nil {
		return err
	}
	if err := s.migrate(ctx, c); err != nil {
		return err
	}
	return s.join(ctx, c)
}
