package run

import (
	"context"
	"encoding/json"
	"time"
)

// A Question is what the owner is asked (R135). Message is sanitised; Raw holds
// the connector's own text and schema, for the owner's eyes only (R144).
type Question struct {
	RunID         string
	ConnectionID  string
	ConnectorName string
	DisplayName   string
	InteractionID string
	Kind          string
	Stream        string
	Message       string
	RawMessage    string
	Fields        []Field
	Timeout       time.Duration // 0 is none
	Undeclared    bool          // the manifest does not announce this kind (D18)
}

// A Field is one value the owner is asked for, in name order (R134).
type Field struct {
	Name     string // as the connector calls it
	Shown    string // as events call it (R129)
	Title    string
	Type     string
	Secret   bool
	Required bool
	Sealed   bool // the connector gets a handle instead of the value
	Enum     []string
}

// An Answer is what the owner said. Data has the connector's field names.
type Answer struct {
	InteractionID string
	Status        string // success, cancelled or timeout
	Data          map[string]json.RawMessage
}

// An Owner answers questions. Ask blocks until there is an answer or ctx ends;
// an error counts as cancelled (§16.2). Ask is never called concurrently by one
// run, and has returned when the run has.
type Owner interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}
