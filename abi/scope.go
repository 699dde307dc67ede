package abi

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Scope is what a run may collect, normalised, as START carries it.
type Scope struct {
	Streams []ScopeStream `json:"streams"`
}

// A ScopeStream is one granted stream. Nil Resources or Fields restrict nothing.
type ScopeStream struct {
	Name      string
	Resources []string   // canonical keys or values of selection.resource_field
	Fields    []string   // top-level members of data that may appear
	TimeRange *TimeRange // on the consent-time field
	// Extra holds the other members of the caller's entry, unchanged.
	Extra []ScopeMember
}

// A ScopeMember is a member of a scope entry that is passed through.
type ScopeMember struct {
	Name  string
	Value json.RawMessage
}

// A TimeRange is half-open: since <= t < until. An empty bound is unbounded.
type TimeRange struct {
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
}

// MarshalJSON writes the name, the restrictions that are set, and then Extra.
func (s ScopeStream) MarshalJSON() ([]byte, error) {
	b := strictjson.AppendQuote([]byte(`{"name":`), s.Name)
	for _, list := range []struct {
		name  string
		items []string
	}{{"resources", s.Resources}, {"fields", s.Fields}} {
		if list.items == nil {
			continue
		}
		b = append(strictjson.AppendQuote(append(b, ','), list.name), ':')
		b = appendTexts(b, list.items)
	}
	if s.TimeRange != nil {
		b = s.TimeRange.append(append(b, `,"time_range":`...))
	}
	for _, m := range s.Extra {
		b = append(strictjson.AppendQuote(append(b, ','), m.Name), ':')
		b = append(b, m.Value...)
	}
	return append(b, '}'), nil
}

// append appends r as JSON. It avoids json.Marshal, which would link encoding/json into
// every guest.
func (r *TimeRange) append(b []byte) []byte {
	b = append(b, '{')
	if r.Since != "" {
		b = strictjson.AppendQuote(append(b, `"since":`...), r.Since)
	}
	if r.Since != "" && r.Until != "" {
		b = append(b, ',')
	}
	if r.Until != "" {
		b = strictjson.AppendQuote(append(b, `"until":`...), r.Until)
	}
	return append(b, '}')
}

// UnmarshalJSON is for guests and tests. The host reads scopes with its own strict reader.
func (s *ScopeStream) UnmarshalJSON(b []byte) error {
	var v struct {
		Name      string     `json:"name"`
		Resources []string   `json:"resources"`
		Fields    []string   `json:"fields"`
		TimeRange *TimeRange `json:"time_range"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = ScopeStream{Name: v.Name, Resources: v.Resources, Fields: v.Fields, TimeRange: v.TimeRange}
	return nil
}

func appendTexts(b []byte, items []string) []byte {
	b = append(b, '[')
	for i, t := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendQuote(b, t)
	}
	return append(b, ']')
}
