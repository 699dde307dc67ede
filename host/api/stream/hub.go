// Package stream carries a run's log to whoever follows it: event streams, polls,
// lists, and any other response that stays open. See docs/spec/api.md, "Reading
// events". It knows no web framework: a stream is a function that writes to a
// bufio.Writer until its client has gone.
//
// Nothing is queued for anybody. A subscriber has a cursor, a wake-up channel of
// capacity one, and reads what it has not seen: from the newest events, which all
// followers of a run share, or behind them from the store. Slow readers delay
// nobody and miss nothing.
//
// A Hub is made once per process. It is closed before the server is shut down,
// since open streams count as busy connections.
package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// Log is what a Hub reads; a store.Store is one.
type Log interface {
	Run(ctx context.Context, id store.RunID) (store.Run, error)
	RunHead(ctx context.Context, id store.RunID) (store.RunHead, error)
	Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error)
	EventsBefore(ctx context.Context, id store.RunID, before uint64, limit int) ([]store.Event, error)
	Watch(id store.RunID) (wake <-chan struct{}, stop func())
}

var _ Log = store.Store(nil)

// Options are limits; zero means the default that stands behind.
type Options struct {
	Heartbeat     time.Duration // 15 s without a frame, and between two checks of the principal
	WriteDeadline time.Duration // 30 s
	Look          time.Duration // 1 s: for commits that woke nobody
	Coalesce      time.Duration // 1 s between snapshots that measurements cause

	PerRun, PerKey, Total int // 32, 128, 1024 clients

	// About adds to snapshots what is in no event; it is called when one is
	// rendered. Nil for nothing.
	About func(ctx context.Context, row store.Run) timeline.About
}

// ErrClosed: the host is shutting down and takes no more subscribers.
var ErrClosed = errors.New("streams are closed")

// A Hub hands out streams and polls, and knows all that are open. All methods
// may be called concurrently.
type Hub struct {
	log   Log
	opts  Options
	folds folds
	done  chan struct{} // closed by Close
	work  sync.WaitGroup

	mu     sync.Mutex // guards what is below
	closed bool
	open   map[*Stream]bool
	feeds  map[store.RunID]*feed
	places places
}

// New makes a hub over a log.
func New(log Log, o Options) *Hub {
	for d, usual := range map[*time.Duration]time.Duration{
		&o.Heartbeat: 15 * time.Second, &o.WriteDeadline: 30 * time.Second, &o.Look: time.Second, &o.Coalesce: time.Second,
	} {
		if *d <= 0 {
			*d = usual
		}
	}
	for n, usual := range map[*int]int{&o.PerRun: 32, &o.PerKey: 128, &o.Total: 1024} {
		if *n <= 0 {
			*n = usual
		}
	}
	if o.About == nil {
		o.About = func(context.Context, store.Run) timeline.About { return timeline.About{} }
	}
	return &Hub{
		log: log, opts: o, done: make(chan struct{}), open: map[*Stream]bool{}, feeds: map[store.RunID]*feed{},
		places: places{runs: map[store.RunID]int{}, keys: map[string]int{}},
	}
}

// Limits returns how many clients may follow one run, hold one key, and be there in all.
func (h *Hub) Limits() (perRun, perKey, all int) { return h.opts.PerRun, h.opts.PerKey, h.opts.Total }

// closeGrace is how long a writer has to send its last frame.
const closeGrace = time.Second

// Close refuses new subscribers, ends every stream after a forced flush and
// without a terminal event, and waits for them. A client that does not read holds
// it up no longer than a second.
func (h *Hub) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
	var idle []*Stream
	for s := range h.open {
		if !s.hurry(closeGrace) {
			idle = append(idle, s)
		}
	}
	h.mu.Unlock()
	for _, s := range idle { // they will not be served any more
		s.Close()
	}
	h.work.Wait()
}

// Settle waits, once no run goes on, until whoever follows one has seen its end, or ctx
// is over. Close comes after it.
func (h *Hub) Settle(ctx context.Context) {
	look := time.NewTicker(settleLook)
	defer look.Stop()
	for h.following() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// settleLook is how often Settle looks.
const settleLook = 5 * time.Millisecond

// following reports whether anybody follows one run.
func (h *Hub) following() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for run := range h.feeds {
		if run != "" {
			return true
		}
	}
	return false
}

// Clients returns how many streams and polls are open.
func (h *Hub) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.places.total
}
