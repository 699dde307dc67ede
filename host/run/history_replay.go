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

// made reports whether the journal has a commit of a run that is being resumed.
func (h *history) made(c *store.Commit) bool {
	if !h.resumable {
		return true
	}
	e, err := h.player.parsed(h.ctx)
	switch {
	case err != nil:
		h.fail(err)
	case e.kind == 0:
		return !h.live()
	case isFact(c):
		if !h.live() {
			h.played(entryCommit)
			return true
		}
		return false
	case e.kind == entryCommit && !ofFacts(e):
		_, err = h.player.any(h.ctx)
		if err != nil {
			h.fail(err)
		}
	}
	return true
}

// live reports whether the run proceeds beyond its journal. A resumable run that has reached the end of its
// journal goes live here.
func (h *history) live() bool {
	if h.player == nil {
		return true
	}
	if !h.resumable {
		return false
	}
	e, err := h.player.peek(h.ctx)
	if err != nil {
		h.fail(err)
		return false
	}
	if e.kind == 0 {
		h.atEnd()
	}
	return h.player == nil
}

// whole returns the newest commit of a journal that was read to its end, after checking that the timeline ends
// there too.
func (h *history) whole() (last made, ok bool) {
	if c := h.player.commit; len(c) == 0 || json.Unmarshal(c[1:], &last) != nil {
		h.fail(errHistory)
		return last, false
	}
	more, err := h.deps.Store.Events(h.ctx, h.id, last.Events+h.beside, 1)
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
	last, ok := h.whole()
	if !ok {
		return
	}
	if q := h.questions.current(); q != nil && h.waits != nil {
		h.asksOn(q, h.waits)
		h.questions.put(q)
		return
	}
	h.goLive(h.held, last.Spent, time.Now(), false)
}

// told describes how a call differs from the recorded one.
func told(is, was entry) string {
	if is.code != was.code {
		return activity(abi.Call(is.code)) + ", and was " + activity(abi.Call(was.code))
	}
	return activity(abi.Call(is.code)) + " with another request"
}

// played takes the next entry. The run has diverged if it is not of the given kind.
func (h *history) played(kind byte) (entry, bool) {
	e, err := h.player.take(h.ctx)
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
	h.outcome.latch(&cause{reason: reasonDiverged, origin: "connector", message: "The run was resumed from its journal, and " +
		what + ". A connector must do the same again when it is answered the same."})
}

// fail ends a resumption whose journal cannot be read.
func (h *history) fail(err error) {
	if errors.Is(err, errHistory) || errors.Is(err, store.ErrNotFound) {
		h.outcome.latch(&cause{reason: reasonDiverged, origin: "runtime", message: "The run cannot be resumed: " + err.Error() + "."})
		return
	}
	h.outcome.latch(hostFault("resume from journal", err))
}

// resultPlayed returns the recorded result of a call. If the journal ends before it, ok is false and sent
// reports whether the request may have been sent.
func (h *history) resultPlayed() (errno abi.Errno, reply []byte, sent, ok bool) {
	if h.resumable {
		e, err := h.player.peek(h.ctx)
		if err == nil && e.kind == entryIntent {
			sent = true
			_, err = h.player.take(h.ctx)
		}
		if err != nil {
			h.fail(err)
			return 0, nil, sent, false
		}
		if h.live() {
			return 0, nil, sent, false
		}
	}
	e, ok := h.played(entryResult)
	if next, err := h.player.peek(h.ctx); ok && err == nil && next.kind == entryHeld {
		h.held = next.data
		_, _ = h.player.take(h.ctx) // peek has read it without error
	}
	return abi.Errno(e.code), e.data, sent, ok
}

// again closes the open question if its answer comes next in the journal, or asks it if the journal ends here: a
// guest that waits at its input makes no call that would do so. It is called while the guest waits.
func (h *history) again() {
	q := h.questions.current()
	if h.player == nil || q == nil || !h.outcome.ready() {
		return
	}
	e, err := h.player.peek(h.ctx)
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
	e, ok := h.played(entryAnswer)
	var kept keptAnswer
	if !ok || json.Unmarshal(e.data, &kept) != nil || kept.ID != q.id {
		h.fail(errHistory)
		return
	}
	clear(e.data)
	a := answerOf(q, kept.Status, kept.By)
	a.Data = kept.Data
	h.questions.closeQuestion(a)
}

// reasked matches a question that a resumed run asks with the journal. It reports whether the question is the
// open one, with which the run goes live.
func (h *history) reasked(a *asking) (open bool) {
	e, ok := h.played(entryMark)
	var m mark
	if !ok {
		return false
	}
	if json.Unmarshal(e.data, &m) != nil {
		h.fail(errHistory)
		return false
	}
	if h.resumable {
		if _, ok := h.played(entryCommit); !ok {
			return false
		}
	}
	r := h.deps.History.Resume
	next, err := h.player.peek(h.ctx)
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
			h.waits = &m
		}
		return false
	}
	if h.resumable {
		if _, ok := h.whole(); !ok {
			return false
		}
	}
	h.asksOn(a, &m)
	return h.outcome.ready()
}

// asksOn makes this process ask the open question.
func (h *history) asksOn(a *asking, m *mark) {
	r := h.deps.History.Resume
	a.interruptID, a.pending, a.last = r.Open.Interrupt, &r.Open, m.Last
	if a.timed = r.Open.ExpiresAt != nil; a.timed {
		a.deadline = h.here(*r.Open.ExpiresAt)
	}
	h.asked = a.id
	h.goLive(m.Held, m.Spent, h.here(r.Open.OpenedAt), true)
}

// goLive ends the replay, and the run proceeds by itself. since is the start of its current span, which is the
// owner's if owner is set.
func (h *history) goLive(held []byte, s spent, since time.Time, owner bool) {
	var last made
	if c := h.player.commit; len(c) > 0 {
		_ = json.Unmarshal(c[1:], &last) // this host wrote it
	}
	h.pieces, h.last, h.bytes, h.entries, h.events = h.player.next, h.player.last, h.player.bytes, h.player.taken, last.Events
	h.player = nil
	h.control.goesOn()
	for _, b := range h.bindings.open() {
		if k, ok := b.(binding.Holder); ok && len(held) > 0 {
			if err := k.Hold(held); err != nil {
				h.outcome.latch(hostFault("give a binding what it held", err))
				return
			}
		}
	}
	h.clocks.restore(s, since, owner)
	if s := h.stood; s != nil {
		h.commits.stood(s)
	}
	h.loop.stage(h.loop.phase())
	e := h.journal.event("run.resumed", "in_progress", data{"cause": h.deps.History.Resume.Cause})
	h.commits.submit(&store.Commit{Run: h.loop.row(), Events: []store.Event{e}}, nil)
	if owner {
		h.loop.barrier()
	}
	if c := h.cancel; c != nil {
		h.cancel = nil
		h.loop.again(*c)
	}
}

// left handles the exit of the guest of a run that is being resumed.
func (h *history) left(e sandbox.Exit) {
	if h.player != nil && e.Kind == sandbox.ExitCPU && h.outcome.ready() {
		h.outcome.latch(h.outcome.exitCause(e))
	}
	if !h.live() && h.outcome.ready() && (e.Kind == sandbox.ExitExited || e.Kind == sandbox.ExitTrapped) {
		h.diverge(fmt.Sprintf("the connector ended after call %d", h.calls))
	}
}
