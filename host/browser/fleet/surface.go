package fleet

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A State is a stage in the life of a surface. It is computed from facts on each request, so that a
// missed event cannot leave a dead surface ready.
type State string

// The states.
const (
	Requested    State = "requested"
	Starting     State = "starting"
	Establishing State = "establishing"
	Ready        State = "ready"
	OwnerControl State = "owner_control"
	Closing      State = "closing"
	Closed       State = "closed"
	Lost         State = "lost"
)

// An Event is one step in the life of a surface, for the timeline of its run. It contains no
// addresses, process ids or paths.
type Event struct {
	Type     string // run.browser_surface_requested, _queued, _starting, _ready, _probe_failed, _failed or _released
	ID       string // of the surface
	Profile  string
	Code     string // the reason, if there is one
	Restored bool   // the profile was replaced by its copy
	Probe    *Probe
}

// The types of events.
const (
	EventRequested   = "run.browser_surface_requested"
	EventQueued      = "run.browser_surface_queued"
	EventStarting    = "run.browser_surface_starting"
	EventReady       = "run.browser_surface_ready"
	EventProbeFailed = "run.browser_surface_probe_failed"
	EventFailed      = "run.browser_surface_failed"
	EventReleased    = "run.browser_surface_released"
)

// A Probe says whether a browser and its page answer. Detail is written by the host, with at most
// 200 characters and no addresses, paths or process ids.
type Probe struct {
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Codes of probes, and of a surface that never existed.
const (
	CodeNotReady     = chromium.CodeNotReady
	CodeUnreachable  = chromium.CodeUnreachable
	CodeDisconnected = chromium.CodeDisconnected
	CodePageStale    = chromium.CodePageStale
	CodeTimeout      = chromium.CodeTimeout
	CodeNoSurface    = "no_surface_registered"
	CodeStartFailed  = "surface_start_failed"
)

// A Surface is the lease of one run on one browser. It is safe for concurrent use.
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

// ID returns the surface's id, sf_…; Profile the profile's name; Persistent whether the profile is
// kept.
func (s *Surface) ID() string       { return s.id }
func (s *Surface) Profile() string  { return s.request.Profile }
func (s *Surface) Persistent() bool { return s.request.Persistent }

// Reused reports whether the browser served an earlier run.
func (s *Surface) Reused() bool { return s.process.reused }

// Browser returns the browser. After the end of the surface its methods return page.ErrLost.
func (s *Surface) Browser() page.Browser { return s.process.leased }

// Home returns a directory that the browser can read and that is removed with the surface.
func (s *Surface) Home() string { return s.process.home }

// UID returns the owner of files in Home, 0 for the host's user.
func (s *Surface) UID() int { return s.process.uid }

// Gone is closed once the surface is lost; Fault then returns the reason.
func (s *Surface) Gone() <-chan struct{} { return s.gone }

// State returns the current state, after checking process, connection and page.
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

// Fault returns why the surface is lost, or nil if it is not.
func (s *Surface) Fault() *Probe {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Establish says whether a session is being established, during which verbs may run.
func (s *Surface) Establish(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.establishing = on
}

// Ready ends the opening of the surface.
func (s *Surface) Ready() {
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	s.event(Event{Type: EventReady, Restored: s.process.restored && !s.process.reused})
}

// Owner says whether the owner holds the control lease.
func (s *Surface) Owner(holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = holds
}

// look checks the facts and loses the surface if they say so.
func (s *Surface) look() {
	if isClosed(s.over) {
		return
	}
	if p := s.facts(); !p.OK {
		s.Lose(p)
	}
}

// facts returns what is known without asking the browser.
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

// faultOf returns the probe result for a known fault of a browser.
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

// watch waits for the end of the process and for health signals of the browser.
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

// Lose marks the surface as lost, finally and once, and ends the browser. A surface that is closing
// cannot be lost.
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

// Release ends the lease once, gracefully unless the browser is lost, and returns when nothing of
// it is left. Further calls wait for the same.
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

// Bounds of the interval between probes.
const (
	DefaultInterval = 2000 * time.Millisecond
	minInterval     = 5 * time.Millisecond
	maxInterval     = 10_000 * time.Millisecond
	browserTime     = 1000 * time.Millisecond
)

// Interval clamps d to its bounds; 0 is the default.
func Interval(d time.Duration) time.Duration {
	return min(max(cmp.Or(d, DefaultInterval), minInterval), maxInterval)
}

// Watch probes the surface while an interaction uses it, until ctx ends or the surface is lost: at
// once, then at every interval. told receives the first result and each change and must return at
// once.
//
// Until a probe has passed, a silent page only counts as unavailable, and only a silent browser as
// a loss. After that a page whose silence is confirmed is a loss too.
func (s *Surface) Watch(ctx context.Context, every time.Duration, told func(Probe)) {
	every = Interval(every)
	armed := false
	var last *Probe
	for {
		p := s.probe(ctx)
		if ctx.Err() != nil || isClosed(s.over) || isClosed(s.gone) {
			return
		}
		if !p.OK && (armed || p.Code != CodeTimeout || !s.browserAnswers(ctx)) {
			if ctx.Err() == nil {
				s.Lose(p)
			}
			return
		}
		if last == nil || *last != p {
			told(p)
			if !p.OK {
				s.event(Event{Type: EventProbeFailed, Code: p.Code, Probe: &p})
			}
		}
		last, armed = &p, armed || p.OK
		select {
		case <-time.After(every):
		case <-ctx.Done():
		case <-s.over:
		}
	}
}

func (s *Surface) probe(ctx context.Context) Probe {
	if p := s.facts(); !p.OK {
		return p
	}
	return s.m.o.Check(ctx, s.process.leased)
}

// browserAnswers asks the browser itself, twice if necessary.
func (s *Surface) browserAnswers(ctx context.Context) bool {
	for range 2 {
		limit, stop := context.WithTimeout(ctx, browserTime)
		err := s.process.leased.Ping(limit)
		late := limit.Err() != nil
		stop()
		if err == nil || !late {
			return err == nil
		}
	}
	return false
}

// Probe asks once whether the surface exists and answers. It has no effect, except that Fault
// reports a browser known to be gone.
func (s *Surface) Probe(ctx context.Context) Probe {
	if fault := s.Fault(); fault != nil {
		return *fault
	}
	if isClosed(s.over) {
		return Probe{Code: CodeNotReady, Detail: "the browser is being closed"}
	}
	return s.probe(ctx)
}
