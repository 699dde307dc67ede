package guest

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// An Option refines a call. Each call says which options it heeds; it ignores
// the others.
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

// OnStream says which stream a message is about.
func OnStream(name string) Option { return func(o *options) { o.stream = name } }

// Count is how much is done.
func Count[N int | int64 | float64](n N) Option {
	return func(o *options) { f := float64(n); o.count = &f }
}

// Total is how much there is to do.
func Total[N int | int64 | float64](n N) Option {
	return func(o *options) { f := float64(n); o.total = &f }
}

// Timeout bounds how long the owner has. Without one a question waits as long
// as the host lets it, or until the deadline of the context.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Form asks for these fields in place of the kind's own.
func Form(fields ...Field) Option { return func(o *options) { o.fields = fields } }

// Refinable lets the owner of an Approve ask for something else, with a comment
// that says what.
func Refinable() Option { return func(o *options) { o.refinable = true } }

// Editable shows the owner of an Approve the text that it is about, of at most
// 8000 bytes, and lets them accept a version of their own.
func Editable(text string) Option { return func(o *options) { o.draft = &text } }

// RequestID names the question, for connectors that have a name for it.
func RequestID(id string) Option { return func(o *options) { o.id = id } }

// Node names the part of a connector that a text is from.
func Node(name string) Option { return func(o *options) { o.node = name } }

// Last marks the last chunk of a text.
func Last() Option { return func(o *options) { o.last = true } }

// Meta adds an object of the connector's choice to a chunk of text.
func Meta(v any) Option {
	return func(o *options) { o.meta, o.err = encode.Append(nil, v) }
}
