package abi

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// readState is §9.2.
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

// readProgress is §9.3.
func readProgress(r *reader) Message {
	m := &ProgressMessage{}
	m.Stream = r.stream("stream", VProgressInvalidStream, VProgressForUndeclaredStream, false)
	m.Message = r.text("message", VProgressInvalidMessage, r.p.Limits.TextBytes)
	m.Count = r.number("count", VProgressInvalidCount, notNegative)
	m.Total = r.number("total", VProgressInvalidTotal, notNegative)
	return m
}

// readSkip is §9.4.
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
	if d := r.member("diagnostics"); d.Kind == strictjson.KindObject { // anything else is dropped (R57)
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

// hint reads a recovery hint: one action, or {action, retryable?} (R61).
func (r *reader) hint(v strictjson.Value, field string, bad Subtype) *RecoveryHint {
	if v.Absent() {
		return nil
	}
	h := &RecoveryHint{}
	if v.Kind == strictjson.KindObject {
		for name := range v.Members() {
			if name != "action" && name != "retryable" {
				r.fail(bad, field).Detail = "a hint has the members action and retryable only"
				return nil
			}
		}
		if b, _ := v.Member("retryable"); !b.Absent() {
			retry, ok := b.Bool()
			if !ok {
				r.fail(bad, field+".retryable")
				return nil
			}
			h.Retryable = &retry
		}
		v, _ = v.Member("action")
		field += ".action"
	}
	action, ok := v.Text()
	if !ok || !contains(RecoveryActions, action) {
		f := r.fail(bad, field)
		f.Expected, f.Received = RecoveryActions, action
		return nil
	}
	h.Action = action
	return h
}

// continuation reads the proof of one slice (R60).
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

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
