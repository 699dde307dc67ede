package guest

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// Messages that are sent unchanged; their fields are those of the protocol.
type (
	// Skip reports something that is not collected.
	Skip = abi.SkipMessage
	// Hint says what would help.
	Hint = abi.RecoveryHint
	// Continuation certifies one bounded slice.
	Continuation = abi.Continuation
	// TimeRange is half-open. An empty bound is unbounded.
	TimeRange = abi.TimeRange
	// Gap reports a record whose detail is missing.
	Gap = abi.GapMessage
	// Coverage accounts for the details of one parent boundary.
	Coverage = abi.CoverageMessage
)

// Checkpoint records how far a stream has been collected. When it returns, all records
// emitted to the stream are durable and the cursor is staged. The cursor is any JSON
// object, or nil; once this run succeeds, later runs read it with State.
func (r *Run) Checkpoint(stream string, cursor any) error {
	if !r.InScope(stream) {
		return &streamError{stream, r.start.Scope.Streams}
	}
	b := append(strictjson.AppendQuote([]byte(`{"stream":`), stream), `,"cursor":`...)
	if cursor == nil {
		b = append(b, "null"...)
	} else {
		var err error
		if b, err = encode.AppendObject(b, cursor); err != nil {
			return err
		}
	}
	_, err := r.call(r.port.checkpoint, append(b, '}'))
	return err
}

// Progress tells the owner how the run is doing. Options: OnStream, Count, Total. To ask
// for something use Assist or a question such as OTP.
func (r *Run) Progress(message string, options ...Option) error {
	o := optionsOf(options)
	return r.send(r.port.progress,
		&abi.ProgressMessage{Stream: o.stream, Message: message, Count: o.count, Total: o.total})
}

// Skip reports something that is not collected. It sets Remaining and Owner of a
// Continuation.
func (r *Run) Skip(s Skip) error {
	if s.Continuation != nil {
		c := *s.Continuation
		c.Remaining, c.Owner = true, "runtime"
		s.Continuation = &c
	}
	return r.send(r.port.skip, &s)
}

// Gap reports a record whose detail could not be collected.
func (r *Run) Gap(g Gap) error { return r.send(r.port.gap, &g) }

// Recovered closes a gap of Start().DetailGaps whose detail has been emitted, before the
// end of the run.
func (r *Run) Recovered(g abi.ServedGap) error {
	return r.send(r.port.recovered,
		&abi.RecoveredMessage{GapID: g.GapID, Stream: g.Stream, ReferenceOnly: true, RecordKey: g.RecordKey})
}

// Cover accounts for the details of one parent boundary: every required key is hydrated, a
// gap, or missing. RequiredKeys and HydratedKeys may be nil.
func (r *Run) Cover(c Coverage) error {
	c.ReferenceOnly = true
	if c.RequiredKeys == nil {
		c.RequiredKeys = []string{}
	}
	if c.HydratedKeys == nil {
		c.HydratedKeys = []string{}
	}
	return r.send(r.port.coverage, &c)
}

// send encodes a message and calls its function.
func (r *Run) send(function func([]byte) ([]byte, error), message any) error {
	b, err := encode.Append(nil, message)
	if err != nil {
		return err
	}
	_, err = r.call(function, b)
	return err
}

// A textChunk is the request of the message call.
type textChunk struct {
	Node  string          `json:"node,omitempty"`
	Chunk string          `json:"chunk"`
	Last  bool            `json:"is_last"`
	Meta  json.RawMessage `json:"meta,omitempty"`
}

// Message streams a piece of text to whoever watches the run. It has no other effect.
// Options: Node, Last, Meta.
func (r *Run) Message(chunk string, options ...Option) error {
	o := optionsOf(options)
	if o.err != nil {
		return o.err
	}
	return r.send(r.port.message, &textChunk{Node: o.node, Chunk: chunk, Last: o.last, Meta: o.meta})
}
