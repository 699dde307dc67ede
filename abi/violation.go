package abi

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Subtype is the protocol rule that a connector broke. The list, Subtypes, is closed:
// adding one is a version change.
type Subtype string

// A Violation is a connector's breach of the protocol. It always ends the run. It is made
// where the breach is detected, and holds names and expectations only, never values from
// data, cursors or responses.
type Violation struct {
	Subtype     Subtype  `json:"subtype"`
	MessageType string   `json:"message_type,omitempty"`
	Stream      string   `json:"stream,omitempty"`
	Field       string   `json:"field,omitempty"`
	Detail      string   `json:"detail,omitempty"`
	Expected    []string `json:"expected,omitempty"`
	Received    string   `json:"received,omitempty"`
	Truncated   bool     `json:"truncated,omitempty"`

	// The last event that the run recorded before the violation; the host fills it in.
	LastValidEventID   string `json:"last_valid_event_id"`
	LastValidEventType string `json:"last_valid_event_type"`
}

// Error returns the failure_message, of at most 500 bytes.
func (v *Violation) Error() string {
	var b strings.Builder
	switch {
	case v.MessageType != "":
		b.WriteString(v.MessageType)
	case strings.HasPrefix(string(v.Subtype), "frame_"):
		b.WriteString("What the connector sent")
	default:
		b.WriteString("The connector")
	}
	b.WriteByte(' ')
	b.WriteString(cmp.Or(Subtypes()[v.Subtype], string(v.Subtype)))
	if v.Received != "" {
		b.WriteString(": ")
		b.WriteString(v.Received)
	}
	if v.Field != "" {
		fmt.Fprintf(&b, " (member %s)", v.Field)
	}
	if len(v.Expected) > 0 {
		b.WriteString("; expected ")
		b.WriteString(strings.Join(v.Expected, ", "))
	}
	if v.Detail != "" {
		fmt.Fprintf(&b, " [%s]", v.Detail)
	}
	return Cut(b.String(), 500)
}

const (
	maxExpected      = 20
	maxViolationText = 200
)

// Bound truncates all texts and lists of v and removes control characters, so that v can be
// stored and shown. It returns v.
func (v *Violation) Bound() *Violation {
	if len(v.Expected) > maxExpected {
		v.Expected, v.Truncated = v.Expected[:maxExpected:maxExpected], true
	}
	for i := range v.Expected {
		v.bound(&v.Expected[i])
	}
	for _, s := range []*string{&v.MessageType, &v.Stream, &v.Field, &v.Detail, &v.Received} {
		v.bound(s)
	}
	return v
}

func (v *Violation) bound(s *string) {
	c := Cut(Clean(*s), maxViolationText)
	v.Truncated = v.Truncated || utf8.RuneCountInString(*s) > maxViolationText
	*s = c
}
