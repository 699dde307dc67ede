// Package scope derives the scope of a run from what its owner granted and its caller asked
// for, and checks records against it. It is pure and trusts neither: scopes of callers and
// stored grants pass the same reader.
//
// See docs/spec/runs.md.
package scope

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// An Error refuses a start. Code is one of the scope_* codes.
type Error struct {
	Code   string
	Member string // where in the scope, such as streams[2].fields
	Want   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("scope member %s: %s (%s)", e.Member, e.Want, e.Code)
}

// A Request is the input of Normalise.
type Request struct {
	Manifest *abi.Manifest
	// Explicit is the caller's scope; nil when there is none.
	Explicit json.RawMessage
	// Grant is the scope of the connection's grant; nil grants everything declared.
	Grant json.RawMessage
	// Since is the owner's lower time bound, "" for none.
	Since string
}

// Normalise returns the scope that START carries. The error is an *Error.
func Normalise(r Request) (abi.Scope, error) {
	var granted *abi.Scope
	if len(r.Grant) > 0 && string(r.Grant) != "null" {
		g, err := (&reader{manifest: r.Manifest}).read(r.Grant)
		if err != nil {
			return abi.Scope{}, err
		}
		granted = &g
	}
	switch {
	case len(r.Explicit) > 0 && string(r.Explicit) != "null":
		in := reader{manifest: r.Manifest}
		s, err := in.read(r.Explicit)
		if err != nil {
			return abi.Scope{}, err
		}
		if granted != nil {
			if err := within(s, *granted); err != nil {
				return abi.Scope{}, err
			}
		}
		if in.misnamed != nil {
			return abi.Scope{}, in.misnamed
		}
		return complete(s, r.Manifest), nil
	case granted != nil:
		return complete(*granted, r.Manifest), nil
	default:
		return declared(r)
	}
}

// declared returns the scope without an explicit scope and without a grant.
func declared(r Request) (abi.Scope, error) {
	var s abi.Scope
	for _, st := range r.Manifest.Streams {
		if st.Availability == abi.UnsupportedInMode {
			continue
		}
		e := abi.ScopeStream{Name: st.Name}
		if r.Since != "" && st.ConsentTimeField != "" {
			e.TimeRange = &abi.TimeRange{Since: r.Since}
		}
		s.Streams = append(s.Streams, e)
	}
	if len(s.Streams) == 0 {
		return s, &Error{"scope_no_streams", "streams", "at least one stream that this mode supports"}
	}
	return s, nil
}

// complete adds the fields that every record needs to lists of fields.
func complete(s abi.Scope, m *abi.Manifest) abi.Scope {
	for i, e := range s.Streams {
		if e.Fields == nil {
			continue
		}
		spec := m.Stream(e.Name)
		need := slices.Concat(spec.Required, spec.PrimaryKey)
		if e.TimeRange != nil && spec.ConsentTimeField != "" {
			need = append(need, spec.ConsentTimeField)
		}
		fields := slices.Clone(e.Fields)
		for _, f := range need {
			if !slices.Contains(fields, f) {
				fields = append(fields, f)
			}
		}
		s.Streams[i].Fields = fields
	}
	return s
}

// Unenforced lists the streams with a time range but no field to check it against.
func Unenforced(s abi.Scope, m *abi.Manifest) []string {
	var out []string
	for _, e := range s.Streams {
		if e.TimeRange != nil && m.Stream(e.Name).ConsentTimeField == "" {
			out = append(out, e.Name)
		}
	}
	return out
}
