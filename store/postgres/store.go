package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/store"
)

var _ store.Store = (*Store)(nil)

// A Store is a store in a database. Make one with Open.
type Store struct {
	address *address
	opts    Options
	pool    *pool

	failure atomic.Pointer[error] // why nothing is written any more
	outage  atomic.Pointer[error] // why writes wait
	ending  chan struct{}         // closed when nothing is waited for any more
	finish  func()                // closes it
	removed chan struct{}         // closed with failure
	keeper  keeper
	news    news
	offset  atomic.Int64 // of the server's clock, in nanoseconds
	jobs    sync.WaitGroup

	submitted submitted
	views     views
	contents  contents
	weeks     sync.Map // week → true: its timeline has a table
	store.Watchers
	kinds     store.Watchers // of documents, by their kind
	questions store.Sealer

	closeOnce sync.Once
}

// PerStream says that runs should submit one commit per stream at their end.
func (s *Store) PerStream() bool { return s.opts.PerStream }

// Stalled is why commits wait: the server's disk is full.
func (s *Store) Stalled() error {
	if p := s.outage.Load(); p != nil && errors.Is(*p, store.ErrNoSpace) {
		return fmt.Errorf("%w; make room on it", *p)
	}
	return nil
}

// stop makes the store refuse writes.
func (s *Store) stop(err error) {
	if s.failure.CompareAndSwap(nil, &err) {
		s.opts.Logger.Error("store_stopped", "error", err)
		close(s.removed)
	}
}

// usable is why nothing is written.
func (s *Store) usable() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Store) isClosed() bool {
	s.submitted.mu.Lock()
	defer s.submitted.mu.Unlock()
	return s.submitted.closed
}

// closeWait is how long Close waits for a server that is not there, or whose disk is full.
const closeWait = 5 * time.Second

// Close waits for what was submitted, then ends all connections. What the server does not take
// meanwhile fails. It is idempotent.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		late := time.AfterFunc(closeWait, s.finish)
		defer late.Stop()
		s.submitted.close()
		s.finish()
		s.jobs.Wait()
		s.views.close()
		s.leave()
		s.keeper.release()
		s.pool.drain()
	})
	return nil
}

// Verify implements store.Store.
func (s *Store) Verify(ctx context.Context) error { return s.snapshot(ctx, s.recount) }
