package abi

// AssistanceStatusMessage is an ASSISTANCE_STATUS.
type AssistanceStatusMessage struct {
	ID      string `json:"assistance_request_id"`
	Status  string `json:"status"` // resolved, cancelled, timed_out, escalated
	Message string `json:"message,omitempty"`
}

// Type returns ASSISTANCE_STATUS.
func (*AssistanceStatusMessage) Type() string { return assistanceStatusKind.name }
func (*AssistanceStatusMessage) message()     {}

var assistanceStatusKind = kind{
	name: "ASSISTANCE_STATUS",
	step: StepMessage,
	call: CallAssistStatus,
	read: readAssistanceStatus,
	faults: []fault{
		{VAssistanceStatusInvalidId, "needs the id of an assistance"},
		{VAssistanceStatusInvalidMessage, "has a message that is not a text"},
		{VAssistanceStatusInvalidStatus, "has an unknown status"},
		{VAssistanceStatusUnknownId, "names an assistance that is not open"},
	},
}

const (
	VAssistanceStatusInvalidId      Subtype = "assistance_status_invalid_id"
	VAssistanceStatusInvalidMessage Subtype = "assistance_status_invalid_message"
	VAssistanceStatusInvalidStatus  Subtype = "assistance_status_invalid_status"
	VAssistanceStatusUnknownId      Subtype = "assistance_status_unknown_id"
)

// readAssistanceStatus checks an ASSISTANCE_STATUS.
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
