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
func (r *run) waits(origin string, until time.Time) {
	select {
	case r.finished <- finishedCall{turn: &turn{origin: origin, until: until}}:
	case <-r.ctx.Done():
	}
}

// takeTurn counts a wait for a rate as such, and shows a long one as state D:
// nothing to do.
func (r *run) takeTurn(t *turn) {
	if r.latched != nil {
		return // closeTurn tells how it ended
	}
	if r.turn != nil {
		if end := r.closeTurn("resolved", ""); end != nil {
			r.submit(&store.Commit{Events: end}, nil)
		}
		r.turn = nil
		r.clocks.begin(time.Now(), false)
	}
	if t.until.IsZero() {
		return
	}
	r.turn = t
	r.clocks.beginSpan(time.Now(), &r.clocks.rate)
	if r.cancel != nil || time.Until(t.until) < shownWait {
		return
	}
	t.shown = hexID("asst_", 8)
	o := r.waitingFor(t)
	d := data{
		"assistance_request_id": t.shown, "message": o.Message.Message, "progress_posture": o.Message.ProgressPosture,
		"owner_action": o.Message.OwnerAction, "response_obligation": o.Message.ResponseObligation, "sensitivity": o.Message.Sensitivity,
		"stream": nil, "attachments": []abi.Attachment{},
	}
	r.submit(&store.Commit{Events: []store.Event{r.event("run.assistance_requested", "started", d)}}, nil)
}

// closeTurn ends the assistance of a wait that the owner was told of.
func (r *run) closeTurn(status, reason string) []store.Event {
	if r.turn == nil || r.turn.shown == "" {
		return nil
	}
	return []store.Event{r.assistanceEnd(r.waitingFor(r.turn), status, reason, "")}
}

// waitingFor is a wait as an assistance of the host's own. The guest chose the
// origin, so it may hold a secret.
func (r *run) waitingFor(t *turn) abi.OpenAssistance {
	return abi.OpenAssistance{ID: t.shown, Message: &abi.AssistanceMessage{
		ID: t.shown, Message: abi.Cut("Waiting until "+store.Time(t.until)+" for "+r.canary.Text(t.origin)+", which takes no more requests before.", 200),
		ProgressPosture: abi.PostureWaitingRetry, OwnerAction: abi.ActionNone, ResponseObligation: abi.ObligationNone, Sensitivity: "none",
	}}
}
