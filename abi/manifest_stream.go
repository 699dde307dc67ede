package abi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

func (r *manifestReader) streams(m *Manifest, list at) {
	if !list.Is(strictjson.KindArray) || list.Value.Len() == 0 {
		r.fail(list, "streams_missing", "a non-empty array of streams")
		return
	}
	var declared []at
	r.list(list, MaxScopeStreams, func(a at) {
		if !r.object(a, true) {
			return
		}
		declared = append(declared, a)
		s := r.stream(a)
		if _, seen := m.byName[s.Name]; seen {
			r.fail(a.member("name"), "stream_duplicate", "a name no other stream has")
		}
		m.byName[s.Name] = len(m.Streams)
		m.Streams = append(m.Streams, s)
	})
	r.declarations(declared)
}

func (r *manifestReader) stream(a at) StreamSpec {
	s := StreamSpec{Name: r.text(a.member("name"), MaxStreamName, true)}
	if s.Name == "*" {
		r.fail(a.member("name"), "stream_name_invalid", "a name other than *")
	}
	r.schemaOf(&s, a.member("schema"))
	s.PrimaryKey = r.primaryKey(a.member("primary_key"), &s)
	s.Semantics = r.oneOf(a.member("semantics"), true, "append_only", "mutable_state")
	s.CursorField = r.text(a.member("cursor_field"), 256, false)
	r.consentTime(&s, a.member("consent_time_field"))
	if sel := a.member("selection"); r.object(sel, false) {
		s.ResourceField = r.text(sel.member("resource_field"), 256, false)
	}
	s.Incremental = r.flag(a.member("incremental"))
	if av := a.member("availability"); r.object(av, false) {
		s.Availability = r.oneOf(av.member("state"), false, Supported, UnsupportedInMode, "experimental", "deprecated")
	}
	s.CoverageStrategy = r.oneOf(a.member("coverage_strategy"), false, CheckpointWindow, "full_inventory",
		ParentDetailAccounting, "snapshot_import_receipt", "singleton_presence")
	r.views(a.member("views"))
	s.CheckSchema = r.flag(a.member("validate_records"))
	s.StateStream, s.ParentStreams = r.parents(a)
	return s
}

func (r *manifestReader) schemaOf(s *StreamSpec, a at) {
	if !r.object(a, true) {
		return
	}
	if depth(a.Value) > 32 {
		r.fail(a, "schema_too_deep", "at most 32 levels")
		return
	}
	r.oneOf(a.member("type"), true, "object")
	props := a.member("properties")
	if !r.object(props, true) {
		return
	}
	s.Properties = map[string]Property{}
	for name := range props.Members() {
		p := props.member(name)
		if !r.object(p, true) {
			return
		}
		s.Properties[name] = Property{Types: r.types(p.member("type")), Format: r.text(p.member("format"), 64, false)}
	}
	s.Required = r.texts(a.member("required"), MaxScopeFields)
	s.Open = r.open(a)
	s.Schema = json.RawMessage(slices.Clone(a.Raw))
}

// open reports whether an object schema explicitly permits undeclared members. The default
// is no, unlike in JSON Schema, because owners narrow what the schema declares.
func (r *manifestReader) open(schema at) bool {
	more := schema.member("additionalProperties")
	allowed, _ := more.Bool()
	return allowed || more.Is(strictjson.KindObject)
}

// types reads a JSON Schema type: one name or an array of names.
func (r *manifestReader) types(a at) []string {
	if a.Is(strictjson.KindArray) {
		return r.texts(a, 8)
	}
	if t := r.text(a, 32, false); t != "" {
		return []string{t}
	}
	return nil
}

func (r *manifestReader) primaryKey(a at, s *StreamSpec) []string {
	var key []string
	if a.Is(strictjson.KindArray) {
		key = r.texts(a, MaxKeyParts)
	} else {
		key = []string{r.text(a, 256, true)}
	}
	if len(key) == 0 {
		r.fail(a, "primary_key_empty", "at least one field")
	}
	for _, f := range key {
		if _, ok := s.Properties[f]; !ok {
			r.fail(a, "primary_key_unknown", "names of properties")
		}
	}
	return key
}

func (r *manifestReader) consentTime(s *StreamSpec, a at) {
	s.ConsentTimeField = r.text(a, 256, false)
	if s.ConsentTimeField == "" {
		return
	}
	p, ok := s.Properties[s.ConsentTimeField]
	if !ok {
		r.fail(a, "consent_time_unknown", "the name of a property")
		return
	}
	for _, t := range p.Types {
		switch {
		case t == "null", t == "number", t == "integer":
		case t == "string" && (p.Format == "date" || p.Format == "date-time"):
		default:
			r.fail(a, "consent_time_type", "a property of type number, integer, or string with format date or date-time")
		}
	}
	if len(p.Types) == 0 {
		r.fail(a, "consent_time_type", "a property with a type")
	}
}

func (r *manifestReader) views(a at) {
	r.list(a, 64, func(i at) {
		if r.object(i, true) {
			r.text(i.member("id"), 128, true)
			r.text(i.member("label"), 200, false)
			r.texts(i.member("fields"), MaxScopeFields)
		}
	})
}

// parents reads state_stream and parent_streams.
func (r *manifestReader) parents(a at) (state string, parents []string) {
	const rule = "dependency_malformed"
	if v := a.member("state_stream"); !v.Absent() {
		t, ok := v.Text()
		if !ok || Blank(t) {
			r.fail(v, rule, "the name of a stream")
		}
		state = t
	}
	list := a.member("parent_streams")
	if list.Absent() {
		return state, nil
	}
	if !list.Is(strictjson.KindArray) {
		r.fail(list, rule, "an array of stream names")
		return state, nil
	}
	for item := range list.Items() {
		t, ok := item.Text()
		if !ok || Blank(t) {
			r.fail(list, rule, "an array of stream names")
		}
		parents = append(parents, t)
	}
	return state, parents
}

// declarations checks how streams declare their parents, one rule at a time over all
// streams. checkDependencies has the rules that need only names.
func (r *manifestReader) declarations(streams []at) {
	for _, a := range streams {
		if list := a.member("parent_streams"); !list.Absent() && !a.member("state_stream").Absent() {
			r.fail(list, "dependency_both_declared", "state_stream or parent_streams, not both")
		}
	}
	for _, a := range streams {
		if list := a.member("parent_streams"); list.Is(strictjson.KindArray) && list.Value.Len() == 0 {
			r.fail(list, "dependency_empty_parents", "at least one parent")
		}
	}
}

// checkDependencies checks references between streams, one rule at a time over all streams.
func checkDependencies(m *Manifest) error {
	rows := []struct {
		rule, want string
		bad        func(s StreamSpec, parents []string) bool
	}{
		{"dependency_self_reference", "another stream", func(s StreamSpec, parents []string) bool {
			return slices.Contains(parents, s.Name)
		}},
		{"dependency_unknown_stream", "streams of this manifest", func(_ StreamSpec, parents []string) bool {
			return slices.ContainsFunc(parents, func(p string) bool { return !m.Declares(p) })
		}},
		{"dependency_duplicate_parent", "each parent once", func(_ StreamSpec, parents []string) bool {
			sorted := slices.Sorted(slices.Values(parents))
			return len(slices.Compact(sorted)) < len(parents)
		}},
	}
	for _, row := range rows {
		for i, s := range m.Streams {
			if row.bad(s, m.Parents(s.Name)) {
				return dependencyError(i, s, row.rule, row.want)
			}
		}
	}
	if err := checkCycle(m); err != nil {
		return err
	}
	for i, s := range m.Streams {
		for _, p := range m.Parents(s.Name) {
			if m.DependsOn(p) {
				return dependencyError(i, s, "dependency_too_deep", "a parent that has no parent itself, unlike "+p)
			}
		}
	}
	for i, s := range m.Streams {
		if s.StateStream != "" && s.CoverageStrategy != CheckpointWindow {
			return dependencyError(i, s, "dependency_strategy_mismatch", "coverage_strategy "+CheckpointWindow)
		}
		if len(s.ParentStreams) > 0 && s.CoverageStrategy != ParentDetailAccounting {
			return dependencyError(i, s, "dependency_strategy_mismatch", "coverage_strategy "+ParentDetailAccounting)
		}
	}
	return nil
}

func dependencyError(i int, s StreamSpec, rule, want string) error {
	member := "parent_streams"
	if s.StateStream != "" {
		member = "state_stream"
	}
	return &ManifestError{fmt.Sprintf("/streams/%d/%s", i, member), rule, want}
}

// checkCycle looks for a cycle by a depth-first search with three colours.
func checkCycle(m *Manifest) error {
	const grey, black = 1, 2
	colour := make(map[string]int, len(m.Streams))
	var path []string
	var visit func(name string) bool
	visit = func(name string) bool {
		colour[name] = grey
		path = append(path, name)
		for _, p := range m.Parents(name) {
			if colour[p] == grey {
				path = append(path[slices.Index(path, p):], p)
				return true
			}
			if colour[p] == 0 && visit(p) {
				return true
			}
		}
		colour[name] = black
		path = path[:len(path)-1]
		return false
	}
	for i, s := range m.Streams {
		path = path[:0]
		if colour[s.Name] == 0 && visit(s.Name) {
			return dependencyError(i, s, "dependency_cycle", "no cycle, unlike "+strings.Join(path, " -> "))
		}
	}
	return nil
}
