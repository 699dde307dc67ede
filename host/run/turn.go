package run

import (
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A turn is what a request waits for: an origin that takes no more until then.
// With a zero time the wait is over.
type turn struct {
	origin string
	until  time.Time
	shown  string // id of the assistance that says so
}

// shownWait is the shortest wait that an owner is told of.
const shownWait = 2 * time.Second

// waits hands a wait of the call in progress to the loop, in order with its end.
func (cl *calls) waits(origin string, until time.Time) {
	select {
	case cl.finished <- finishedCall{turn: &turn{origin: origin, until: until}}:
	case <-cl.ctx.Done():
	}
}

// takeTurn counts a wait for a rate as such, and shows a long one as state D:
// nothing to do.
func (as *assistances) takeTurn(t *turn) {
	if as.outcome.over() {
		return // closeTurn tells how it ended
	}
	if as.turn != nil {
		if end := as.closeTurn("resolved", ""); end != nil {
			as.commits.submit(&store.Commit{Events: end}, nil)
		}
		as.turn = nil
		as.clocks.begin(time.Now(), false)
	}
	if t.until.IsZero() {
		return
	}
	as.turn = t
	as.clocks.beginSpan(time.Now(), &as.clocks.rate)
	if as.outcome.cancelled() || time.Until(t.until) < shownWait {
		return
	}
	t.shown = hexID("asst_", 8)
	o := as.waitingFor(t)
	d := data{
		"assistance_request_id": t.shown, "message": o.Message.Message, "progress_posture": o.Message.ProgressPosture,
		"owner_action": o.Message.OwnerAction, "response_obligation": o.Message.ResponseObligation, "sensitivity": o.Message.Sensitivity,
		"stream": nil, "attachments": []abi.Attachment{},
	}
	as.commits.submit(&store.Commit{Events: []store.Event{as.journal.event("run.assistance_requested", "started", d)}}, nil)
}

// closeTurn ends the assistance of a wait that the owner was told of.
func (as *assistances) closeTurn(status, reason string) []store.Event {
	if as.turn == nil || as.turn.shown == "" {
		return nil
	}
	return []store.Event{as.assistanceEnd(as.waitingFor(as.turn), status, reason, "")}
}

// waitingFor is a wait as an assistance of the host's own. The guest chose the
// origin, so it may hold a secret.
func (as *assistances) waitingFor(t *turn) abi.OpenAssistance {
	return abi.OpenAssistance{ID: t.shown, Message: &abi.AssistanceMessage{
		ID: t.shown, Message: abi.Cut("Waiting until "+store.Time(t.until)+" for "+as.canary.Text(t.origin)+", which takes no more requests before.", 200),
		ProgressPosture: abi.PostureWaitingRetry, OwnerAction: abi.ActionNone, ResponseObligation: abi.ObligationNone, Sensitivity: "none",
	}}
}
