package abi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A reader reads the members of one message in the order of its checks. It keeps the first
// violation in bad and ignores later ones.
type reader struct {
	p   *Protocol
	typ string
	msg strictjson.Value
	bad *Violation
	in  string // the message's stream, once it is known to be in scope
}

func (r *reader) fail(s Subtype, field string) *Violation {
	if r.bad == nil {
		r.bad = &Violation{Subtype: s, MessageType: r.typ, Field: field}
		return r.bad
	}
	return &Violation{} // a later failure: ignored
}

func (r *reader) limit(field string, max int) {
	r.fail(VFieldLimitExceeded, field).Detail = "limit " + itoa(int64(max))
}

// member returns a member, or the absent value.
func (r *reader) member(name string) strictjson.Value {
	v, _ := r.msg.Member(name)
	return v
}

// optText reads an optional string, which must not be blank.
func (r *reader) optText(name string, bad Subtype, max int) string {
	return r.textOf(r.member(name), name, bad, max, false)
}

// text reads a required string.
func (r *reader) text(name string, bad Subtype, max int) string {
	return r.textOf(r.member(name), name, bad, max, true)
}

func (r *reader) textOf(v strictjson.Value, field string, bad Subtype, max int, required bool) string {
	if v.Absent() {
		if required {
			r.fail(bad, field)
		}
		return ""
	}
	s, ok := v.Text()
	switch {
	case !ok || Blank(s):
		r.fail(bad, field)
		return ""
	case len(s) > max:
		r.limit(field, max)
		return ""
	}
	return s
}

// stream reads the name of a stream, which must be in scope.
func (r *reader) stream(name string, bad, undeclared Subtype, required bool) string {
	if r.bad != nil {
		return ""
	}
	r.in = ""
	s := r.textOf(r.member(name), name, bad, MaxStreamName, required)
	if s == "" {
		return ""
	}
	if _, ok := r.p.streams[s]; !ok {
		v := r.fail(undeclared, "")
		v.Stream, v.Received, v.Expected = s, s, slices.Clone(r.p.names)
		return s
	}
	r.in = s
	return s
}

// enum reads a required string from a closed list.
func (r *reader) enum(name string, bad Subtype, allowed ...string) string {
	s, ok := r.member(name).Text()
	if !ok || !slices.Contains(allowed, s) {
		v := r.fail(bad, name)
		v.Expected = slices.Clone(allowed)
		if ok {
			v.Received = s
		}
	}
	return s
}

// number reads an optional finite number for which admits returns true.
func (r *reader) number(name string, bad Subtype, admits func(float64) bool) *float64 {
	v := r.member(name)
	if v.Absent() {
		return nil
	}
	f, ok := v.Float64()
	if !ok || !admits(f) {
		r.fail(bad, name)
		return nil
	}
	return &f
}

func notNegative(f float64) bool { return f >= 0 }
func positive(f float64) bool    { return f > 0 }

// boolean reads an optional true or false.
func (r *reader) boolean(name string, bad Subtype) *bool {
	v := r.member(name)
	if v.Absent() {
		return nil
	}
	b, ok := v.Bool()
	if !ok {
		r.fail(bad, name)
		return nil
	}
	return &b
}

// object reads an optional object of up to max bytes.
func (r *reader) object(name string, bad Subtype, max int) json.RawMessage {
	v := r.member(name)
	switch {
	case v.Absent():
		return nil
	case v.Kind != strictjson.KindObject:
		r.fail(bad, name)
		return nil
	case len(v.Raw) > max:
		r.limit(name, max)
		return nil
	}
	return json.RawMessage(v.Raw)
}

// schema reads an optional object in the form of a JSON Schema, within its bounds.
func (r *reader) schema(name string, bad Subtype) json.RawMessage {
	raw := r.object(name, bad, r.p.Limits.SchemaBytes)
	if raw == nil {
		return nil
	}
	v := r.member(name)
	if depth(v) > MaxSchemaDepth {
		r.limit(name, MaxSchemaDepth)
	}
	if props, ok := v.Member("properties"); ok && props.Len() > MaxSchemaFields {
		r.limit(name+".properties", MaxSchemaFields)
	}
	return raw
}

// texts reads an optional array of strings, none of them blank.
func (r *reader) texts(name string, bad Subtype) []string {
	v := r.member(name)
	if v.Absent() {
		return nil
	}
	if v.Kind != strictjson.KindArray {
		r.fail(bad, name)
		return nil
	}
	out := []string{}
	for item := range v.Items() {
		if len(out) == MaxScopeResources {
			r.limit(name, MaxScopeResources)
			return nil
		}
		s, ok := item.Text()
		if !ok || Blank(s) {
			r.fail(bad, name)
			return nil
		}
		out = append(out, s)
	}
	return out
}

// Blank reports whether s is empty after trimming white space.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// depth returns the nesting of v, 0 for a scalar. The scanner has bounded it.
func depth(v strictjson.Value) int {
	d := 0
	for item := range v.Items() {
		d = max(d, depth(item))
	}
	for _, m := range v.Members() {
		d = max(d, depth(m))
	}
	if v.Is(strictjson.KindArray) || v.Is(strictjson.KindObject) {
		d++
	}
	return d
}
