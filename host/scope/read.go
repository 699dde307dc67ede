package scope

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// The members of an entry and of a time range.
var (
	entryMembers = []string{"name", "resources", "fields", "time_range"}
	rangeMembers = []string{"since", "until"}
)

// A reader reads scopes.
type reader struct {
	manifest *abi.Manifest
	// misnamed is the first unknown name in the scope. The caller refuses it in a new
	// scope, but accepts it in one that was stored under an earlier version of the
	// connector.
	misnamed *Error
}

// read checks the form of a scope.
func (r *reader) read(raw json.RawMessage) (abi.Scope, error) {
	var s abi.Scope
	root, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return s, &Error{"scope_empty", "scope", `an object {"streams": […]}: ` + err.Error()}
	}
	for name := range root.Members() {
		if name != "streams" {
			r.misnamed = &Error{"scope_member_unknown", "scope",
				`an object {"streams": […]} and no other member; what narrows a stream stands in its entry`}
		}
	}
	streams, _ := root.Member("streams")
	if !streams.Is(strictjson.KindArray) {
		return s, &Error{"scope_empty", "streams", "a non-empty array of streams"}
	}
	seen := map[string]bool{}
	for item := range streams.Items() {
		if len(s.Streams) == abi.MaxScopeStreams {
			return s, &Error{"scope_too_large", "streams", fmt.Sprintf("at most %d streams", abi.MaxScopeStreams)}
		}
		e, err := r.stream(item, fmt.Sprintf("streams[%d]", len(s.Streams)), seen)
		if err != nil {
			return s, err
		}
		seen[e.Name] = true
		s.Streams = append(s.Streams, e)
	}
	if len(s.Streams) == 0 {
		return s, &Error{"scope_empty", "streams", "at least one stream; leave the scope out to collect everything granted"}
	}
	return s, nil
}

func (r *reader) stream(item strictjson.Value, at string, seen map[string]bool) (abi.ScopeStream, error) {
	e := abi.ScopeStream{}
	refuse := func(code, member, want string) (abi.ScopeStream, error) {
		if member != "" {
			member = "." + member
		}
		return e, &Error{code, at + member, want}
	}
	name, _ := item.Member("name")
	text, ok := name.Text()
	if !ok || abi.Blank(text) {
		return refuse("scope_stream_name_blank", "name", "the name of a stream")
	}
	e.Name = text
	if e.Name == "*" {
		return refuse("scope_wildcard", "name", "each stream by name; * is not one")
	}
	if !r.manifest.Declares(e.Name) {
		return refuse("scope_stream_unknown", "name",
			fmt.Sprintf("a stream of the manifest, not %s; %s", quoted(e.Name), abi.Suggest(e.Name, StreamNames(r.manifest))))
	}
	if seen[e.Name] {
		return refuse("scope_duplicate_stream", "name", fmt.Sprintf("each stream once, %s is repeated", e.Name))
	}
	if _, present := item.Member("view"); present {
		return refuse("scope_view_unresolved", "view", "fields; a view must be resolved before a run")
	}
	if _, present := item.Member("necessity"); present {
		return refuse("scope_necessity_present", "necessity", "nothing; it belongs to the request for a grant")
	}
	if e.Resources, ok = texts(item, "resources", false, abi.MaxScopeResources); !ok {
		return refuse("scope_resources_invalid", "resources",
			fmt.Sprintf("an array of at most %d texts", abi.MaxScopeResources))
	}
	if len(e.Resources) == 0 {
		e.Resources = nil // restricts nothing
	}
	if e.Fields, ok = texts(item, "fields", true, abi.MaxScopeFields); !ok {
		return refuse("scope_fields_invalid", "fields", fmt.Sprintf("an array of at most %d field names", abi.MaxScopeFields))
	}
	if e.TimeRange, ok = timeRange(item); !ok {
		return refuse("scope_time_range_invalid", "time_range", `an object {"since"?, "until"?} of RFC 3339 times or dates`)
	}
	for name, v := range item.Members() {
		if slices.Contains(entryMembers, name) {
			continue
		}
		e.Extra = append(e.Extra, abi.ScopeMember{Name: name, Value: strictjson.AppendCompact(nil, v.Raw)})
	}
	if bad := misnamed(item, e, r.manifest.Stream(e.Name)); bad != nil && r.misnamed == nil {
		bad.Member = at + bad.Member
		r.misnamed = bad
	}
	return e, nil
}

// misnamed returns an error for a name in an entry that is unknown or cannot be enforced,
// so that the scope would not mean what its caller intends.
func misnamed(item strictjson.Value, e abi.ScopeStream, spec abi.StreamSpec) *Error {
	for _, x := range e.Extra { // others are for the connector
		if near := abi.Nearest(x.Name, entryMembers); near != "" {
			return &Error{"scope_member_unknown", "", "no member " + quoted(x.Name) + "; did you mean " + near + "?"}
		}
		if slices.Contains(rangeMembers, x.Name) {
			return &Error{"scope_member_unknown", "", x.Name + " inside of time_range"}
		}
	}
	for _, f := range e.Fields {
		if _, declared := spec.Properties[f]; !declared && !spec.Open {
			fields := slices.Sorted(maps.Keys(spec.Properties))
			return &Error{"scope_field_unknown", ".fields",
				fmt.Sprintf("fields of %s, which has no %s; %s", e.Name, quoted(f), abi.Suggest(f, fields))}
		}
	}
	if e.TimeRange == nil {
		return nil
	}
	given, _ := item.Member("time_range")
	for name := range given.Members() {
		if !slices.Contains(rangeMembers, name) {
			return &Error{"scope_time_range_invalid", ".time_range", "since and until, not " + quoted(name)}
		}
	}
	if since, until := bounds(e.TimeRange); since >= until {
		return &Error{"scope_time_range_invalid", ".time_range", "a since before its until; until itself is outside"}
	}
	if *e.TimeRange != (abi.TimeRange{}) && spec.ConsentTimeField == "" {
		return &Error{"scope_time_range_unsupported", ".time_range", "no time range: records of " + e.Name +
			" have no time that one could be held against"}
	}
	return nil
}

func quoted(name string) string { return strconv.Quote(abi.Cut(abi.Clean(name), 128)) }

// StreamNames returns the streams that a manifest declares, in order.
func StreamNames(m *abi.Manifest) []string {
	var out []string
	for _, s := range m.Streams {
		out = append(out, s.Name)
	}
	return out
}

// texts reads an optional array of strings, nil if absent.
func texts(item strictjson.Value, name string, notBlank bool, max int) ([]string, bool) {
	v, _ := item.Member(name)
	if v.Absent() {
		return nil, true
	}
	if !v.Is(strictjson.KindArray) {
		return nil, false
	}
	out := []string{}
	for i := range v.Items() {
		s, ok := i.Text()
		if !ok || notBlank && abi.Blank(s) || len(out) == max {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

func timeRange(item strictjson.Value) (*abi.TimeRange, bool) {
	v, _ := item.Member("time_range")
	if v.Absent() {
		return nil, true
	}
	if !v.Is(strictjson.KindObject) {
		return nil, false
	}
	r := &abi.TimeRange{}
	for _, b := range []struct {
		name string
		into *string
	}{{"since", &r.Since}, {"until", &r.Until}} {
		m, _ := v.Member(b.name)
		if m.Absent() {
			continue
		}
		s, ok := m.Text()
		if _, readable := abi.ParseTime(s); !ok || !readable {
			return nil, false
		}
		*b.into = s
	}
	return r, true
}
