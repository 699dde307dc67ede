package abi

import (
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A TextMessage is a MESSAGE line of the stdio profile: text that the connector
// streams on purpose. Others have a call of their own for it.
type TextMessage struct {
	Chunk string
	Last  bool
	Meta  strictjson.Value // of the line; absent if it is no object
}

// Type returns MESSAGE.
func (*TextMessage) Type() string { return textKind.name }
func (*TextMessage) message()     {}

var textKind = kind{
	name: "MESSAGE",
	step: StepMessage,
	read: readText,
}

// readText is a MESSAGE line. What a caller of the message function is refused
// for is a malformed line here: nobody could read an error.
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
