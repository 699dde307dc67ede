package abi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// AssistanceMessage is an ASSISTANCE: it involves the owner without blocking the connector.
type AssistanceMessage struct {
	ID                 string          `json:"assistance_request_id,omitempty"`
	ProgressPosture    string          `json:"progress_posture"`
	OwnerAction        string          `json:"owner_action"`
	ResponseObligation string          `json:"response_obligation"`
	Message            string          `json:"message"`
	Sensitivity        string          `json:"sensitivity,omitempty"`
	TimeoutSeconds     *float64        `json:"timeout_seconds,omitempty"`
	InputSchema        json.RawMessage `json:"input_schema,omitempty"`
	Attachments        []Attachment    `json:"attachments,omitempty"`
	Stream             string          `json:"stream,omitempty"`
}

// Type returns ASSISTANCE.
func (*AssistanceMessage) Type() string { return assistanceKind.name }
func (*AssistanceMessage) message()     {}

var assistanceKind = kind{
	name:  "ASSISTANCE",
	step:  StepMessage,
	call:  CallAssist,
	read:  readAssistance,
	limit: func(l Limits) int { return l.AssistancePerRun },
	faults: []fault{
		{VAssistanceDuplicateId, "reuses the id of an assistance that is still open"},
		{VAssistanceForUndeclaredStream, "named a stream that is not in scope"},
		{VAssistanceInvalidAttachments, "has attachments of the wrong shape"},
		{VAssistanceInvalidId, "has an assistance_request_id that is not a text"},
		{VAssistanceInvalidInputSchema, "has an input_schema that is not an object"},
		{VAssistanceInvalidMessage, "needs a message text"},
		{VAssistanceInvalidOwnerAction, "has an unknown owner_action"},
		{VAssistanceInvalidProgressPosture, "has an unknown progress_posture"},
		{VAssistanceInvalidResponseObligation, "has an unknown response_obligation"},
		{VAssistanceInvalidSensitivity, "has an unknown sensitivity"},
		{VAssistanceInvalidStream, "has a stream that is not a text"},
		{VAssistanceInvalidTimeout, "has a timeout_seconds that is not a number above 0"},
		{VAssistanceLimitExceeded, "leaves too many assistances open"},
		{VAssistanceObligationConflict, "gives response_obligation and response_contract with different values"},
		{VAssistanceResponseRequiredUnsupported, "asks for a response; use INTERACTION for that"},
	},
}

const (
	VAssistanceDuplicateId                 Subtype = "assistance_duplicate_id"
	VAssistanceForUndeclaredStream         Subtype = "assistance_for_undeclared_stream"
	VAssistanceInvalidAttachments          Subtype = "assistance_invalid_attachments"
	VAssistanceInvalidId                   Subtype = "assistance_invalid_id"
	VAssistanceInvalidInputSchema          Subtype = "assistance_invalid_input_schema"
	VAssistanceInvalidMessage              Subtype = "assistance_invalid_message"
	VAssistanceInvalidOwnerAction          Subtype = "assistance_invalid_owner_action"
	VAssistanceInvalidProgressPosture      Subtype = "assistance_invalid_progress_posture"
	VAssistanceInvalidResponseObligation   Subtype = "assistance_invalid_response_obligation"
	VAssistanceInvalidSensitivity          Subtype = "assistance_invalid_sensitivity"
	VAssistanceInvalidStream               Subtype = "assistance_invalid_stream"
	VAssistanceInvalidTimeout              Subtype = "assistance_invalid_timeout"
	VAssistanceLimitExceeded               Subtype = "assistance_limit_exceeded"
	VAssistanceObligationConflict          Subtype = "assistance_obligation_conflict"
	VAssistanceResponseRequiredUnsupported Subtype = "assistance_response_required_unsupported"
)

// The values of posture, owner action, response obligation and sensitivity.
const (
	PostureRunning      = "running"
	PostureBlocked      = "blocked"
	PostureWaitingRetry = "waiting_retry"

	ActionNone              = "none"
	ActionActElsewhere      = "act_elsewhere"
	ActionProvideValue      = "provide_value"
	ActionOperateAttachment = "operate_attachment"

	ObligationNone             = "none"
	ObligationResponseRequired = "response_required"

	SensitivityNone      = "none"
	SensitivityNonSecret = "non_secret"
	SensitivitySecret    = "secret"
)

// An Attachment is something that the owner can use. URL and Payload exist only while the
// request is open and are never stored in the timeline.
type Attachment struct {
	Kind    string `json:"kind"` // browser_surface, url, qr, file, fixture
	Role    string `json:"role,omitempty"`
	Label   string `json:"label,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	URL     string `json:"url,omitempty"`
	Payload string `json:"payload,omitempty"`
	Accept  string `json:"accept,omitempty"`
}

// readAssistance checks an ASSISTANCE.
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
	r.openAssistance(m)
	return m
}

// obligation makes checks 4 and 5. The alias is accepted in the stdio profile only.
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

// attachments reads the list of attachments.
func (r *reader) attachments() []Attachment {
	const bad = VAssistanceInvalidAttachments
	v := r.member("attachments")
	if v.Absent() {
		return nil
	}
	if v.Kind != strictjson.KindArray || v.Len() > r.p.Limits.Attachments {
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
	if !slices.Contains([]string{"browser_surface", "url", "qr", "file", "fixture"}, a.Kind) {
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

// openAssistance makes check 11 and adds an accepted assistance to the open ones.
func (r *reader) openAssistance(m *AssistanceMessage) {
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
