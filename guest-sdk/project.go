package guest

import (
	"github.com/sluicehost/sluice/abi"
)

// A projection leaves out what a stream's entry in the scope does not grant
// (R48), so that a connector may emit whole records whatever it was granted.
// START lists the fields that every record needs, so nothing else is let
// through.
type projection struct {
	granted map[string]bool
	seen    []seenName // of the last record, by position: the next one has the same, most often
	scan    abi.Scanner
	scratch []byte
}

// A seenName is a member's name, and whether it is granted.
type seenName struct {
	name    string
	granted bool
}

// grants looks the i-th member of a record up.
func (p *projection) grants(i int, name []byte) bool {
	if i < len(p.seen) && p.seen[i].name == string(name) {
		return p.seen[i].granted
	}
	s := seenName{string(name), p.granted[string(name)]}
	switch {
	case i < len(p.seen):
		p.seen[i] = s
	case i < mostMembers:
		p.seen = append(p.seen, s)
	}
	return s.granted
}

// projections returns one per stream, nil where all fields are granted.
func projections(s abi.Scope) []*projection {
	all := make([]*projection, len(s.Streams))
	for i, stream := range s.Streams {
		if stream.Fields == nil {
			continue
		}
		all[i] = &projection{granted: make(map[string]bool, len(stream.Fields))}
		for _, f := range stream.Fields {
			all[i].granted[f] = true
		}
	}
	return all
}

// apply rewrites the object that begins at start in b.
func (p *projection) apply(b []byte, start int) ([]byte, error) {
	members, err := p.scan.Object(b[start:])
	if err != nil {
		return b, err
	}
	all := true
	for i, m := range members {
		all = p.grants(i, m.Name) && all
	}
	if all {
		return b, nil
	}
	out := append(p.scratch[:0], '{')
	for i, m := range members {
		if !p.grants(i, m.Name) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(abi.AppendQuote(out, m.Name), ':'), m.Value...)
	}
	p.scratch = append(out, '}')
	return append(b[:start], p.scratch...), nil
}
