package run

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// assistances are requests to the owner that do not block the run, including waits of the run that the owner is
// told of.
type assistances struct {
	*parts
	deadlines map[string]time.Time // by id, only of those with a deadline
	rateWait  *rateWait            // the wait of the call in progress
}

// waiting reports whether the call in progress waits until an origin accepts requests.
func (as *assistances) waiting() bool { return as.rateWait != nil }

// postpone extends every deadline by the duration of a pause.
func (as *assistances) postpone(by time.Duration) {
	for id, at := range as.deadlines {
		as.deadlines[id] = at.Add(by)
	}
}

// assist handles ASSISTANCE, which is recorded and never blocks.
func (as *assistances) assist(m *abi.AssistanceMessage) {
	as.history.assistanceAsked()
	m.InputSchema = bytes.Clone(m.InputSchema)
	if m.TimeoutSeconds != nil {
		as.deadlines[m.ID] = time.Now().Add(seconds(*m.TimeoutSeconds))
	}
	message := cmp.Or(as.canary.Assistance(m.Message, 200), "Owner assistance requested.")
	d := data{
		"assistance_request_id": as.canary.Text(m.ID), "message": message, "progress_posture": m.ProgressPosture,
		"owner_action": m.OwnerAction, "response_obligation": m.ResponseObligation, "sensitivity": m.Sensitivity,
		"stream": nullable(m.Stream), "attachments": as.attachments(m.Attachments),
	}
	if m.TimeoutSeconds != nil {
		d["timeout_seconds"] = *m.TimeoutSeconds
	}
	if len(m.InputSchema) > 0 {
		if s := as.questions.reduce("", m.InputSchema); s != nil {
			d["input_schema"] = s
		}
	}
	e := as.journal.streamEvent("run.assistance_requested", "started", m.Stream, d)
	e.ActorType, e.ActorID = "connector", string(as.plan.Connector.ID)
	as.commits.record(e)
	as.bindings.browserAssisted(m)
	if broker, ok := as.deps.Owner.(LiveOwner); ok {
		broker.AssistanceOpened(as.id, LiveAssistance{
			ID: as.canary.Text(m.ID), Message: abi.CleanLines(m.Message), Schema: bytes.Clone(m.InputSchema),
			Attachments: slices.Clone(m.Attachments),
		})
	}
}

var refPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._:-]{1,200}$`)
})

// attachments returns the attachments of a request as events may show them, without URLs and payloads.
func (as *assistances) attachments(in []abi.Attachment) []abi.Attachment {
	out := []abi.Attachment{}
	for _, a := range in {
		kept := abi.Attachment{
			Kind: a.Kind, Role: as.canary.Assistance(a.Role, 80), Label: as.canary.Assistance(a.Label, 80),
			Status: as.canary.Assistance(a.Status, 80), Reason: as.canary.Assistance(a.Reason, 200),
		}
		if refPattern().MatchString(a.Ref) {
			kept.Ref = as.canary.Text(a.Ref)
		}
		if b := as.bindings.screen(); b != nil && kept.Kind == surfaceKind {
			kept = as.bindings.shown(b.Surface(), kept) // the host knows whether there is a surface
		}
		out = append(out, kept)
	}
	return out
}

// assistStatus handles ASSISTANCE_STATUS.
func (as *assistances) assistStatus(m *abi.AssistanceStatusMessage) {
	o, _ := as.proto.CloseAssistance(m.ID)
	as.commits.record(as.assistanceEnd(o, m.Status, "", m.Message))
}

// assistanceEnd returns the event that closes an assistance.
func (as *assistances) assistanceEnd(o abi.OpenAssistance, status, reason, message string) store.Event {
	delete(as.deadlines, o.ID)
	as.bindings.browserReleased(o.ID)
	if broker, ok := as.deps.Owner.(LiveOwner); ok {
		broker.AssistanceClosed(as.id, as.canary.Text(o.ID))
	}
	d := data{
		"assistance_request_id": as.canary.Text(o.ID), "status": status, "stream": nullable(o.Stream),
		"progress_posture": o.Message.ProgressPosture, "owner_action": o.Message.OwnerAction,
		"response_obligation": o.Message.ResponseObligation,
	}
	d.set("reason", reason)
	d.set("message", as.canary.Assistance(message, 200))
	return as.journal.streamEvent("run.assistance_"+status, status, o.Stream, d)
}

// escalate closes the open assistances that a question supersedes.
func (as *assistances) escalate(stream string) []store.Event {
	var events []store.Event
	for _, o := range as.proto.OpenAssistances() {
		if o.Message.OwnerAction != abi.ActionNone && (o.Stream == "" || o.Stream == stream) {
			as.proto.CloseAssistance(o.ID)
			events = append(events, as.assistanceEnd(o, "escalated", "superseded_by_interaction", ""))
		}
	}
	return events
}

// assistanceTimeouts fails the run if the time of an assistance is over.
func (as *assistances) assistanceTimeouts(now time.Time) {
	if as.outcome.proposal() != nil || as.history.replaying() {
		return
	}
	for _, o := range as.proto.OpenAssistances() {
		if at, ok := as.deadlines[o.ID]; ok && now.After(at) {
			as.outcome.latch(&cause{reason: "assistance_timed_out", origin: "runtime",
				message: "The time of an assistance the connector asked for has passed.", timedOut: o.ID})
			return
		}
	}
}

// closeAssistances returns the events that close open assistances just before the terminal event. It may be
// called again with another status, since it keeps the list.
func (as *assistances) closeAssistances(status, reason, timedOut string) []store.Event {
	events := append(as.endRateWait("cancelled", reason), as.commits.closeStall()...)
	for _, o := range as.proto.OpenAssistances() {
		switch {
		case o.ID == timedOut:
			events = append(events, as.assistanceEnd(o, "timed_out", "", ""))
		case status == abi.Succeeded:
			events = append(events, as.assistanceEnd(o, "resolved", "run_completed", ""))
		default:
			events = append(events, as.assistanceEnd(o, "cancelled", reason, ""))
		}
	}
	return events
}

// ownerInvolved reports whether an open assistance waits for the owner, so that sleeping counts as waiting for
// the owner.
func (as *assistances) ownerInvolved() bool {
	return slices.ContainsFunc(as.proto.OpenAssistances(), func(o abi.OpenAssistance) bool {
		return o.Message.OwnerAction != abi.ActionNone
	})
}

// A rateWait is the wait of a request until an origin accepts requests again. A zero time means that the wait is
// over.
type rateWait struct {
	origin string
	until  time.Time
	shown  string // id of the assistance that shows it
}

// minShownWait is the shortest wait that is shown to the owner.
const minShownWait = 2 * time.Second

// beginRateWait counts a wait for an origin's rate limit, and shows a long one as an assistance without an owner
// action.
func (as *assistances) beginRateWait(t *rateWait) {
	if as.outcome.over() {
		return // closeTurn records its end
	}
	if as.rateWait != nil {
		if end := as.endRateWait("resolved", ""); end != nil {
			as.commits.record(end...)
		}
		as.rateWait = nil
		as.clocks.begin(time.Now(), false)
	}
	if t.until.IsZero() {
		return
	}
	as.rateWait = t
	as.clocks.beginRate(time.Now())
	if as.outcome.cancelled() || time.Until(t.until) < minShownWait {
		return
	}
	t.shown = hexID("asst_", 8)
	as.commits.record(as.hostAssistance(as.rateWaitAssistance(t)))
}

// endRateWait returns the event that ends the assistance of a wait, nil if none was shown.
func (as *assistances) endRateWait(status, reason string) []store.Event {
	if as.rateWait == nil || as.rateWait.shown == "" {
		return nil
	}
	return []store.Event{as.assistanceEnd(as.rateWaitAssistance(as.rateWait), status, reason, "")}
}

// rateWaitAssistance returns a wait as an assistance of the host. The guest chose the origin, so it may contain a
// secret.
func (as *assistances) rateWaitAssistance(t *rateWait) abi.OpenAssistance {
	return hostWait(t.shown,
		abi.Cut("Waiting until "+store.Time(t.until)+" for "+as.canary.Text(t.origin)+
			", which takes no more requests before.", 200))
}

// hostWait returns an assistance of the host that needs no action of the owner.
func hostWait(id, message string) abi.OpenAssistance {
	return abi.OpenAssistance{ID: id, Message: &abi.AssistanceMessage{
		ID: id, Message: message, ProgressPosture: abi.PostureWaitingRetry, OwnerAction: abi.ActionNone,
		ResponseObligation: abi.ObligationNone, Sensitivity: "none",
	}}
}

// hostAssistance returns the event that opens an assistance of the host.
func (as *assistances) hostAssistance(o abi.OpenAssistance) store.Event {
	m := o.Message
	return as.journal.event("run.assistance_requested", "started", data{
		"assistance_request_id": m.ID, "message": m.Message, "progress_posture": m.ProgressPosture,
		"owner_action": m.OwnerAction, "response_obligation": m.ResponseObligation, "sensitivity": m.Sensitivity,
		"stream": nil, "attachments": []abi.Attachment{},
	})
}
