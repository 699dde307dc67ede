package guest

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// An Option refines a call. Each call documents its options and ignores others.
type Option func(*options)

type options struct {
	stream       string
	count, total *float64
	timeout      time.Duration
	fields       []Field
	id           string
	node         string
	last         bool
	meta         json.RawMessage
	refinable    bool
	draft        *string
	err          error
}

func optionsOf(list []Option) options {
	var o options
	for _, set := range list {
		set(&o)
	}
	return o
}

// OnStream names the stream that a message is about.
func OnStream(name string) Option { return func(o *options) { o.stream = name } }

// Count is how much is done.
func Count[N int | int64 | float64](n N) Option {
	return func(o *options) { f := float64(n); o.count = &f }
}

// Total is how much there is to do.
func Total[N int | int64 | float64](n N) Option {
	return func(o *options) { f := float64(n); o.total = &f }
}

// Timeout bounds how long the owner may take. Without it the host's limit and the deadline
// of the context apply.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Form replaces the fields that this kind of question has by default.
func Form(fields ...Field) Option { return func(o *options) { o.fields = fields } }

// Refinable lets the owner answer Approve with a request for a change, explained in a
// comment.
func Refinable() Option { return func(o *options) { o.refinable = true } }

// Editable shows the owner the text to approve, of at most 8000 bytes, and lets the owner
// accept an edited version.
func Editable(text string) Option { return func(o *options) { o.draft = &text } }

// RequestID sets the id of a question, for connectors that have their own.
func RequestID(id string) Option { return func(o *options) { o.id = id } }

// Node names the part of the connector that a text comes from.
func Node(name string) Option { return func(o *options) { o.node = name } }

// Last marks the last chunk of a text.
func Last() Option { return func(o *options) { o.last = true } }

// Meta attaches a JSON object to a chunk of text.
func Meta(v any) Option {
	return func(o *options) { o.meta, o.err = encode.Append(nil, v) }
}
