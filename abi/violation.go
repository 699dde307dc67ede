package abi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Subtype says which rule of the protocol a connector broke. The list is
// closed: adding one is a version change. Subtypes lists it.
type Subtype string

// A Violation is a connector's fault. It always ends the run. It is
// decided where it is detected and never from message text, and carries
// names and expectations only, never values from data, cursors or responses.
type Violation struct {
	Subtype     Subtype  `json:"subtype"`
	MessageType string   `json:"message_type,omitempty"`
	Stream      string   `json:"stream,omitempty"`
	Field       string   `json:"field,omitempty"`
	Detail      string   `json:"detail,omitempty"`
	Expected    []string `json:"expected,omitempty"`
	Received    string   `json:"received,omitempty"`
	Truncated   bool     `json:"truncated,omitempty"`

	// The last event the run recorded before; filled in by the host.
	LastValidEventID   string `json:"last_valid_event_id"`
	LastValidEventType string `json:"last_valid_event_type"`
}

// Error is the host-written failure_message, at most 500 bytes.
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

// Bound cuts every text and list of v to what may be shown and removes control
// characters, so that it can be stored and shown. It returns v.
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

// Cut shortens s to at most max characters.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	n := 0
	for i := range s {
		if n == max {
			return s[:i]
		}
		n++
	}
	return s
}

// Clean makes text of a guest safe for any sink: invalid UTF-8 becomes
// U+FFFD, and control characters, bidirectional overrides, zero-width and tag
// characters go; line feeds and tabs become blanks.
func Clean(s string) string { return clean(s, false) }

// CleanLines is Clean for places that show lines: line feeds stay.
func CleanLines(s string) string { return clean(s, true) }

// CleanJSON is Clean for every string of a JSON text, names too. The text comes back
// as it was when there is nothing to clean; of names that become equal one is left.
func CleanJSON(text []byte) ([]byte, error) {
	if s := string(text); !strings.Contains(s, `\`) && Clean(s) == s {
		return text, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // as it was written
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(cleanAll(v))
}

func cleanAll(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case []any:
		for i, one := range v {
			v[i] = cleanAll(one)
		}
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[Clean(name)] = cleanAll(one)
		}
		return all
	}
	return v
}

func clean(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0,
			r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
			r >= 0x200b && r <= 0x200f, r == 0x2060, r == 0xfeff,
			r == 0x2028, r == 0x2029, r == 0x061c,
			r >= 0xe0000 && r <= 0xe007f:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
