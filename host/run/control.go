package run

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/host/sandbox"
)

// Live is the state of a run that is in memory only.
type Live struct {
	Phase           string // preparing, running, waiting, finishing, committing; "" once it is over
	Queued          bool   // it waits for a slot of host.runs
	PauseRequested  bool   // and not in effect yet
	Paused          bool
	CancelRequested bool
	Resumable       bool   // it goes on under the next host
	Stalled         string // why the store keeps it waiting; "" while it does not
	Usage           sandbox.Usage
	Memory          *Memory // nil: not known yet
}

// The drain policies of a pause.
const (
	DrainCurrentNode = "drain-current-node"
	DrainImmediate   = "immediate"
)

// A PauseRequest asks a run to stand still.
type PauseRequest struct {
	Policy string // "" is DrainCurrentNode
	Reason string
	By     string // principal, "" is owner
}

// A ResumeRequest asks a paused run to go on.
type ResumeRequest struct {
	Reason string
	By     string // principal, "" is owner
}

// control is what other goroutines see of a run and ask of it. The run's own
// goroutine is told by wake and looks.
type control struct {
	wake  chan struct{} // capacity 1, coalesced
	wants atomic.Bool   // a pause is asked for; spares the run a lock per call

	stopping atomic.Bool // the host stops, and waits for the run's end
	drained  atomic.Bool // the host is, and puts the run down while it waits for its owner
	sleeps   atomic.Bool // its place or its memory is wanted: the same, for this question
	wentOn   atomic.Bool // it does what it did not do before; see Run.WentOn

	mu       sync.Mutex // guards what follows
	live     Live
	status   string // how it ended, as the API says it; "" while active
	guest    Guest
	pausing  *pauseAsked
	resuming *resumeAsked
	waiting  time.Time // since when for its owner, of a run that can be put down; else zero
	memory   Memory
}

func newControl() *control {
	return &control{wake: make(chan struct{}, 1), live: Live{Phase: "preparing"}}
}

// stop says that the host stops and waits for the run's end.
func (c *control) stop() { c.stopping.Store(true) }

// going reports whether it does.
func (c *control) going() bool { return c.wentOn.Load() }

// goesOn says that a run is not, or no more, answered from its journal.
func (c *control) goesOn() { c.wentOn.Store(true) }

func (c *control) stopped() bool { return c.stopping.Load() }

// woken is signalled when somebody asked for something.
func (c *control) woken() <-chan struct{} { return c.wake }

// wanted reports whether a pause is asked for and not in effect.
func (c *control) wanted() bool { return c.wants.Load() }

type pauseAsked struct {
	PauseRequest
	at time.Time
}

type resumeAsked struct {
	ResumeRequest
	at time.Time
}

// Pause asks the run to stand still at its next drain point and returns when it
// was asked to, without waiting. Asking again before that changes nothing. The
// error is a *Refusal with code conflict and details.runStatus for a run that is
// preparing, paused, past DONE, being cancelled or over. Any goroutine
// may call it.
func (r *Run) Pause(q PauseRequest) (time.Time, error) { return r.r.control.pause(q) }

// PutDown says whether the run is to be put down as soon as it waits for its owner and can go on
// elsewhere. Any goroutine may call it.
func (r *Run) PutDown(on bool) { r.r.control.putDown(on) }

func (c *control) putDown(on bool) { c.drained.Store(on) }

// Waits is since when the run has waited for its owner, if it can sleep meanwhile; zero else. Any
// goroutine may call it.
func (r *Run) Waits() time.Time {
	c := r.r.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live.Paused || c.pausing != nil {
		return time.Time{}
	}
	return c.waiting
}

// Sleep has a run put down that waits for its owner, if it still does. Any goroutine may call it.
func (r *Run) Sleep() { r.r.control.makeRoom() }

func (c *control) makeRoom() { c.sleeps.Store(true) }

// makesRoom reports whether the run is to sleep for others.
func (c *control) makesRoom() bool { return c.sleeps.Load() }

// waits says since when the run waits and can be put down; zero for not.
func (c *control) waits(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting = since; since.IsZero() {
		c.sleeps.Store(false)
	}
}

// leaving reports whether the host is drained.
func (c *control) leaving() bool { return c.drained.Load() }

// Resume lets a paused run go on, or takes back a pause that has not taken
// effect. It does not wait. The error is a *Refusal with code conflict and
// details.runStatus. Any goroutine may call it.
func (r *Run) Resume(q ResumeRequest) (time.Time, error) { return r.r.control.resume(q) }

// Live tells where the run is. Any goroutine may call it.
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

// measured notes the memory of the worker at a time after the run's start.
func (c *control) measured(since time.Duration, bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory.add(since, bytes)
}

// remembered is the memory of the worker so far, nil for none.
func (c *control) remembered() *Memory {
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
		c.pausing = &pauseAsked{q, time.Now()}
		c.wants.Store(true)
		c.signal()
	}
	return c.pausing.at, nil
}

func (c *control) resume(q ResumeRequest) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pausing != nil: // not in effect: it never was
		c.drop()
		return time.Now(), nil
	case !c.live.Paused:
		status := c.current()
		return time.Time{}, refuse("conflict", "a run that is %s cannot be resumed", status).with("runStatus", status)
	case c.resuming == nil:
		c.resuming = &resumeAsked{q, time.Now()}
		c.signal()
	}
	return c.resuming.at, nil
}

// unpausable is the status of a run that cannot be paused, "" for one that can.
// mu is held, as in current and drop.
func (c *control) unpausable() string {
	switch {
	case c.live.Paused, c.live.CancelRequested:
	case c.live.Phase == "running", c.live.Phase == "waiting":
		return ""
	}
	return c.current()
}

// current is the run's status as refusals name it; which way a run waits is not
// told apart.
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
	c.wants.Store(false)
}

func (c *control) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// change is how the run's goroutine tells where it is.
func (c *control) change(f func(*Live)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.live)
	if c.live.Phase != "running" && c.live.Phase != "waiting" {
		c.drop() // the end came first: the request lapses
	}
}

func (c *control) phase(name string) { c.change(func(l *Live) { l.Phase = name }) }

// runs shows whose usage is the run's.
func (c *control) runs(g Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guest = g
}

// over is the end.
func (c *control) over(status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live.Phase, c.live.Paused, c.live.Stalled, c.status = "", false, "", status
	c.drop()
}

// asked returns the pause that is wanted and not in effect, nil for none.
func (c *control) asked() *pauseAsked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pausing
}

// paused makes the pause that is wanted one that is in effect; nil when it was
// taken back.
func (c *control) paused() *pauseAsked {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.pausing
	if q != nil {
		c.drop()
		c.live.Paused = true
	}
	return q
}

// resumes returns the request to go on, nil for none.
func (c *control) resumes() *resumeAsked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resuming
}

// resumed ends a pause.
func (c *control) resumed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live.Paused, c.resuming = false, nil
}
