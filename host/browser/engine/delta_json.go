package engine

import "encoding/json"

// MarshalJSON writes a predicate as guests do (section 2.2), for the echo of a delta.
func (p Predicate) MarshalJSON() ([]byte, error) {
	m := map[string]any{}
	switch p.Kind {
	case "all", "any":
		m[p.Kind] = p.Of
		return json.Marshal(m)
	case "not":
		if len(p.Of) == 1 {
			m["not"] = p.Of[0]
		}
		return json.Marshal(m)
	}
	m["kind"] = p.Kind
	for name, v := range map[string]string{"op": p.Op, "name": p.Attribute, "changed_from": p.ChangedFrom, "name_matches": p.NameMatches} {
		if v != "" {
			m[name] = v
		}
	}
	switch p.Kind {
	case "text", "url", "title", "attribute":
		m["value"] = p.Text
	case "count":
		m["value"] = p.Count
	case "files":
		m["names"] = append([]string{}, p.Names...)
	}
	if p.Target != nil {
		m["target"] = p.Target
	}
	if p.Kind == "selected" && p.Names != nil {
		m["equals"] = p.Names
	}
	if v := p.wanted(); v != nil {
		m["equals"] = v
	}
	if p.Tolerance != 0 {
		m["tolerance"] = p.Tolerance
	}
	if p.SameDocument != nil {
		m["same_document"] = *p.SameDocument
	}
	if len(p.Kinds) > 0 {
		m["kinds"] = p.Kinds
	}
	return json.Marshal(m)
}

// wanted is the member equals, or nil.
func (p Predicate) wanted() any {
	switch {
	case p.Bool != nil:
		return *p.Bool
	case p.String != nil:
		return *p.String
	case p.Number != nil:
		return *p.Number
	case p.Option != nil:
		return map[string]string{"id": p.Option.ID, "label": p.Option.Label}
	}
	return nil
}
