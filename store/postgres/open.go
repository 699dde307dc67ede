package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// openTime bounds opening, migrations aside.
const openTime = time.Minute

// OpenURL opens the database of a URL, and makes the tables where there are none. It returns
// *store.BusyError while another host has it. No error has the password in it.
func OpenURL(text string, o Options) (*Store, error) {
	a, err := parse(text, o)
	if err != nil {
		return nil, fmt.Errorf("store postgres: %w", err)
	}
	s := &Store{address: a, opts: a.opts, ending: make(chan struct{}), questions: store.NewSealer()}
	s.finish = sync.OnceFunc(func() { close(s.ending) })
	s.pool = newPool(a.config, a.opts.Pool)
	s.submitted.init(s)
	s.views.init()
	s.contents.init()
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	if err := s.open(ctx); err != nil {
		s.keeper.release()
		s.pool.drain()
		return nil, fmt.Errorf("open store %s: %w", a.shown, s.told(ctx, err))
	}
	s.jobs.Go(s.keep)
	s.jobs.Go(s.tidy)
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
	return s.take(ctx, c)
}

// hold takes the lock of the host, which lasts as long as the connection.
func (s *Store) hold(ctx context.Context, c *pgx.Conn) error {
	var held bool
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if err := c.QueryRow(ctx, "select pg_try_advisory_lock($1)", int64(s.lock("host", ""))).Scan(&held); err != nil || held {
			return err
		}
		if time.Since(began) > time.Second { // a host that ended a moment ago may have it for so long
			return s.busy(ctx, c)
		}
	}
}

// busy says who has the database.
func (s *Store) busy(ctx context.Context, c *pgx.Conn) error {
	e := &inUse{store.BusyError{Dir: s.address.shown}}
	var host string
	var pid int
	var opened time.Time
	err := c.QueryRow(ctx, "select host, pid, opened from installation").Scan(&host, &pid, &opened)
	if err != nil {
		e.Host = "another host"
		return e
	}
	e.Host = fmt.Sprintf("process %d on %s since %s", pid, host, store.Time(opened))
	if here, err := os.Hostname(); err == nil && here == host {
		e.PID = pid
	}
	return e
}

// take makes this the host of the database: what an earlier one has begun is over when it
// returns, and what it begins from now on is refused.
func (s *Store) take(ctx context.Context, c *pgx.Conn) error {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	b := &pgx.Batch{}
	b.Queue("begin")
	s.lock("epoch", "").alone(b)
	b.Queue("update installation set epoch = epoch + 1, host = $1, pid = $2, opened = clock_timestamp() returning epoch", host, os.Getpid()).
		QueryRow(func(r pgx.Row) error { return r.Scan(&s.epoch) })
	b.Queue("commit")
	return c.SendBatch(ctx, b).Close()
}

// A keeper is the connection that holds the lock of the host.
type keeper struct{ conn *pgx.Conn }

func (k *keeper) release() {
	if k.conn != nil {
		end(k.conn)
	}
}

// keepEvery is how often the lock is looked after.
const keepEvery = 5 * time.Second

// keep looks after the lock of the host: where its connection broke it is taken again, and
// where another host was faster the store stops.
func (s *Store) keep() {
	look := time.NewTicker(keepEvery)
	defer look.Stop()
	for {
		select {
		case <-s.ending:
			return
		case <-look.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), keepEvery)
		if err := s.keeper.conn.Ping(ctx); err != nil {
			s.retake(ctx)
		}
		cancel()
	}
}

func (s *Store) retake(ctx context.Context) {
	c, err := pgx.ConnectConfig(ctx, s.address.config.Copy())
	if err != nil {
		return // it is tried again
	}
	var epoch int64
	if err = c.QueryRow(ctx, "select epoch from installation").Scan(&epoch); err == nil && epoch != s.epoch {
		s.stop(errTaken)
	} else if err == nil {
		err = s.hold(ctx, c)
	}
	var busy *inUse
	if errors.As(err, &busy) {
		s.opts.Logger.Warn("host_lock_lost", "error", err) // the epoch decides who may write
	}
	if err != nil {
		end(c)
		return
	}
	end(s.keeper.conn)
	s.keeper.conn = c
}
