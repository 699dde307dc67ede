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

// A Question is a question to the owner. Message is redacted. RawMessage and RawSchema are the connector's own
// and must be shown only to the owner.
type Question struct {
	RunID         string
	ConnectionID  string
	DisplayName   string
	InteractionID string
	InterruptID   string // assigned by the host, globally unique
	NodeID        string
	Kind          string
	Stream        string
	Message       string
	RawMessage    string
	RawSchema     json.RawMessage // nil if the connector gave none
	Fields        []Field
	Timeout       time.Duration // 0 means none
	Undeclared    bool          // the manifest does not declare this kind
	Page          Page          // the page that it is about; in no event
}

// A Page is what a browser shows while its owner is asked. Title and Host come from an untrusted page.
type Page struct {
	Title string // "" means not known
	Host  string // "" means none
}

// A Field is one value that a question asks for.
type Field struct {
	Name     string // name in the connector's schema
	Shown    string // name in events
	Title    string
	Type     string
	Secret   bool
	Required bool
	Sealed   bool // the connector gets a handle instead of the value
	Enum     []string
	File     bool   // the value is an abi.AnswerFile; never sealed, and in no event
	Accept   string // file types to offer, such as .csv,text/csv
}

// ErrTooLate is returned for an answer to a question that was closed otherwise.
var ErrTooLate = errors.New("the question was closed before")

// An Owner answers questions. Ask blocks until there is an answer or ctx ends. An error counts as cancelled. A
// run never calls Ask concurrently, and waits for the last call before it returns.
type Owner interface {
	Ask(ctx context.Context, q Question) (host.Answer, error)
}

// A LiveOwner is an Owner that also shows what is in no event: targets of url and qr attachments, and the raw text
// and schema of an assistance that does not block. Its methods must not block. A run closes every assistance
// that it opened, at the latest at its end, possibly twice.
type LiveOwner interface {
	Owner
	AssistanceOpened(run store.RunID, a LiveAssistance)
	AssistanceClosed(run store.RunID, id string)
}

// A LiveAssistance is an open assistance as it is shown to those who may answer.
type LiveAssistance struct {
	ID          string // as in events
	Message     string // text of the connector, not redacted
	Schema      json.RawMessage
	Attachments []abi.Attachment
}

// A Settler is an Owner that is informed about the outcome of its answers.
type Settler interface {
	// Settled reports the outcome of an answer that Ask returned, once: nil if the question was durably closed
	// by it, ErrTooLate if the question was closed otherwise before, or the error of the store.
	Settled(run store.RunID, interaction string, err error)
}
