package guest

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// Assistance tells the owner what the connector waits for, without waiting
// itself. The combinations that mean something:
//
//	Posture             Action                   the owner
//	PostureRunning      ActionActElsewhere       approves in another app; the connector polls
//	PostureWaitingRetry ActionNone               has nothing to do: a back-off
//	PostureBlocked      ActionOperateAttachment  works in the browser; the connector notices
type Assistance struct {
	Posture     string
	Action      string
	Message     string
	ID          string // the host names it when empty
	Stream      string
	Sensitivity string        // "" is none
	Timeout     time.Duration // the host ends the run when it passes
	InputSchema json.RawMessage
	Attachments []abi.Attachment
}

// The words of Assistance.
const (
	PostureRunning      = abi.PostureRunning
	PostureBlocked      = abi.PostureBlocked
	PostureWaitingRetry = abi.PostureWaitingRetry

	ActionNone              = abi.ActionNone
	ActionActElsewhere      = abi.ActionActElsewhere
	ActionProvideValue      = abi.ActionProvideValue
	ActionOperateAttachment = abi.ActionOperateAttachment
)

// How an assistance ends, for AssistStatus.
const (
	Resolved  = "resolved"
	Cancelled = "cancelled"
	TimedOut  = "timed_out"
	Escalated = "escalated"
)

// Assist opens an assistance and returns its id, for AssistStatus.
func (r *Run) Assist(a Assistance) (id string, err error) {
	m := &abi.AssistanceMessage{
		ID: a.ID, ProgressPosture: a.Posture, OwnerAction: a.Action, ResponseObligation: abi.ObligationNone,
		Message: a.Message, Sensitivity: a.Sensitivity, InputSchema: a.InputSchema, Attachments: a.Attachments, Stream: a.Stream,
	}
	if a.Timeout > 0 {
		s := a.Timeout.Seconds()
		m.TimeoutSeconds = &s
	}
	b, err := encode.Append(nil, m)
	if err != nil {
		return "", err
	}
	reply, err := r.call(r.port.assist, b)
	if err != nil {
		return "", err
	}
	v, err := parseObject(reply)
	if err != nil {
		return "", err
	}
	return textMember(v, "assistance_request_id"), nil
}

// AssistStatus ends an assistance: Resolved, Cancelled, TimedOut or Escalated,
// with a word about it or "".
func (r *Run) AssistStatus(id, status, message string) error {
	return r.send(r.port.assistStatus, &abi.AssistanceStatusMessage{ID: id, Status: status, Message: message})
}
