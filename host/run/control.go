package run

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/host/sandbox"
)

// Live is the part of a run's state that is only in memory.
type Live struct {
	Phase           string // preparing, running, waiting, finishing or committing; "" once it is over
	Queued          bool   // it waits for a slot of host.runs
	PauseRequested  bool   // but not in effect yet
	Paused          bool
	CancelRequested bool
	Resumable       bool          // it continues under the next host
	Stalled         string        // why the store delays it; "" if it does not
	OwnerWait       time.Duration // so far, as its budget counts it
	PauseTotal      time.Duration
	Usage           sandbox.Usage
	Memory          *Memory // nil if not known yet
}

// The drain policies of a pause.
const (
	DrainCurrentNode = "drain-current-node"
	DrainImmediate   = "immediate"
)

// A PauseRequest asks a run to pause.
type PauseRequest struct {
	Policy string // "" means DrainCurrentNode
	Reason string
	By     string // principal; "" means owner
}

// A ResumeRequest asks a paused run to continue.
type ResumeRequest struct {
	Reason string
	By     string // principal; "" means owner
}

// control holds what other goroutines see of a run and request from it. wake notifies the run's own goroutine,
// which then reads the requests.
type control struct {
	wake        chan struct{} // capacity 1, coalesced
	pauseWanted atomic.Bool   // a pause is requested; saves a lock per call

	stopping     atomic.Bool // the host is stopping, and waits for the end of the run
	drained      atomic.Bool // the host is drained, so the run is suspended while it waits for its owner
	suspendAsked atomic.Bool // likewise for the current question, because its place or memory is needed
	progressed   atomic.Bool // the run makes progress beyond its journal; see Run.Progressed

	mu       sync.Mutex // guards what follows
	live     Live
	status   string // final status in terms of the API; "" while active
	guest    Guest
	pausing  *pauseRequest
	resuming *resumeRequest
	waiting  time.Time // since when it waits for its owner and can be suspended; otherwise zero
	memory   Memory
}

func newControl() *control {
	return &control{wake: make(chan struct{}, 1), live: Live{Phase: "preparing"}}
}

// stop records that the host is stopping and waits for the end of the run.
func (c *control) stop() { c.stopping.Store(true) }

// hasProgressed reports whether the run makes progress beyond its journal.
func (c *control) hasProgressed() bool { return c.progressed.Load() }

// setProgressed records that the run is not, or no longer, answered from its journal.
func (c *control) setProgressed() { c.progressed.Store(true) }

func (c *control) stopped() bool { return c.stopping.Load() }

// wakeSignal is signalled when something was requested.
func (c *control) wakeSignal() <-chan struct{} { return c.wake }

// pausePending reports whether a pause is requested and not in effect.
func (c *control) pausePending() bool { return c.pauseWanted.Load() }

type pauseRequest struct {
	PauseRequest
	at time.Time
}

type resumeRequest struct {
	ResumeRequest
	at time.Time
}

// Pause asks the run to pause at its next drain point, and returns the time of the request without waiting. A
// repeated request has no effect. The error is a *Refusal with code conflict and details.runStatus for a run
// that is preparing, paused, past DONE, being cancelled or over. It may be called from any goroutine.
func (r *Run) Pause(q PauseRequest) (time.Time, error) { return r.r.control.pause(q) }

// SetDrained sets whether the run is suspended as soon as it waits for its owner and can continue elsewhere. It may
// be called from any goroutine.
func (r *Run) SetDrained(on bool) { r.r.control.setDrained(on) }

func (c *control) setDrained(on bool) { c.drained.Store(on) }

// WaitingSince returns since when the run has waited for its owner if it can be suspended meanwhile, otherwise the zero
// time. It may be called from any goroutine.
func (r *Run) WaitingSince() time.Time {
	c := r.r.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live.Paused || c.pausing != nil {
		return time.Time{}
	}
	return c.waiting
}

// SuspendIfWaiting suspends the run if it still waits for its owner. It may be called from any goroutine.
func (r *Run) SuspendIfWaiting() { r.r.control.requestSuspend() }

func (c *control) requestSuspend() { c.suspendAsked.Store(true) }

// shouldSuspend reports whether the run should be suspended to make room for others.
func (c *control) shouldSuspend() bool { return c.suspendAsked.Load() }

// setWaiting sets since when the run waits and can be suspended; zero if it does not.
func (c *control) setWaiting(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting = since; since.IsZero() {
		c.suspendAsked.Store(false)
	}
}

// hostDrained reports whether the host is drained.
func (c *control) hostDrained() bool { return c.drained.Load() }

// Resume continues a paused run, or withdraws a pause that is not in effect yet. It does not wait. The error is
// a *Refusal with code conflict and details.runStatus. It may be called from any goroutine.
func (r *Run) Resume(q ResumeRequest) (time.Time, error) { return r.r.control.resume(q) }

// Live returns the current state of the run. It may be called from any goroutine.
func (r *Run) Live() Live {
	c := r.r.control
	c.mu.Lock()
	live, guest := c.live, c.guest
	live.PauseRequested, live.Memory = c.pausing != nil, c.memory.copied()
	c.mu.Unlock()
	if guest != nil {
		live.Usage = guest.Usage()
	}
	return live
}

// recordUsage records the memory of the worker at a time since the start of the run, and how long the run has waited
// for its owner and was paused.
func (c *control) recordUsage(since time.Duration, bytes uint64, owner, paused time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory.add(since, bytes)
	c.live.OwnerWait, c.live.PauseTotal = owner, paused
}

// memorySoFar returns the memory of the worker so far, nil for none.
func (c *control) memorySoFar() *Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory.copied()
}

func (c *control) pause(q PauseRequest) (time.Time, error) {
	q.Policy = cmp.Or(q.Policy, DrainCurrentNode)
	c.mu.Lock()
	defer c.mu.Unlock()
	if status := c.unpausable(); status != "" {
		return time.Time{}, refuse("conflict", "a run that is %s cannot be paused", status).with("runStatus", status)
	}
	if c.pausing == nil {
		c.pausing = &pauseRequest{q, time.Now()}
		c.pauseWanted.Store(true)
		c.signal()
	}
	return c.pausing.at, nil
}

func (c *control) resume(q ResumeRequest) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pausing != nil: // not in effect yet: withdrawn
		c.drop()
		return time.Now(), nil
	case !c.live.Paused:
		status := c.current()
		return time.Time{}, refuse("conflict", "a run that is %s cannot be resumed", status).with("runStatus", status)
	case c.resuming == nil:
		c.resuming = &resumeRequest{q, time.Now()}
		c.signal()
	}
	return c.resuming.at, nil
}

// unpausable returns the status of a run that cannot be paused, "" if it can. The caller holds mu, also for
// current and drop.
func (c *control) unpausable() string {
	switch {
	case c.live.Paused, c.live.CancelRequested:
	case c.live.Phase == "running", c.live.Phase == "waiting":
		return ""
	}
	return c.current()
}

// current returns the status of the run as refusals name it, without the kinds of waiting.
func (c *control) current() string {
	switch {
	case c.status != "":
		return c.status
	case c.live.Paused:
		return "paused"
	case c.live.Phase == "preparing":
		return "pending"
	}
	return "running"
}

func (c *control) drop() {
	c.pausing = nil
	c.pauseWanted.Store(false)
}

func (c *control) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// change updates the live state. It is called by the run's goroutine.
func (c *control) change(f func(*Live)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.live)
	if c.live.Phase != "running" && c.live.Phase != "waiting" {
		c.drop() // the run ends first, which drops the request
	}
}

func (c *control) phase(name string) { c.change(func(l *Live) { l.Phase = name }) }

// setGuest sets the guest whose usage Live reports.
func (c *control) setGuest(g Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guest = g
}

// setFinalStatus sets the final status.
func (c *control) setFinalStatus(status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live.Phase, c.live.Paused, c.live.Stalled, c.status = "", false, "", status
	c.drop()
}

// pendingPause returns the requested pause that is not in effect, nil for none.
func (c *control) pendingPause() *pauseRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pausing
}

// takePause puts the requested pause into effect and returns it, nil if it was withdrawn.
func (c *control) takePause() *pauseRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.pausing
	if q != nil {
		c.drop()
		c.live.Paused = true
	}
	return q
}

// pendingResume returns the request to continue, nil for none.
func (c *control) pendingResume() *resumeRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resuming
}

// endPause ends a pause.
func (c *control) endPause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live.Paused, c.resuming = false, nil
}
