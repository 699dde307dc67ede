package abi

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// SkipMessage is a SKIP_RESULT.
type SkipMessage struct {
	Stream       string          `json:"stream,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Message      string          `json:"message,omitempty"`
	RecoveryHint *RecoveryHint   `json:"recovery_hint,omitempty"`
	Continuation *Continuation   `json:"continuation,omitempty"`
	ResourceIDs  []string        `json:"resource_ids,omitempty"`
	TimeRange    *TimeRange      `json:"time_range,omitempty"`
	Diagnostics  json.RawMessage `json:"diagnostics,omitempty"`
}

// Type returns SKIP_RESULT.
func (*SkipMessage) Type() string { return skipKind.name }
func (*SkipMessage) message()     {}

var skipKind = kind{
	name:  "SKIP_RESULT",
	step:  StepMessage,
	call:  CallSkip,
	read:  readSkip,
	limit: func(l Limits) int { return l.SkipPerRun },
	faults: []fault{
		{VSkipForUndeclaredStream, "named a stream that is not in scope"},
		{VSkipInvalidContinuation, "has a continuation of the wrong shape"},
		{VSkipInvalidMessage, "has a message that is not a text"},
		{VSkipInvalidReason, "has a reason that is not a text"},
		{VSkipInvalidRecoveryHint, "has a recovery hint of the wrong shape"},
		{VSkipInvalidResources, "has a resource list of the wrong shape"},
		{VSkipInvalidStream, "has a stream that is not a text"},
		{VSkipInvalidTimeRange, "has a time range of the wrong shape"},
	},
}

const (
	VSkipForUndeclaredStream Subtype = "skip_for_undeclared_stream"
	VSkipInvalidContinuation Subtype = "skip_invalid_continuation"
	VSkipInvalidMessage      Subtype = "skip_invalid_message"
	VSkipInvalidReason       Subtype = "skip_invalid_reason"
	VSkipInvalidRecoveryHint Subtype = "skip_invalid_recovery_hint"
	VSkipInvalidResources    Subtype = "skip_invalid_resources"
	VSkipInvalidStream       Subtype = "skip_invalid_stream"
	VSkipInvalidTimeRange    Subtype = "skip_invalid_time_range"
)

// A Continuation certifies one bounded slice of the collection; the host schedules the
// next.
type Continuation struct {
	Boundary   string `json:"boundary"`
	SliceStart int64  `json:"slice_start"`
	SliceEnd   int64  `json:"slice_end"`
	Considered int64  `json:"considered"`
	Covered    int64  `json:"covered"`
	Remaining  bool   `json:"remaining"` // always true
	Owner      string `json:"owner"`     // always "runtime"
}

// readSkip checks a SKIP_RESULT.
func readSkip(r *reader) Message {
	m := &SkipMessage{}
	m.Stream = r.stream("stream", VSkipInvalidStream, VSkipForUndeclaredStream, false)
	m.Reason = r.optText("reason", VSkipInvalidReason, MaxReasonBytes)
	m.Message = r.optText("message", VSkipInvalidMessage, r.p.Limits.TextBytes)
	m.RecoveryHint = r.hint(r.member("recovery_hint"), "recovery_hint", VSkipInvalidRecoveryHint)
	m.Continuation = r.continuation()
	ids := r.texts("resource_ids", VSkipInvalidResources)
	alias := r.texts("resources", VSkipInvalidResources)
	if m.ResourceIDs = ids; ids == nil {
		m.ResourceIDs = alias
	}
	m.TimeRange = r.timeRange()
	if d := r.member("diagnostics"); d.Kind == strictjson.KindObject { // anything else is dropped
		if len(d.Raw) > r.p.Limits.OpaqueBytes {
			r.limit("diagnostics", r.p.Limits.OpaqueBytes)
		}
		m.Diagnostics = json.RawMessage(d.Raw)
	}
	return m
}

func (r *reader) timeRange() *TimeRange {
	v := r.member("time_range")
	if v.Absent() {
		return nil
	}
	if v.Kind != strictjson.KindObject {
		r.fail(VSkipInvalidTimeRange, "time_range")
		return nil
	}
	t := &TimeRange{}
	for _, bound := range []struct {
		name string
		into *string
	}{{"since", &t.Since}, {"until", &t.Until}} {
		b, _ := v.Member(bound.name)
		*bound.into = r.textOf(b, "time_range."+bound.name, VSkipInvalidTimeRange, r.p.Limits.TextBytes, false)
	}
	return t
}

// continuation reads the certificate of one slice.
func (r *reader) continuation() *Continuation {
	v := r.member("continuation")
	if v.Absent() {
		return nil
	}
	c := &Continuation{Remaining: true, Owner: "runtime"}
	boundary, _ := v.Member("boundary")
	c.Boundary, _ = boundary.Text()
	ok := v.Kind == strictjson.KindObject && !Blank(c.Boundary)
	for _, n := range []struct {
		name string
		into *int64
	}{{"slice_start", &c.SliceStart}, {"slice_end", &c.SliceEnd}, {"considered", &c.Considered}, {"covered", &c.Covered}} {
		m, _ := v.Member(n.name)
		i, safe := m.SafeInteger()
		*n.into, ok = i, ok && safe && i >= 0
	}
	remaining, _ := v.Member("remaining")
	more, isBool := remaining.Bool()
	owner, _ := v.Member("owner")
	name, _ := owner.Text()
	if !ok || c.SliceStart > c.SliceEnd || !isBool || !more || name != "runtime" {
		r.fail(VSkipInvalidContinuation, "continuation")
		return nil
	}
	if len(c.Boundary) > r.p.Limits.TextBytes {
		r.limit("continuation.boundary", r.p.Limits.TextBytes)
	}
	return c
}
