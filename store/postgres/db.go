package postgres

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A db is the database as this host uses it: its connections, transactions and wake-ups, and
// what the host knows of what is in it.
type db struct {
	address *address
	opts    Options
	pool    *pool

	failure atomic.Pointer[error]     // why nothing is written any more
	outage  atomic.Pointer[error]     // why writes wait
	closed  atomic.Bool               // nothing is read or submitted any more
	ending  chan struct{}             // closed when nothing is waited for any more
	finish  func()                    // closes it
	removed chan struct{}             // closed with failure
	offset  atomic.Int64              // of the server's clock, in nanoseconds
	lived   atomic.Pointer[time.Time] // when the newest heartbeat that arrived was sent
	jobs    sync.WaitGroup

	news news
	ear  ear
	store.Watchers
	kinds store.Watchers // of documents, by their kind

	contents  contents
	views     views
	weeks     sync.Map // week → true: its timeline has a table
	questions store.Sealer
}

func newDB(a *address) *db {
	s := &db{address: a, opts: a.opts, pool: newPool(a.config, a.opts.Pool), ending: make(chan struct{}), removed: make(chan struct{}), questions: store.NewSealer()}
	s.finish = sync.OnceFunc(func() { close(s.ending) })
	s.contents.init()
	s.views.init()
	return s
}

// PerStream says that runs should submit one commit per stream at their end.
func (s *db) PerStream() bool { return s.opts.PerStream }

// Stalled is why commits wait: the server's disk is full.
func (s *db) Stalled() error {
	if p := s.outage.Load(); p != nil && errors.Is(*p, store.ErrNoSpace) {
		return fmt.Errorf("%w; make room on it", *p)
	}
	return nil
}

// stop makes the store refuse writes.
func (s *db) stop(err error) {
	if s.failure.CompareAndSwap(nil, &err) {
		s.opts.Logger.Error("store_stopped", "error", err)
		close(s.removed)
	}
}

// usable is why nothing is written.
func (s *db) usable() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}
