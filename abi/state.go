package abi

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// StateMessage is a STATE: the current cursor of a stream.
type StateMessage struct {
	Stream string          `json:"stream"`
	Cursor json.RawMessage `json:"cursor"` // object or null
}

// Type returns STATE.
func (*StateMessage) Type() string { return stateKind.name }
func (*StateMessage) message()     {}

var stateKind = kind{
	name:  "STATE",
	step:  StepMessage,
	call:  CallCheckpoint,
	read:  readState,
	limit: func(l Limits) int { return l.StatePerRun },
	faults: []fault{
		{VStateCursorTooLarge, "has a cursor over the limit"},
		{VStateForDependentStream, "is for a stream whose cursor belongs to its parent"},
		{VStateForUndeclaredStream, "named a stream that is not in scope"},
		{VStateInvalidCursor, "has a cursor that is neither an object nor null"},
		{VStateInvalidStream, "needs the name of a stream"},
	},
}

const (
	VStateCursorTooLarge      Subtype = "state_cursor_too_large"
	VStateForDependentStream  Subtype = "state_for_dependent_stream"
	VStateForUndeclaredStream Subtype = "state_for_undeclared_stream"
	VStateInvalidCursor       Subtype = "state_invalid_cursor"
	VStateInvalidStream       Subtype = "state_invalid_stream"
)

// readState checks a STATE.
func readState(r *reader) Message {
	m := &StateMessage{}
	m.Stream = r.stream("stream", VStateInvalidStream, VStateForUndeclaredStream, true)
	if r.bad == nil && r.p.Manifest.DependsOn(m.Stream) {
		r.fail(VStateForDependentStream, "").Received = m.Stream
	}
	switch c := r.member("cursor"); {
	case c.Absent():
		m.Cursor = json.RawMessage("null")
	case c.Kind != strictjson.KindObject:
		r.fail(VStateInvalidCursor, "cursor")
	case len(c.Raw) > r.p.Limits.CursorBytes:
		r.fail(VStateCursorTooLarge, "cursor")
	default:
		m.Cursor = json.RawMessage(c.Raw)
	}
	return m
}
