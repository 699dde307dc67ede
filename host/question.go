package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Questions accepts answers to what runs ask their owner.
type Questions interface {
	// Answer checks a response to a pending interaction and passes it to the run. It
	// returns once the end of the interaction is durable. It owns a.Data and wipes it.
	Answer(ctx context.Context, a Answer) error
	// RawAssistance returns the parts of an open question that only those who may answer
	// see: the connector's own text and schema, and the targets of url and qr attachments.
	// It returns store.ErrNotFound if the question is not open on this host.
	RawAssistance(ctx context.Context, run store.RunID, requestID string) (RawAssistance, error)
}

// Answer is an owner's response to a question.
type Answer struct {
	RunID         store.RunID
	InteractionID string
	Status        string // success or cancelled; at a terminal also timeout
	// Data is keyed by the names that the question showed, and after run.Question.Check by
	// the connector's own.
	Data map[string]json.RawMessage
	By   string // principal; "" is the owner
}

// Clone returns a deep copy of a.
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
	Attachments []abi.Attachment  `json:"attachments"` // no event holds their URL and Payload
	Fields      map[string]string `json:"-"`           // from shown name to the connector's own
	Page        *OpenPage         `json:"page,omitempty"`
}

// OpenPage is the page in the run's browser while its owner is asked.
type OpenPage struct {
	Title   string `json:"title,omitempty"` // absent if it was not available in time
	URLHost string `json:"urlHost,omitempty"`
}
