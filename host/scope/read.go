package scope

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// read is rows 1 to 9 of §6.2.
func read(raw json.RawMessage, m *abi.Manifest) (abi.Scope, error) {
	var s abi.Scope
	root, err := abi.Parse(raw, abi.ParseOptions{})
	if err != nil {
		return s, &Error{"scope_empty", "scope", `an object {"streams": […]}: ` + err.Error()}
	}
	streams, _ := root.Member("streams")
	if !streams.Is(abi.KindArray) {
		return s, &Error{"scope_empty", "streams", "a non-empty array of streams"}
	}
	seen := map[string]bool{}
	for item := range streams.Items() {
		if len(s.Streams) == abi.MaxScopeStreams {
			return s, &Error{"scope_too_large", "streams", fmt.Sprintf("at most %d streams", abi.MaxScopeStreams)}
		}
		e, err := readStream(item, fmt.Sprintf("streams[%d]", len(s.Streams)), m, seen)
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

func readStream(item abi.Value, at string, m *abi.Manifest, seen map[string]bool) (abi.ScopeStream, error) {
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
	if !m.Declares(e.Name) {
		return refuse("scope_stream_unknown", "name", fmt.Sprintf("a stream of the manifest, not %q", abi.Cut(abi.Clean(e.Name), 128)))
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
		return refuse("scope_resources_invalid", "resources", fmt.Sprintf("an array of at most %d texts", abi.MaxScopeResources))
	}
	if len(e.Resources) == 0 {
		e.Resources = nil // restricts nothing (R29)
	}
	if e.Fields, ok = texts(item, "fields", true, abi.MaxScopeFields); !ok {
		return refuse("scope_fields_invalid", "fields", fmt.Sprintf("an array of at most %d field names", abi.MaxScopeFields))
	}
	if e.TimeRange, ok = timeRange(item); !ok {
		return refuse("scope_time_range_invalid", "time_range", `an object {"since"?, "until"?} of RFC 3339 times or dates`)
	}
	for name, v := range item.Members() {
		if !slices.Contains([]string{"name", "resources", "fields", "time_range"}, name) {
			e.Extra = append(e.Extra, abi.ScopeMember{Name: name, Value: abi.AppendCompact(nil, v.Raw)})
		}
	}
	return e, nil
}

// texts reads an optional array of texts; nil when absent.
func texts(item abi.Value, name string, notBlank bool, max int) ([]string, bool) {
	v, _ := item.Member(name)
	if v.Absent() {
		return nil, true
	}
	if !v.Is(abi.KindArray) {
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

func timeRange(item abi.Value) (*abi.TimeRange, bool) {
	v, _ := item.Member("time_range")
	if v.Absent() {
		return nil, true
	}
	if !v.Is(abi.KindObject) {
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
