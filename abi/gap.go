package abi

import (
	"encoding/json"
)

// GapMessage is a DETAIL_GAP.
type GapMessage struct {
	Stream        string          `json:"stream"`
	ParentStream  string          `json:"parent_stream,omitempty"`
	RecordKey     string          `json:"record_key,omitempty"` // text form
	Reason        string          `json:"reason,omitempty"`
	Retryable     *bool           `json:"retryable,omitempty"`
	DetailLocator json.RawMessage `json:"detail_locator,omitempty"`
	ListCursor    json.RawMessage `json:"list_cursor,omitempty"`
	LastError     json.RawMessage `json:"last_error,omitempty"`
	GapID         string          `json:"gap_id,omitempty"`
}

// Type returns DETAIL_GAP.
func (*GapMessage) Type() string { return gapKind.name }
func (*GapMessage) message()     {}

var gapKind = kind{
	name:  "DETAIL_GAP",
	step:  StepMessage,
	call:  CallGap,
	read:  readGap,
	limit: func(l Limits) int { return l.GapPerRun },
	faults: []fault{
		{VDetailGapForUndeclaredStream, "named a stream that is not in scope"},
		{VDetailGapInvalidField, "has a member of the wrong type"},
		{VDetailGapInvalidStream, "needs the name of a stream"},
	},
}

const (
	VDetailGapForUndeclaredStream Subtype = "detail_gap_for_undeclared_stream"
	VDetailGapInvalidField        Subtype = "detail_gap_invalid_field"
	VDetailGapInvalidStream       Subtype = "detail_gap_invalid_stream"
)

// readGap checks a DETAIL_GAP.
func readGap(r *reader) Message {
	const bad = VDetailGapInvalidField
	m := &GapMessage{}
	m.Stream = r.stream("stream", VDetailGapInvalidStream, VDetailGapForUndeclaredStream, true)
	m.ParentStream = r.optText("parent_stream", bad, MaxStreamName)
	m.RecordKey = r.optKey("record_key", bad)
	m.Reason = r.optText("reason", bad, MaxReasonBytes)
	m.Retryable = r.boolean("retryable", bad)
	m.DetailLocator = r.object("detail_locator", bad, r.p.Limits.OpaqueBytes)
	m.ListCursor = r.object("list_cursor", bad, r.p.Limits.OpaqueBytes)
	m.LastError = r.object("last_error", bad, r.p.Limits.OpaqueBytes)
	m.GapID = r.optText("gap_id", bad, MaxIDBytes)
	r.optText("lease_id", bad, MaxIDBytes)
	return m
}

// optKey reads an optional record key, a string or a number, in text form.
func (r *reader) optKey(name string, bad Subtype) string {
	v := r.member(name)
	if v.Absent() {
		return ""
	}
	s, ok := keyText(v)
	switch {
	case !ok || Blank(s):
		r.fail(bad, name)
	case len(s) > MaxKeyBytes:
		r.limit(name, MaxKeyBytes)
	}
	return s
}
