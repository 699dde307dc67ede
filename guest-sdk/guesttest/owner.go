//go:build !wasip1

package guesttest

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
)

// An Answer is the scripted owner's response to one question.
type Answer struct {
	// Kind is the expected kind of question; empty accepts any.
	Kind string
	// Status is success, cancelled or timeout; empty means success.
	Status string
	// Data are the fields of a successful answer.
	Data map[string]any
	// Sealed names the fields of Data that hold handles.
	Sealed []string
}

// Code answers an OTP.
func Code(code string) Answer { return Answer{Kind: abi.KindOTP, Data: map[string]any{"code": code}} }

// Login answers Credentials.
func Login(username, password string) Answer {
	return Answer{Kind: abi.KindCredentials, Data: map[string]any{"username": username, "password": password}}
}

// Done answers a ManualAction.
func Done() Answer { return Answer{Kind: abi.KindManualAction} }

// Accept accepts an Approve, with an optional comment.
func Accept(comment string) Answer { return decision("accept", comment) }

// Reject rejects an Approve, with an optional comment.
func Reject(comment string) Answer { return decision("reject", comment) }

// Refine answers a Refinable Approve by asking for a change.
func Refine(comment string) Answer { return decision(abi.DecisionRefine, comment) }

// AcceptEdited answers an Editable Approve with the owner's version.
func AcceptEdited(text string) Answer {
	a := decision(abi.DecisionEdit, "")
	a.Data["edited"] = text
	return a
}

func decision(action, comment string) Answer {
	a := Answer{Kind: abi.KindApproval, Data: map[string]any{"action": action}}
	if comment != "" {
		a.Data["comment"] = comment
	}
	return a
}

// Fields answers a Clarify.
func Fields(data map[string]any) Answer { return Answer{Kind: abi.KindClarification, Data: data} }

// Decline cancels a question of any kind.
func Decline() Answer { return Answer{Status: abi.AnswerCancelled} }

// TimeOut lets a question of any kind time out.
func TimeOut() Answer { return Answer{Status: abi.AnswerTimeout} }

// answer returns the scripted owner's answer to q.
func (h *host) answer(q *abi.InteractionMessage) Answer {
	if h.options.Owner != nil {
		return h.options.Owner(*q)
	}
	n := len(h.result.Interactions)
	if n > len(h.options.Answers) {
		h.t.Errorf("guesttest: question %d (%s: %q) has no answer in Options.Answers", n, q.Kind, q.Message)
		return Decline()
	}
	a := h.options.Answers[n-1]
	if a.Kind != "" && a.Kind != q.Kind {
		h.t.Errorf("guesttest: question %d is of kind %s, the answer to it of kind %s", n, q.Kind, a.Kind)
		return Decline()
	}
	return a
}

// response encodes an answer as INTERACTION_RESPONSE.
func (h *host) response(q *abi.InteractionMessage, a Answer) ([]byte, error) {
	r := abi.Response{RequestID: q.RequestID, Status: a.Status, SealedFields: a.Sealed}
	if r.Status == "" {
		r.Status = abi.AnswerSuccess
	}
	if r.Status == abi.AnswerSuccess {
		r.Data = map[string]json.RawMessage{}
		for name, v := range a.Data {
			b, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			r.Data[name] = b
		}
	}
	return json.Marshal(r)
}
