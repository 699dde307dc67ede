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

// Options are limits; zero means the default given beside it.
type Options struct {
	Heartbeat     time.Duration // without a frame, and between two checks of the principal: 15 s
	WriteDeadline time.Duration // 30 s
	Look          time.Duration // for commits that woke nobody: 1 s
	Coalesce      time.Duration // between snapshots caused by measurements: 1 s

	PerRun, PerKey, Total int // 32, 128, 1024 clients

	// About adds to snapshots what is in no event. It is called when one is rendered; it may be
	// nil.
	About func(ctx context.Context, row store.Run) timeline.About
}

// ErrClosed means that the host is shutting down and accepts no more subscribers.
var ErrClosed = errors.New("streams are closed")

// A Hub creates streams and polls, and tracks the open ones. It is safe for concurrent use.
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

// New returns a hub over a log.
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

// Limits returns how many clients may follow one run, use one key, and exist in total.
func (h *Hub) Limits() (perRun, perKey, all int) { return h.opts.PerRun, h.opts.PerKey, h.opts.Total }

// closeGrace is how long a writer may take to send its last frame.
const closeGrace = time.Second

// Close refuses new subscribers, ends every stream after a final flush and without a terminal
// event, and waits for them. A client that does not read delays it by at most a second.
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
	for _, s := range idle { // they will not be served
		s.Close()
	}
	h.work.Wait()
}

// Settle waits, once no run is active, until every follower has seen the end of its run or ctx
// ends. Close follows it.
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

// settleLook is the polling interval of Settle.
const settleLook = 5 * time.Millisecond

// following reports whether anybody follows a run.
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

// Clients returns the number of open streams and polls.
func (h *Hub) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.places.total
}
