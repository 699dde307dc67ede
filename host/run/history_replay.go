package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// matchCommit reports whether the journal has a commit of a run that is being resumed.
func (h *history) matchCommit(c *store.Commit) bool {
	if !h.resumable {
		return true
	}
	e, err := h.reader.parsed(h.ctx)
	switch {
	case err != nil:
		h.fail(err)
	case e.kind == 0:
		return !h.live()
	case isFact(c):
		if !h.live() {
			h.nextEntry(entryCommit)
			return true
		}
		return false
	case e.kind == entryCommit && !ofFacts(e):
		_, err = h.reader.takeAny(h.ctx)
		if err != nil {
			h.fail(err)
		}
	}
	return true
}

// live reports whether the run proceeds beyond its journal. A resumable run that has reached the end of its
// journal goes live here.
func (h *history) live() bool {
	if h.reader == nil {
		return true
	}
	if !h.resumable {
		return false
	}
	e, err := h.reader.peek(h.ctx)
	if err != nil {
		h.fail(err)
		return false
	}
	if e.kind == 0 {
		h.atEnd()
	}
	return h.reader == nil
}

// lastCommit returns the newest commit of a journal that was read to its end, after checking that it ends there, and
// that the timeline does too.
func (h *history) lastCommit() (last commitData, ok bool) {
	if c := h.reader.commit; len(c) == 0 || json.Unmarshal(c[1:], &last) != nil {
		h.fail(errHistory)
		return last, false
	}
	length, err := h.deps.Store.Journal(h.ctx, h.id, lengthAt)
	if err == nil {
		err = h.sealer.checkLength(length, h.reader.next, h.reader.last)
	}
	var more []store.Event
	if err == nil {
		more, err = h.deps.Store.Events(h.ctx, h.id, last.Events+h.outOfOrder, 1)
	}
	if err == nil && len(more) > 0 {
		err = fmt.Errorf("%w: it ends before the timeline does", errHistory)
	}
	if err != nil {
		h.fail(err)
	}
	return last, err == nil
}

// atEnd makes a resumable run live at the end of its journal.
func (h *history) atEnd() {
	last, ok := h.lastCommit()
	if !ok {
		return
	}
	if q := h.questions.current(); q != nil && h.openMark != nil {
		h.askOpen(q, h.openMark)
		h.questions.passToOwner(q)
		return
	}
	h.goLive(h.held, last.Spent, time.Now(), false)
}

// describeMismatch describes how a call differs from the recorded one.
func describeMismatch(got, want entry) string {
	if got.code != want.code {
		return activity(abi.Call(got.code)) + ", and was " + activity(abi.Call(want.code))
	}
	return activity(abi.Call(got.code)) + " with another request"
}

// nextEntry takes the next entry. The run has diverged if it is not of the given kind.
func (h *history) nextEntry(kind byte) (entry, bool) {
	e, err := h.reader.take(h.ctx)
	switch {
	case err != nil:
		h.fail(err)
	case e.kind != kind:
		h.diverge(fmt.Sprintf("call %d of the connector comes at another place", h.calls+1))
	default:
		return e, true
	}
	return e, false
}

// reasonDiverged ends a run that did something else when it was resumed.
const reasonDiverged = "replay_diverged"

func (h *history) diverge(what string) {
	h.outcome.latch(&cause{reason: reasonDiverged, origin: "connector",
		message: "The run was resumed from its journal, and " +
			what + ". A connector must do the same again when it is answered the same."})
}

// fail ends a resumption whose journal cannot be read.
func (h *history) fail(err error) {
	if errors.Is(err, errHistory) || errors.Is(err, store.ErrNotFound) {
		h.outcome.latch(&cause{reason: reasonDiverged, origin: "runtime",
			message: "The run cannot be resumed: " + err.Error() + "."})
		return
	}
	h.outcome.latch(hostFault("resume from journal", err))
}

// replayResult returns the recorded result of a call. If the journal ends before it, ok is false and sent
// reports whether the request may have been sent.
func (h *history) replayResult() (errno abi.Errno, reply []byte, sent, ok bool) {
	if h.resumable {
		e, err := h.reader.peek(h.ctx)
		if err == nil && e.kind == entryIntent {
			sent = true
			_, err = h.reader.take(h.ctx)
		}
		if err != nil {
			h.fail(err)
			return 0, nil, sent, false
		}
		if h.live() {
			return 0, nil, sent, false
		}
	}
	e, ok := h.nextEntry(entryResult)
	if next, err := h.reader.peek(h.ctx); ok && err == nil && next.kind == entryHeld {
		h.held = next.data
		_, _ = h.reader.take(h.ctx) // peek has read it without error
	}
	return abi.Errno(e.code), e.data, sent, ok
}

// resolveOpen closes the open question if its answer comes next in the journal, or asks it if the journal ends here: a
// guest that waits at its input makes no call that would do so. It is called while the guest waits.
func (h *history) resolveOpen() {
	q := h.questions.current()
	if h.reader == nil || q == nil || !h.outcome.ready() {
		return
	}
	e, err := h.reader.peek(h.ctx)
	if err != nil {
		h.fail(err)
		return
	}
	if e.kind == 0 {
		h.live()
	}
	if e.kind != entryAnswer {
		return
	}
	e, ok := h.nextEntry(entryAnswer)
	var kept savedAnswer
	if !ok || json.Unmarshal(e.data, &kept) != nil || kept.ID != q.id {
		h.fail(errHistory)
		return
	}
	clear(e.data)
	a := answerOf(q, kept.Status, kept.By)
	a.Data = kept.Data
	h.questions.closeQuestion(a)
}

// matchQuestion matches a question that a resumed run asks with the journal. It reports whether the question is the
// open one, with which the run goes live.
func (h *history) matchQuestion(a *pendingQuestion) (open bool) {
	e, ok := h.nextEntry(entryMark)
	var m mark
	if !ok {
		return false
	}
	if json.Unmarshal(e.data, &m) != nil {
		h.fail(errHistory)
		return false
	}
	if h.resumable {
		if _, ok := h.nextEntry(entryCommit); !ok {
			return false
		}
	}
	r := h.deps.History.Resume
	next, err := h.reader.peek(h.ctx)
	more := next.kind != 0
	switch {
	case err != nil:
		h.fail(err)
		return false
	case m.ID != a.id || !more && a.id != r.Open.ID:
		h.diverge("it asks something else")
		return false
	case more:
		if a.id == r.Open.ID { // a guest that waits at its input may have continued to it since
			h.openMark = &m
		}
		return false
	}
	if h.resumable {
		if _, ok := h.lastCommit(); !ok {
			return false
		}
	}
	h.askOpen(a, &m)
	return h.outcome.ready()
}

// askOpen makes this process ask the open question.
func (h *history) askOpen(a *pendingQuestion, m *mark) {
	r := h.deps.History.Resume
	a.interruptID, a.pending, a.budgetDeadline = r.Open.Interrupt, &r.Open, m.Last
	if a.hasDeadline = r.Open.ExpiresAt != nil; a.hasDeadline {
		a.deadline = h.localTime(*r.Open.ExpiresAt)
	}
	h.asked = a.id
	h.goLive(m.Held, m.Spent, h.localTime(r.Open.OpenedAt), true)
}

// goLive ends the replay, and the run proceeds by itself. since is the start of its current span, which is the
// owner's if owner is set.
func (h *history) goLive(held []byte, s clockState, since time.Time, owner bool) {
	var last commitData
	if c := h.reader.commit; len(c) > 0 {
		_ = json.Unmarshal(c[1:], &last) // this host wrote it
	}
	h.pieces, h.last, h.bytes, h.entries, h.events = h.reader.next, h.reader.last, h.reader.readBytes,
		h.reader.takenBytes, last.Events
	h.reader = nil
	h.control.setProgressed()
	for _, b := range h.bindings.open() {
		if k, ok := b.(binding.StateSaver); ok && len(held) > 0 {
			if err := k.RestoreState(held); err != nil {
				h.outcome.latch(hostFault("give a binding what it held", err))
				return
			}
		}
	}
	h.clocks.restore(s, since, owner)
	if s := h.reportedStall; s != nil {
		h.commits.resumeStall(s)
	}
	h.loop.stage(h.loop.phase())
	e := h.journal.event("run.resumed", "in_progress", data{"cause": h.deps.History.Resume.Cause})
	h.commits.submit(&store.Commit{Run: h.loop.row(), Events: []store.Event{e}}, nil)
	if owner {
		h.loop.barrier()
	}
	if c := h.cancel; c != nil {
		h.cancel = nil
		h.loop.repeatCancel(*c)
	}
}

// guestExited handles the exit of the guest of a run that is being resumed.
func (h *history) guestExited(e sandbox.Exit) {
	if h.reader != nil && e.Kind == sandbox.ExitCPU && h.outcome.ready() {
		h.outcome.latch(h.outcome.exitCause(e))
	}
	if !h.live() && h.outcome.ready() && (e.Kind == sandbox.ExitExited || e.Kind == sandbox.ExitTrapped) {
		h.diverge(fmt.Sprintf("the connector ended after call %d", h.calls))
	}
}
