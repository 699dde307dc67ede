package scope

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Filter checks records against one run's scope. It does not allocate per record. It is
// not safe for concurrent use.
type Filter struct {
	streams []streamFilter
	text    []byte
}

type streamFilter struct {
	resources     map[string]bool // nil: no restriction
	resourceField string
	fields        map[string]bool // nil: no restriction
	names         []string        // of fields, for the violation
	seen          []string        // granted names of earlier records, by position
	timed         bool
	timeField     string
	since, until  int64
}

var _ abi.RecordFilter = (*Filter)(nil)

// NewFilter compiles a normalised scope.
func NewFilter(s abi.Scope, m *abi.Manifest) *Filter {
	f := &Filter{}
	for _, e := range s.Streams {
		spec := m.Stream(e.Name)
		sf := streamFilter{resourceField: spec.ResourceField, timeField: spec.ConsentTimeField}
		if len(e.Resources) > 0 {
			sf.resources = set(e.Resources)
		}
		if e.Fields != nil {
			sf.names = e.Fields
			sf.fields = set(slices.Concat(e.Fields, spec.Required))
		}
		if e.TimeRange != nil && spec.ConsentTimeField != "" {
			sf.timed = true
			sf.since, sf.until = bounds(e.TimeRange)
		}
		f.streams = append(f.streams, sf)
	}
	return f
}

func set(items []string) map[string]bool {
	m := make(map[string]bool, len(items))
	for _, i := range items {
		m[i] = true
	}
	return m
}

// Admit makes checks 6 to 8 of RECORD.
func (f *Filter) Admit(m *abi.RecordMessage) *abi.Violation {
	sf := &f.streams[m.Stream]
	if sf.resources != nil && !f.resource(sf, m) {
		return &abi.Violation{Subtype: abi.VRecordOutsideResources, Field: sf.resourceField}
	}
	if sf.fields != nil {
		for i, member := range m.Members {
			if i < len(sf.seen) && sf.seen[i] == string(member.Name) {
				continue // mostly the same as in the last record
			}
			name := string(member.Name)
			if sf.see(i, name); !sf.fields[name] {
				return &abi.Violation{Subtype: abi.VRecordFieldsOutsideScope, Field: name, Received: name,
					Expected: slices.Clone(sf.names)}
			}
		}
	}
	if sf.timed && len(m.Data) > 0 && !sf.inRange(m) {
		return &abi.Violation{Subtype: abi.VRecordOutsideTimeRange, Field: sf.timeField}
	}
	return nil
}

// mostSeen bounds the names that are remembered, per stream.
const mostSeen = 256

// see remembers the name of a record's i-th member, if it is granted.
func (sf *streamFilter) see(i int, name string) {
	switch {
	case !sf.fields[name]:
	case i < len(sf.seen):
		sf.seen[i] = name
	case i == len(sf.seen) && i < mostSeen:
		sf.seen = append(sf.seen, name)
	}
}

func (f *Filter) resource(sf *streamFilter, m *abi.RecordMessage) bool {
	if sf.resources[string(m.Key)] {
		return true
	}
	if sf.resourceField == "" {
		return false
	}
	for _, member := range m.Members {
		if string(member.Name) != sf.resourceField {
			continue
		}
		switch member.Kind {
		case strictjson.KindNull, strictjson.KindObject:
			return false
		case strictjson.KindString:
			f.text = strictjson.AppendString(f.text[:0], member.Value)
		case strictjson.KindArray:
			key, _, ok := abi.CanonicalKey(f.text[:0], member.Value)
			if f.text = key; !ok {
				return false
			}
		default:
			f.text = append(f.text[:0], member.Value...)
		}
		return sf.resources[string(f.text)]
	}
	return false
}

func (sf *streamFilter) inRange(m *abi.RecordMessage) bool {
	for _, member := range m.Members {
		if string(member.Name) == sf.timeField {
			t, ok := abi.TimeOf(member.Value)
			return ok && t >= sf.since && t < sf.until
		}
	}
	return false
}
