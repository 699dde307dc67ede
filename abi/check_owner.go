package abi

import (
	"cmp"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// readInteraction is §9.6.
func readInteraction(r *reader) Message {
	m := &InteractionMessage{}
	if !r.p.Interactive {
		r.fail(VInteractionWithoutBinding, "")
	}
	m.RequestID = r.text("request_id", VInteractionInvalidRequestId, MaxIDBytes)
	m.Kind = r.enum("kind", VInteractionInvalidKind, InteractionKinds...)
	m.Stream = r.stream("stream", VInteractionInvalidStream, VInteractionForUndeclaredStream, false)
	m.Message = r.text("message", VInteractionInvalidMessage, r.p.Limits.TextBytes)
	m.Schema = r.schema("schema", VInteractionInvalidSchema)
	m.TimeoutSeconds = r.number("timeout_seconds", VInteractionInvalidTimeout, positive)
	return m
}

// readAssistance is ASSISTANCE of §9.7.
func readAssistance(r *reader) Message {
	m := &AssistanceMessage{}
	m.ID = r.optText("assistance_request_id", VAssistanceInvalidId, MaxIDBytes)
	m.Stream = r.stream("stream", VAssistanceInvalidStream, VAssistanceForUndeclaredStream, false)
	m.ProgressPosture = r.enum("progress_posture", VAssistanceInvalidProgressPosture,
		PostureRunning, PostureBlocked, PostureWaitingRetry)
	m.OwnerAction = r.enum("owner_action", VAssistanceInvalidOwnerAction,
		ActionNone, ActionActElsewhere, ActionProvideValue, ActionOperateAttachment)
	m.ResponseObligation = r.obligation()
	m.Message = r.text("message", VAssistanceInvalidMessage, r.p.Limits.TextBytes)
	m.Sensitivity = SensitivityNone
	if !r.member("sensitivity").Absent() {
		m.Sensitivity = r.enum("sensitivity", VAssistanceInvalidSensitivity,
			SensitivityNone, SensitivityNonSecret, SensitivitySecret)
	}
	m.TimeoutSeconds = r.number("timeout_seconds", VAssistanceInvalidTimeout, positive)
	m.InputSchema = r.schema("input_schema", VAssistanceInvalidInputSchema)
	m.Attachments = r.attachments()
	r.opened(m)
	return m
}

// obligation is checks 4 and 5; the alias counts on stdio only (D1).
func (r *reader) obligation() string {
	const bad = VAssistanceInvalidResponseObligation
	name, alias := "response_obligation", "response_contract"
	aliased := r.p.Stdio && !r.member(alias).Absent()
	if aliased && r.member(name).Absent() {
		name, aliased = alias, false
	}
	value := r.enum(name, bad, ObligationNone, ObligationResponseRequired)
	if aliased && r.enum(alias, bad, ObligationNone, ObligationResponseRequired) != value {
		r.fail(VAssistanceObligationConflict, alias)
	}
	if value == ObligationResponseRequired {
		r.fail(VAssistanceResponseRequiredUnsupported, name)
	}
	return value
}

// attachments is R116.
func (r *reader) attachments() []Attachment {
	const bad = VAssistanceInvalidAttachments
	v := r.member("attachments")
	if v.Absent() {
		return nil
	}
	if v.Kind != strictjson.KindArray || size(v) > r.p.Limits.Attachments {
		r.fail(bad, "attachments")
		return nil
	}
	out := []Attachment{}
	for item := range v.Items() {
		at := "attachments[" + itoa(int64(len(out))) + "]"
		if item.Kind != strictjson.KindObject {
			r.fail(bad, at)
			return nil
		}
		out = append(out, r.attachment(item, at))
	}
	return out
}

func (r *reader) attachment(v strictjson.Value, at string) Attachment {
	const bad = VAssistanceInvalidAttachments
	a := Attachment{}
	kind, _ := v.Member("kind")
	a.Kind, _ = kind.Text()
	if !contains([]string{"browser_surface", "url", "qr", "file", "fixture"}, a.Kind) {
		r.fail(bad, at+".kind")
	}
	extra := func(name string) string {
		m, _ := v.Member(name)
		if m.Absent() {
			return ""
		}
		t, ok := m.Text()
		if !ok || len(t) > r.p.Limits.LiveExtraBytes {
			r.fail(bad, at+"."+name)
		}
		return t
	}
	text := func(names ...string) (s string) { // optional: absent or not blank
		for _, name := range names {
			t := extra(name)
			if m, _ := v.Member(name); !m.Absent() && Blank(t) {
				r.fail(bad, at+"."+name)
			}
			s = cmp.Or(s, t)
		}
		return s
	}
	a.Role, a.Label = text("role"), text("label", "title")
	a.Ref = text("ref", "id", "surface_id")
	a.Status, a.Reason = text("status", "availability"), text("reason")
	switch a.Kind {
	case "url":
		a.URL = text("url")
		if l := strings.ToLower(a.URL); l != "" && !strings.HasPrefix(l, "https://") && !strings.HasPrefix(l, "http://") {
			r.fail(bad, at+".url")
		}
	case "qr":
		a.Payload = extra("payload")
	case "file":
		a.Accept = extra("accept")
	}
	return a
}

// opened is check 11; an accepted assistance is open from here on.
func (r *reader) opened(m *AssistanceMessage) {
	if r.bad != nil {
		return
	}
	for _, o := range r.p.open {
		if m.ID != "" && o.ID == m.ID {
			r.fail(VAssistanceDuplicateId, "assistance_request_id")
			return
		}
	}
	if len(r.p.open) >= r.p.Limits.AssistanceOpen {
		r.fail(VAssistanceLimitExceeded, "").Detail = "limit " + itoa(int64(r.p.Limits.AssistanceOpen))
		return
	}
	if m.ID == "" {
		m.ID = r.p.NewID()
	}
	r.p.open = append(r.p.open, OpenAssistance{ID: m.ID, Stream: m.Stream, Message: m})
}

// readAssistanceStatus is ASSISTANCE_STATUS of §9.7.
func readAssistanceStatus(r *reader) Message {
	m := &AssistanceStatusMessage{}
	m.ID = r.text("assistance_request_id", VAssistanceStatusInvalidId, MaxIDBytes)
	m.Status = r.enum("status", VAssistanceStatusInvalidStatus, "resolved", "cancelled", "timed_out", "escalated")
	m.Message = r.optText("message", VAssistanceStatusInvalidMessage, r.p.Limits.TextBytes)
	if r.bad == nil {
		for _, o := range r.p.open {
			if o.ID == m.ID {
				return m
			}
		}
		r.fail(VAssistanceStatusUnknownId, "assistance_request_id")
	}
	return m
}

// readText is a MESSAGE line. What a caller of the message function is refused
// for is a malformed line here: nobody could read an error.
func readText(r *reader) Message {
	m := &TextMessage{Meta: r.member("meta")}
	var ok bool
	if m.Chunk, ok = r.member("chunk").Text(); !ok {
		r.fail(VFrameMalformed, "chunk")
	}
	if last := r.member("is_last"); !last.Absent() {
		if m.Last, ok = last.Bool(); !ok {
			r.fail(VFrameMalformed, "is_last")
		}
	}
	return m
}
