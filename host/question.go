package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// Questions takes answers to what runs ask their owner.
type Questions interface {
	// Answer checks a response to a pending interaction and passes it to the run that asked.
	// It returns once the end of the interaction is durable. Data belongs to the callee, which
	// wipes it.
	Answer(ctx context.Context, a Answer) error
	// RawAssistance is what only those who may answer see of an open question: the connector's
	// own text and schema, and targets of url and qr attachments. store.ErrNotFound when it is
	// not open here.
	RawAssistance(ctx context.Context, run store.RunID, requestID string) (RawAssistance, error)
}

// Answer is what an owner says to a question, from whoever brings it to the run that asked.
type Answer struct {
	RunID         store.RunID
	InteractionID string
	Status        string // success or cancelled; of an owner at the terminal also timeout
	// Data is by the names that the question showed, and by the connector's own once it
	// was checked (run.Question.Check).
	Data map[string]json.RawMessage
	By   string // principal, "" is the owner
}

// Clone is the answer in memory of its own.
func (a Answer) Clone() Answer {
	data := make(map[string]json.RawMessage, len(a.Data))
	for name, v := range a.Data {
		data[name] = slices.Clone(v)
	}
	a.Data = data
	return a
}

// RawAssistance is an open question as the connector put it.
type RawAssistance struct {
	Message     string            `json:"message"`
	Schema      json.RawMessage   `json:"schema,omitempty"`
	Attachments []LiveAttachment  `json:"attachments"`
	Fields      map[string]string `json:"-"` // shown name to the connector's own
	Page        *OpenPage         `json:"page,omitempty"`
}

// OpenPage is what the browser of the run shows when its owner is asked.
type OpenPage struct {
	Title   string `json:"title,omitempty"` // absent: it was not to be had in time
	URLHost string `json:"urlHost,omitempty"`
}

// LiveAttachment is an attachment of a question while that is open. Its URL and payload are
// for whoever answers, and in no event.
type LiveAttachment struct {
	Kind    string `json:"kind"`
	Role    string `json:"role,omitempty"`
	Label   string `json:"label,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	URL     string `json:"url,omitempty"`
	Payload string `json:"payload,omitempty"`
	Accept  string `json:"accept,omitempty"`
}
