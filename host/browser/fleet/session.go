package fleet

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// Checkpoints that the host sets itself.
const (
	PhaseBegin      = "session-establish:begin"
	PhaseProbe      = "session-establish:probe"
	PhaseProbeAgain = "session-establish:probe-after-manual"
)

// States of a session.
const (
	SessionLive      = "live"
	SessionRecovered = "recovered"
	SessionNotProbed = "not_probed"
)

// ErrNobody is returned by Flow.Ask when nobody can be asked.
var ErrNobody = errors.New("nobody can be asked")

// A Flow finds out whether the owner is signed in and asks them to sign in if not.
type Flow struct {
	// Probe loads the probe's address and reports whether its condition holds. If it is nil, the
	// session is accepted as it is.
	Probe func(ctx context.Context) (live bool, err error)
	Login func(ctx context.Context) // loads the login page; the owner sees its failures
	// Ask asks the owner to sign in and returns when the question is closed, whatever its status.
	// It is nil where nobody can be asked, or returns ErrNobody.
	Ask     func(ctx context.Context, message string, timeout time.Duration) (id string, err error)
	Message string
	Timeout time.Duration
	Mark    func(phase string) // receives each checkpoint
}

// Established is the result of a Flow.
type Established struct {
	State         string
	InteractionID string // "" if nobody was asked
}

// Run establishes the session. Its error is session_not_live, whatever the reason; errors of the
// callbacks are passed through.
func (f Flow) Run(ctx context.Context) (Established, error) {
	if f.Probe == nil {
		return Established{State: SessionNotProbed}, nil
	}
	f.Mark(PhaseBegin)
	f.Mark(PhaseProbe)
	live, err := f.Probe(ctx)
	if err != nil || live {
		return Established{State: SessionLive}, err
	}
	if f.Ask == nil {
		return Established{}, notLive("the session is not live, and nobody can be asked to sign in")
	}
	f.Login(ctx)
	id, err := f.Ask(ctx, f.Message, f.Timeout)
	if errors.Is(err, ErrNobody) {
		return Established{}, notLive("the session is not live, and nobody can be asked to sign in")
	}
	if err != nil {
		return Established{}, err
	}
	f.Mark(PhaseProbeAgain)
	live, err = f.Probe(ctx)
	if err != nil {
		return Established{}, err
	}
	if !live {
		return Established{InteractionID: id}, notLive("the session is still not live after the owner was asked to sign in")
	}
	return Established{SessionRecovered, id}, nil
}

func notLive(message string) *engine.Refusal {
	return &engine.Refusal{Code: "session_not_live", Verb: engine.Open, Message: message}
}

// DefaultWatchdog is how long establishing a session may be silent.
const DefaultWatchdog = 120_000 * time.Millisecond

// WatchdogLimit parses SLUICE_SESSION_ESTABLISH_WATCHDOG_MS: a positive integer, otherwise the
// default applies.
func WatchdogLimit(text string) time.Duration {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 || ms > int64(24*time.Hour/time.Millisecond) {
		return DefaultWatchdog
	}
	return time.Duration(ms) * time.Millisecond
}

// A Watchdog trips once if no checkpoint arrives within its limit while a session is established.
// Only the gaps count, not the total time. It is safe for concurrent use.
type Watchdog struct {
	limit time.Duration
	trip  func(silent time.Duration, last string)

	mu     sync.Mutex // guards what follows
	timer  *time.Timer
	turn   int // number of the timer; a timer that was stopped too late has an old number
	last   string
	pauses map[string]*time.Timer // by reason; a nil timer has no end of its own
	over   bool
}

// NewWatchdog returns a running watchdog. trip is called at most once, from its own goroutine; last
// is the latest checkpoint, or <none>.
func NewWatchdog(limit time.Duration, trip func(silent time.Duration, last string)) *Watchdog {
	w := &Watchdog{limit: limit, trip: trip, last: "<none>", pauses: map[string]*time.Timer{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restart()
	return w
}

// Mark records a checkpoint.
func (w *Watchdog) Mark(phase string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = phase
	w.restart()
}

// Pause stops the clock for a reason, until Resume with the same reason or, unless most is 0, for
// at most most.
func (w *Watchdog) Pause(reason string, most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.pauses[reason]; old != nil {
		old.Stop()
	}
	var end *time.Timer
	if most > 0 {
		end = time.AfterFunc(most, func() { w.resume(reason, &end) })
	}
	w.pauses[reason] = end
	w.restart()
}

// Resume ends a pause and restarts the limit. Without a pause for that reason it does nothing.
func (w *Watchdog) Resume(reason string) { w.resume(reason, nil) }

// resume ends a pause. With by it does so only if the pause still has that timer.
func (w *Watchdog) resume(reason string, by **time.Timer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end, paused := w.pauses[reason]
	if !paused || by != nil && *by != end {
		return
	}
	if end != nil {
		end.Stop()
	}
	delete(w.pauses, reason)
	w.restart()
}

// Stop ends the watchdog without tripping it.
func (w *Watchdog) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, end := range w.pauses {
		if end != nil {
			end.Stop()
		}
	}
	w.restart()
}

// restart restarts the limit unless it is paused. The caller holds mu.
func (w *Watchdog) restart() {
	w.turn++
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.over || len(w.pauses) > 0 {
		return
	}
	turn, since := w.turn, time.Now()
	w.timer = time.AfterFunc(w.limit, func() { w.late(turn, since) })
}

func (w *Watchdog) late(turn int, since time.Time) {
	w.mu.Lock()
	if w.over || turn != w.turn {
		w.mu.Unlock()
		return
	}
	w.over = true
	last := w.last
	w.mu.Unlock()
	w.trip(time.Since(since), last)
}
