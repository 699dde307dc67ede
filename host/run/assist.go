package run

import (
	"bytes"
	"regexp"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// assist is ASSISTANCE: recorded, never blocking.
func (r *run) assist(m *abi.AssistanceMessage) {
	m.InputSchema = bytes.Clone(m.InputSchema)
	if m.TimeoutSeconds != nil {
		r.assists[m.ID] = time.Now().Add(seconds(*m.TimeoutSeconds))
	}
	message := r.assistanceText(m.Message, 200)
	if message == "" {
		message = "Owner assistance requested."
	}
	d := data{
		"assistance_request_id": r.canary.Text(m.ID), "message": message, "progress_posture": m.ProgressPosture, "owner_action": m.OwnerAction,
		"response_obligation": m.ResponseObligation, "sensitivity": m.Sensitivity, "stream": nullable(m.Stream),
		"attachments": r.attachments(m.Attachments),
	}
	if m.TimeoutSeconds != nil {
		d["timeout_seconds"] = *m.TimeoutSeconds
	}
	if len(m.InputSchema) > 0 {
		if s := r.reduce("", m.InputSchema); s != nil {
			d["input_schema"] = s
		}
	}
	e := r.streamEvent("run.assistance_requested", "started", m.Stream, d)
	e.ActorType, e.ActorID = "connector", string(r.plan.Connector.ID)
	r.submit(&store.Commit{Events: []store.Event{e}}, nil)
	r.browserAssisted(m)
	if desk, ok := r.deps.Owner.(Desk); ok {
		desk.AssistanceOpened(r.id, LiveAssistance{
			ID: r.canary.Text(m.ID), Message: abi.CleanLines(m.Message), Schema: bytes.Clone(m.InputSchema), Attachments: slices.Clone(m.Attachments),
		})
	}
}

var refPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,200}$`)

// attachments is R119: no URL, no payload.
func (r *run) attachments(in []abi.Attachment) []abi.Attachment {
	out := []abi.Attachment{}
	for _, a := range in {
		kept := abi.Attachment{
			Kind: a.Kind, Role: r.assistanceText(a.Role, 80), Label: r.assistanceText(a.Label, 80),
			Status: r.assistanceText(a.Status, 80), Reason: r.assistanceText(a.Reason, 200),
		}
		if refPattern.MatchString(a.Ref) {
			kept.Ref = r.canary.Text(a.Ref)
		}
		if b := r.browser.open(); b != nil && kept.Kind == surfaceKind {
			kept = r.browser.shown(b.Surface(), kept) // whether there is one is the host's to say
		}
		out = append(out, kept)
	}
	return out
}

// assistStatus is ASSISTANCE_STATUS.
func (r *run) assistStatus(m *abi.AssistanceStatusMessage) {
	o, _ := r.proto.CloseAssistance(m.ID)
	r.submit(&store.Commit{Events: []store.Event{r.assistanceEnd(o, m.Status, "", m.Message)}}, nil)
}

// assistanceEnd is the event that closes one assistance.
func (r *run) assistanceEnd(o abi.OpenAssistance, status, reason, message string) store.Event {
	delete(r.assists, o.ID)
	r.browserReleased(o.ID)
	if desk, ok := r.deps.Owner.(Desk); ok {
		desk.AssistanceClosed(r.id, r.canary.Text(o.ID))
	}
	d := data{
		"assistance_request_id": r.canary.Text(o.ID), "status": status, "stream": nullable(o.Stream),
		"progress_posture": o.Message.ProgressPosture, "owner_action": o.Message.OwnerAction, "response_obligation": o.Message.ResponseObligation,
	}
	d.set("reason", reason)
	d.set("message", r.assistanceText(message, 200))
	return r.streamEvent("run.assistance_"+status, status, o.Stream, d)
}

// escalate is R125: open requests to the owner give way to a question.
func (r *run) escalate(stream string) []store.Event {
	var events []store.Event
	for _, o := range r.proto.OpenAssistances() {
		if o.Message.OwnerAction != abi.ActionNone && (o.Stream == "" || o.Stream == stream) {
			r.proto.CloseAssistance(o.ID)
			events = append(events, r.assistanceEnd(o, "escalated", "superseded_by_interaction", ""))
		}
	}
	return events
}

// assistanceTimeouts is R126: a connector that did not decide in time is
// stopped.
func (r *run) assistanceTimeouts(now time.Time) {
	if r.done != nil {
		return
	}
	for _, o := range r.proto.OpenAssistances() {
		if at, ok := r.assists[o.ID]; ok && now.After(at) {
			r.latch(&cause{reason: "assistance_timed_out", origin: "runtime",
				message: "The time of an assistance the connector asked for has passed.", timedOut: o.ID})
			return
		}
	}
}

// closeAssistances ends what is open just before the terminal event. It
// may be asked again for another end: nothing is forgotten.
func (r *run) closeAssistances(status, reason, timedOut string) []store.Event {
	events := append(r.closeTurn("cancelled", reason), r.closeStall()...)
	for _, o := range r.proto.OpenAssistances() {
		switch {
		case o.ID == timedOut:
			events = append(events, r.assistanceEnd(o, "timed_out", "", ""))
		case status == abi.Succeeded:
			events = append(events, r.assistanceEnd(o, "resolved", "run_completed", ""))
		default:
			events = append(events, r.assistanceEnd(o, "cancelled", reason, ""))
		}
	}
	return events
}

// ownerInvolved reports whether an open assistance waits for the owner, so
// that sleeping is waiting for them.
func (r *run) ownerInvolved() bool {
	for _, o := range r.proto.OpenAssistances() {
		if o.Message.OwnerAction != abi.ActionNone {
			return true
		}
	}
	return false
}
