package scope

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Projection shows records of one stream to a reader with a narrower scope. Where a
// Filter refuses a record with an excess field, a Projection removes the field, even one
// that the stream requires. It is safe for concurrent use.
type Projection struct {
	fields map[string]bool // nil: all
	timed  bool
	keys   map[string]bool // of resources; nil: no restriction

	mu     sync.Mutex // guards the fields below, which are scratch space
	filter *Filter
	scan   strictjson.Scanner
}

// Projections compiles the scope of a reader, by stream; nil or null is everything
// declared. It omits streams with a restriction that cannot be checked. The error is an
// *Error.
func Projections(raw json.RawMessage, m *abi.Manifest) (map[string]*Projection, error) {
	var s abi.Scope
	if len(raw) == 0 || string(raw) == "null" {
		for _, spec := range m.Streams {
			s.Streams = append(s.Streams, abi.ScopeStream{Name: spec.Name})
		}
	} else {
		var err error
		if s, err = (&reader{manifest: m}).read(raw); err != nil {
			return nil, err
		}
	}
	unenforced := Unenforced(s, m)
	out := map[string]*Projection{}
	for _, e := range s.Streams {
		if slices.Contains(unenforced, e.Name) {
			continue
		}
		p := &Projection{timed: e.TimeRange != nil}
		if e.Fields != nil {
			p.fields = set(e.Fields)
		}
		if len(e.Resources) > 0 {
			p.keys = set(e.Resources)
		}
		e.Fields = nil // Record removes fields
		p.filter = NewFilter(abi.Scope{Streams: []abi.ScopeStream{e}}, m)
		out[e.Name] = p
	}
	return out, nil
}

// Record returns what the reader sees of a record; ok is false if it sees nothing. If no
// field is removed, shown is data itself.
func (p *Projection) Record(key string, data []byte) (shown []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	members, err := p.scan.Object(data)
	if err != nil {
		return nil, false
	}
	if p.filter.Admit(&abi.RecordMessage{Key: []byte(key), Data: data, Members: members}) != nil {
		return nil, false
	}
	if p.fields == nil {
		return data, true
	}
	shown = []byte{'{'}
	for _, m := range members {
		if !p.fields[string(m.Name)] {
			continue
		}
		if len(shown) > 1 {
			shown = append(shown, ',')
		}
		shown = append(strictjson.AppendQuote(shown, m.Name), ':')
		shown = append(shown, m.Value...)
	}
	return append(shown, '}'), true
}

// Tombstone reports whether the reader may know that a key was deleted. A deleted record
// has nothing left to check against a time range or a resource field.
func (p *Projection) Tombstone(key string) bool { return !p.timed && (p.keys == nil || p.keys[key]) }

// Sees reports whether the reader sees a field.
func (p *Projection) Sees(field string) bool { return p.fields == nil || p.fields[field] }

// Whole reports whether the reader sees all records, although perhaps not all fields.
func (p *Projection) Whole() bool { return !p.timed && p.keys == nil }
