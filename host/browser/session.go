package browser

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

// A Session is the browser binding of one run. Handle is called for one call at a time; all other
// methods may be called concurrently with it.
type Session struct {
	host      *Host
	o         SessionOptions
	seals     *seals
	streams   *streams
	rate      *rate
	questions *questions
	life      context.Context // ends with the session
	cancel    context.CancelFunc
	work      sync.WaitGroup

	runID string
	back  binding.Run // nil before Begin
	// page is held by whoever uses the page: a verb, or briefly Taken. A verb that waits for the
	// owner releases it meanwhile.
	page chan struct{}
	// owner is set while the owner has the control lease.
	owner         atomic.Bool
	establishment establishment
	deliveries    deliveries
	tracing       tracing

	mu       sync.Mutex // guards what follows
	calling  bool
	opened   *opened
	failed   bool // a surface failed to start
	paused   bool
	finished chan struct{} // closed when Close is done; nil before it begins
}

// opened is the surface of a run with its engine.
type opened struct {
	*fleet.Surface
	engine worker
}

// A worker is the engine of a surface; *engine.Engine is one.
type worker interface {
	Do(ctx context.Context, r *engine.Request) (any, *engine.Refusal)
	Pause()
	Resume()
	Released()
	Close()
}

func newSession(h *Host, o SessionOptions) *Session {
	s := &Session{host: h, o: o, page: make(chan struct{}, 1)}
	s.seals = newSeals(func(field, origin, placement string) { s.back.SealedUsed(field, origin, placement) })
	s.streams = newStreams()
	s.rate = newRate(rateOf(h.o.ActionsPerMinute, o.Request.MaxActions))
	s.life, s.cancel = context.WithCancel(context.Background())
	s.establishment.pauses = map[string]time.Time{}
	s.establishment.s, s.deliveries.s, s.tracing.s = s, s, s
	s.questions = &questions{s: s, open: map[string]bool{}}
	return s
}

// Begin sets the run's id and the run to report to. It is called once, before everything else.
func (s *Session) Begin(runID string, back binding.Run) { s.runID, s.back = runID, back }

// Seal lets a handle stand for a value that may be typed at the destinations with the placement
// browser_fill. forms are the encodings in which a page may return it.
func (s *Session) Seal(field, handle, value string, forms [][]byte, to []abi.Destination) {
	s.seals.add(field, handle, value, forms, to)
}

// Registered reports whether a surface is registered for the run.
func (s *Session) Registered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened != nil
}

// Paused stops the clocks of the binding while the run is paused.
func (s *Session) Paused(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused == on {
		return
	}
	s.paused = on
	if s.opened != nil {
		if on {
			s.opened.engine.Pause()
		} else {
			s.opened.engine.Resume()
		}
	}
	s.establishment.pause("run", on, 0)
}

// current returns the surface, or nil if there is none.
func (s *Session) current() *opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Close releases the surface gracefully, ending what is going on, and returns when nothing of it is
// left. It may be called again.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.finished != nil {
		finished := s.finished
		s.mu.Unlock()
		select {
		case <-finished:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.finished = make(chan struct{})
	o, dog := s.opened, s.establishment.watchdog
	s.mu.Unlock()
	s.cancel()
	if dog != nil {
		dog.Stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.page <- struct{}{} // wait for the verb that uses the page
		<-s.page
		if o != nil {
			o.engine.Close()
			o.Release(context.WithoutCancel(ctx))
		}
		s.work.Wait()
		s.tracing.finishTrace(ctx)
		s.streams.clear()
		s.seals.clear()
		close(s.finished)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
