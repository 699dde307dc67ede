package abi

import (
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A TextMessage is a MESSAGE line of the stdio profile: text that the connector streams to
// the owner. ABI connectors import a function for it.
type TextMessage struct {
	Chunk string
	Last  bool
	Meta  strictjson.Value // absent if it is not an object
}

// Type returns MESSAGE.
func (*TextMessage) Type() string { return textKind.name }
func (*TextMessage) message()     {}

var textKind = kind{
	name: "MESSAGE",
	step: StepMessage,
	read: readText,
}

// readText reads a MESSAGE line. Errors that the message function returns are a malformed
// line here, because a stdio connector cannot receive them.
func readText(r *reader) Message {
	m := &TextMessage{Meta: r.member("meta")}
	var ok bool
	if m.Chunk, ok = r.member("chunk").Text(); !ok {
		r.fail(VFrameMalformed, "chunk")
	}
	if last := r.member("is_last"); !last.Absent() {
		if m.Last, ok = last.Bool(); !ok {
			r.fail(VFrameMalformed, "is_last")
		}
	}
	return m
}
