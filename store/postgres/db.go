package postgres

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A db is the database from the point of view of this host: its connections, transactions and notifications, and what
// the host knows about the content.
type db struct {
	address *address
	opts    Options
	pool    *pool

	failure atomic.Pointer[error]     // why nothing is written any more
	outage  atomic.Pointer[error]     // why writes are waiting
	closed  atomic.Bool               // reads and submissions are refused
	ending  chan struct{}             // closed to end all waiting
	finish  func()                    // closes ending
	removed chan struct{}             // closed when failure is set
	offset  atomic.Int64              // of the server's clock, in nanoseconds
	lived   atomic.Pointer[time.Time] // when the last successful heartbeat was sent
	jobs    sync.WaitGroup

	news news
	ear  ear
	store.Watchers
	kinds store.Watchers // watchers of documents, by kind

	contents  contents
	views     views
	weeks     sync.Map // week → true: it has a timeline table
	questions store.Sealer
}

func newDB(a *address) *db {
	s := &db{address: a, opts: a.opts, pool: newPool(a.config, a.opts.Pool), ending: make(chan struct{}),
		removed: make(chan struct{}), questions: store.NewSealer()}
	s.finish = sync.OnceFunc(func() { close(s.ending) })
	s.contents.init()
	s.views.init()
	return s
}

// PerStream reports whether runs should submit one commit per stream at their end.
func (s *db) PerStream() bool { return s.opts.PerStream }

// Stalled returns an error while commits wait because the server's disk is full.
func (s *db) Stalled() error {
	if p := s.outage.Load(); p != nil && errors.Is(*p, store.ErrNoSpace) {
		return fmt.Errorf("%w; make room on it", *p)
	}
	return nil
}

// stop makes the store refuse writes because of err.
func (s *db) stop(err error) {
	if s.failure.CompareAndSwap(nil, &err) {
		s.opts.Logger.Error("store_stopped", "error", err)
		close(s.removed)
	}
}

// usable returns the reason why nothing is written any more, or nil.
func (s *db) usable() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}
