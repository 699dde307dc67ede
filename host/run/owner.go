package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A Question is what the owner is asked. Message is sanitised; Raw holds
// the connector's own text and schema, for the owner's eyes only.
type Question struct {
	RunID         string
	ConnectionID  string
	DisplayName   string
	InteractionID string
	InterruptID   string // the host's own, unique everywhere
	NodeID        string
	Kind          string
	Stream        string
	Message       string
	RawMessage    string
	RawSchema     json.RawMessage // nil when the connector gave none
	Fields        []Field
	Timeout       time.Duration // 0 is none
	Undeclared    bool          // the manifest does not announce this kind
	Page          Page          // that it is about; in no event
}

// A Page is what a browser shows while its owner is asked. Both are of a
// stranger's making.
type Page struct {
	Title string // "" is not known
	Host  string // "" is none
}

// A Field is one value the owner is asked for, in name order.
type Field struct {
	Name     string // as the connector calls it
	Shown    string // as events call it
	Title    string
	Type     string
	Secret   bool
	Required bool
	Sealed   bool // the connector gets a handle instead of the value
	Enum     []string
	File     bool   // the value is an abi.AnswerFile; never sealed, and in no event
	Accept   string // of a file: what a page's chooser shows, such as .csv,text/csv
}

// ErrTooLate: the question was closed by something else.
var ErrTooLate = errors.New("the question was closed before")

// An Owner answers questions. Ask blocks until there is an answer or ctx ends;
// an error counts as cancelled. Ask is never called concurrently by one
// run, and has returned when the run has.
type Owner interface {
	Ask(ctx context.Context, q Question) (host.Answer, error)
}

// A Desk is an Owner that also shows what is in no event: targets of url and qr
// attachments, and the raw text and schema of an assistance that does not block.
// Both methods return at once. A run closes whatever it opened, at
// the latest with its end, and may close an item twice.
type Desk interface {
	Owner
	AssistanceOpened(run store.RunID, a LiveAssistance)
	AssistanceClosed(run store.RunID, id string)
}

// A LiveAssistance is an open assistance as only those who may answer see it.
type LiveAssistance struct {
	ID          string // as events name it
	Message     string // the connector's own words
	Schema      json.RawMessage
	Attachments []abi.Attachment
}

// A Settler is an Owner that is told what became of its answers.
type Settler interface {
	// Settled tells what became of an answer that Ask returned, once: nil when the end
	// of the question by this answer is durable, ErrTooLate when something else closed
	// it first, or why it could not be written.
	Settled(run store.RunID, interaction string, err error)
}
