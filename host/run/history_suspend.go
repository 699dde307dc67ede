package run

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Suspended is an active run that nobody performs.
type Suspended struct {
	Run      store.Run
	Lease    store.Lease
	Open     store.Interaction // its open question; without an ID the run does not wait for its owner
	Question Question          // as Owner.Ask gets it, without Timeout
	Request  []byte            // see History.Request
	Cause    string            // cause of the resumption, for run.resumed
	mark     mark
}

// ErrSuspended is returned for a run that was suspended and will be resumed from its journal. It has no result.
var ErrSuspended = errors.New("the run waits, and nobody performs it")

// Suspension reads what is stored of a run that nobody performs. The error says why it cannot be resumed.
func Suspension(ctx context.Context, st store.Store, l store.Lease, key []byte) (*Suspended, error) {
	rec, err := st.Run(ctx, l.RunID)
	if err != nil {
		return nil, err
	}
	open, err := st.Pending(ctx, l.RunID)
	if err != nil {
		return nil, err
	}
	if !Outlives(rec, open) {
		return nil, errors.New("the run does not outlive its host")
	}
	s, err := newSealer(key, l.RunID)
	if err != nil {
		return nil, err
	}
	out, n, kind := &Suspended{Run: rec, Lease: l}, uint64(0), byte(entryBegin)
	if len(open) > 0 {
		out.Open, n, kind = open[0], open[0].Journal-1, entryMark
	}
	piece, err := st.Journal(ctx, l.RunID, n)
	if err != nil {
		return nil, err
	}
	_, entries, err := s.open(n, piece)
	if err != nil {
		return nil, err
	}
	e, _, err := parseEntry(entries)
	if err == nil && (e.kind != kind || json.Unmarshal(e.data, &out.mark) != nil || out.mark.ID != out.Open.ID) {
		err = errHistory
	}
	out.Question, out.Request = out.mark.Question, out.mark.Request
	return out, err
}

// Outlives reports whether a run can be resumed: it is resumable, or it waits for an answer and has a journal.
func Outlives(rec store.Run, open []store.Interaction) bool {
	if rec.Status != "active" || len(open) == 0 {
		return rec.Status == "active" && rec.Resumable
	}
	return rec.Phase == "waiting" && len(open) == 1 && open[0].Journal > 0
}

// suspendable reports whether the run can be suspended now.
func (h *history) suspendable() bool {
	if h.suspending || !h.outcome.ready() || h.reader != nil {
		return !h.suspending && h.outcome.ready()
	}
	if q := h.questions.current(); q != nil {
		return h.asked == q.id && q.pending.Journal > 0 && !h.pause.active()
	}
	return h.resumable && h.guest != nil && h.outcome.workerExit() == nil && !h.pause.active()
}

// trySuspend suspends the run if possible, and reports whether that has begun. It first waits for a request in
// progress, for at most answersWithin. A run that is to be cancelled once it is resumed is cancelled instead.
func (h *history) trySuspend(cause string) bool {
	switch {
	case !h.suspendable():
	case h.reader != nil && h.cancel != nil:
		h.cancelNow()
		return true
	case h.reader == nil && !h.questions.open() && h.parts.calls.isAsync():
		if h.leavingSince.IsZero() {
			h.leavingSince = time.Now()
		}
		return true
	default:
		h.suspend(cause)
	}
	return h.suspending
}

// answersWithin is how long a stopping host waits for the response to a request.
const answersWithin = 5 * time.Second

// suspendIfLeaving suspends a run that was waiting for the response to a request.
func (h *history) suspendIfLeaving(now time.Time, answered bool) {
	if !h.leavingSince.IsZero() && h.suspendable() && (answered || now.Sub(h.leavingSince) >= answersWithin) {
		h.suspend("host_stopped")
	}
}

// suspend suspends the run. cause is recorded in its timeline, unless the run is still being resumed, which
// leaves its journal unchanged.
func (h *history) suspend(cause string) {
	h.suspending = true
	if h.reader == nil {
		h.commits.record(h.journal.event("run.suspended", "waiting", data{"cause": cause}))
		if !h.loop.barrier() {
			h.suspending = false // the end of the run takes precedence
			return
		}
	}
	h.outcome.latch(suspended)
}

var suspended = &cause{reason: "suspended", origin: "runtime", message: "The run waits, and nobody performs it."}

// finishSuspend reports whether a run whose guest is gone is suspended and not over. Otherwise, a replay that cannot
// succeed, or whose run is to be cancelled, is turned into an end.
func (h *history) finishSuspend() bool {
	c := h.outcome.cause()
	switch {
	case c == suspended:
		return true
	case h.reader == nil:
		return false
	case c != nil && (c.reason == reasonDiverged || c.violation != nil || c.deadline != ""):
		h.abandon()
		return false
	case c == nil && h.cancel != nil:
		h.cancelNow()
		return false
	}
	return true
}

// abandon ends the replay of a run that is over, so that its end is recorded. What the run stored is counted in its
// timeline, since the replay did not get to all of it.
func (h *history) abandon() {
	h.reader = nil
	h.hostBound = "it is over"
	h.makeNotResumable()
	h.questions.forget()
	h.records.dropBuffers()
	seen, err := replay(h.ctx, h.deps.Store, h.id)
	if err != nil {
		slog.Error("read the timeline of a run", "run", h.id, "error", err)
		return
	}
	h.records.stored(seen)
}

// deferCancel keeps a request to end the run until the replay is over. It reports false if there is no replay.
func (h *history) deferCancel(c CancelRequest) bool {
	if h.reader != nil && h.cancel == nil {
		h.cancel, h.lastCallAt = &c, time.Now()
	}
	return h.reader != nil
}

// silent reports whether it has cancelled the run, because a replay that a cancellation waits for does not get on:
// it has no place, or its guest makes no call. It may take as long as the preparation of a run.
func (h *history) silent(now time.Time) bool {
	most := h.plan.Budgets.Prepare
	if h.reader == nil || h.cancel == nil || most == 0 || now.Sub(h.lastCallAt) < most {
		return false
	}
	h.cancelNow()
	return true
}

// cancelNow cancels a run during its replay.
func (h *history) cancelNow() {
	c := *h.cancel
	h.cancel = nil
	h.abandon()
	h.loop.cancelRequested(c)
}

// waitingSince returns since when a run in the given phase waits for its owner and can be suspended, otherwise the
// zero time.
func (h *history) waitingSince(phase string) time.Time {
	q := h.questions.current()
	if phase != "waiting" || q == nil || h.reader != nil || q.pending == nil || q.pending.Journal == 0 {
		return time.Time{}
	}
	return q.askedAt
}

// suspendIfIdle suspends a run that has waited for long, whose host is drained, or whose place is needed by others.
func (h *history) suspendIfIdle(now time.Time) {
	q, o := h.questions.current(), h.deps.History
	if q == nil || o == nil || h.reader != nil {
		return
	}
	switch long := o.Awake > 0 && now.Sub(q.askedAt) >= o.Awake; {
	case !h.suspendable():
	case h.control.hostDrained():
		h.suspend("host_drained")
	case h.control.shouldSuspend():
		h.suspend("room_wanted")
	case long:
		h.suspend("idle")
	}
}
