package browser

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// refuse is a refusal of one verb.
func refuse(verb engine.Verb, code, message string) *engine.Refusal {
	return &engine.Refusal{Code: code, Message: message, Verb: verb}
}

// asRefusal is the refusal that an error is. Of every other the guest learns that
// it is internal, and the host's log the rest (B12).
func (s *Session) asRefusal(verb engine.Verb, err error) *engine.Refusal {
	var r *engine.Refusal
	if errors.As(err, &r) {
		return r
	}
	if !errors.Is(err, context.Canceled) {
		s.host.o.Log.Error("a browser call failed", "run", s.runID, "verb", string(verb), "error", err)
	}
	return refuse(verb, "internal", internal)
}

const internal = "something went wrong in the host; its log says what"

// reply is the pending reply of a refusal (B12).
func reply(r *engine.Refusal) []byte {
	message := r.Message
	if r.Errno() == (&engine.Refusal{Code: "internal"}).Errno() {
		message = internal
	}
	detail := map[string]any{"verb": r.Verb, "retryable": r.Retryable()}
	if r.Reason != "" {
		detail["reason"] = r.Reason
	}
	text, err := json.Marshal(map[string]any{"code": r.Code, "message": message, "detail": detail})
	if err != nil {
		panic("a refusal is no JSON: " + err.Error()) // it is made of strings
	}
	return text
}
