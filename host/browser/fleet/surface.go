package fleet

import (
	"context"
	"errors"
	"sync"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A Surface is the lease that one run has on one browser (B2). Its methods may be
// called from any goroutine.
type Surface struct {
	m       *Manager
	id      string
	request Request
	process *process
	gone    chan struct{} // closed once it is lost
	over    chan struct{} // closed once its end begins
	done    chan struct{} // closed once nothing of it is left

	mu           sync.Mutex // guards what follows
	lost         *Probe
	owner        bool
	establishing bool
	ready        bool
	closing      bool
	ended        bool
}

// ID is sf_…; Profile the name of the profile; Persistent whether it is kept.
func (s *Surface) ID() string       { return s.id }
func (s *Surface) Profile() string  { return s.request.Profile }
func (s *Surface) Persistent() bool { return s.request.Persistent }

// Reused reports a browser that ran before (B170).
func (s *Surface) Reused() bool { return s.process.reused }

// Browser is the browser. After the end of the surface it answers page.ErrLost.
func (s *Surface) Browser() page.Browser { return s.process.leased }

// Home is a directory that the browser can read and that is removed with the
// surface; UID is whom files in it belong to, 0 for the host itself.
func (s *Surface) Home() string { return s.process.home }

// UID is see Home.
func (s *Surface) UID() int { return s.process.uid }

// Gone is closed once the surface is lost; Fault says why then.
func (s *Surface) Gone() <-chan struct{} { return s.gone }

// State is what holds at this moment: process, pipe and page are looked at first,
// so an event that was missed does not matter (B166).
func (s *Surface) State() State {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lost != nil:
		return Lost
	case s.ended:
		return Closed
	case s.closing:
		return Closing
	case s.owner:
		return OwnerControl
	case s.establishing:
		return Establishing
	case s.ready:
		return Ready
	}
	return Starting
}

// Fault is why the surface is lost; nil while it is not.
func (s *Surface) Fault() *Probe {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Establish says that a session is being made: verbs may run, and Done ends it.
func (s *Surface) Establish(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.establishing = on
}

// Ready ends the opening of the surface (B167).
func (s *Surface) Ready() {
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	s.event(Event{Type: EventReady, Restored: s.process.restored && !s.process.reused})
}

// Owner says whether the owner holds the lease of control (B221).
func (s *Surface) Owner(holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = holds
}

// look takes the level-triggered facts in.
func (s *Surface) look() {
	if isClosed(s.over) {
		return
	}
	if p := s.facts(); !p.OK {
		s.Lose(p)
	}
}

// facts are what is known without asking.
func (s *Surface) facts() Probe {
	b := s.process.leased
	switch {
	case isClosed(b.Lost()) && b.Fault() == nil:
		return Probe{Code: CodeUnreachable, Detail: "the browser's process ended"}
	case isClosed(s.process.fence.Lost()):
		return Probe{Code: CodeNotReady, Detail: "the browser's way to the network ended"}
	}
	return faultOf(b.Fault())
}

// faultOf is the code of a fault that a browser knows of.
func faultOf(err error) Probe {
	switch {
	case err == nil:
		return Probe{OK: true}
	case errors.Is(err, chromium.ErrExited):
		return Probe{Code: CodeUnreachable, Detail: "the browser's process ended"}
	case errors.Is(err, page.ErrLost):
		return Probe{Code: CodeDisconnected, Detail: "the connection to the browser ended"}
	}
	return Probe{Code: CodePageStale, Detail: "the page's process crashed, or its tab is gone"}
}

// watch waits for the signals (a) and (b) of B198.
func (s *Surface) watch() {
	b, fence := s.process.leased, s.process.fence
	s.m.work.Go(func() {
		for {
			select {
			case <-s.over:
				return
			case <-b.Lost():
			case <-fence.Lost():
			case <-b.Health():
			}
			s.look()
			if isClosed(s.gone) {
				return
			}
		}
	})
}

// Lose says that the surface is lost: it is final, counts once, and ends the
// browser (B166, B205). A surface whose end has begun cannot be lost.
func (s *Surface) Lose(p Probe) {
	p.OK = false
	s.mu.Lock()
	if s.lost != nil || s.closing {
		s.mu.Unlock()
		return
	}
	s.lost = &p
	s.mu.Unlock()
	close(s.gone)
	if s.request.Lost != nil {
		s.request.Lost(p)
	}
	s.m.work.Go(func() { s.Release(context.Background()) })
}

// Release ends the lease exactly once (B171), gracefully unless the browser is
// lost, and returns when nothing of it is left. It may be called again, and waits
// then.
func (s *Surface) Release(ctx context.Context) {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	lost := s.lost != nil
	s.mu.Unlock()
	if !first {
		<-s.done
		return
	}
	close(s.over)
	p := s.process
	if lost || !s.m.keep(ctx, p) {
		p.end(ctx)
	}
	s.m.mu.Lock()
	delete(s.m.live, s)
	s.m.mu.Unlock()
	s.m.slots.give()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.event(Event{Type: EventReleased})
	if !s.request.Persistent {
		s.m.refill(s.request.Kind)
	}
	close(s.done)
}

func (s *Surface) event(e Event) {
	e.ID, e.Profile = s.id, s.request.Profile
	if s.request.Event != nil {
		s.request.Event(e)
	}
}
