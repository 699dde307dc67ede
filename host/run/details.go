package run

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// details keeps the detail gaps of the connection's namespace, and what this run learnt about them.
type details struct {
	byRef        map[gapRef]*store.DetailGap
	byID         map[string]*store.DetailGap
	pending      map[string]map[string][]*store.DetailGap // stream -> record key -> gaps
	reported     []*store.DetailGap                       // reported by this run, in order
	reportedRefs map[gapRef]bool                          // reported by this run
	recovered    map[string]bool                          // ids recovered by this run's message
	flushed      []*store.DetailGap                       // pending gaps whose record was flushed
}

// A gapRef identifies a gap within its namespace.
type gapRef struct{ stream, parent, ref string }

func newDetails(gaps []store.DetailGap) details {
	d := details{
		byRef: map[gapRef]*store.DetailGap{}, byID: map[string]*store.DetailGap{},
		pending: map[string]map[string][]*store.DetailGap{}, reportedRefs: map[gapRef]bool{}, recovered: map[string]bool{},
	}
	for i := range gaps {
		d.add(&gaps[i])
	}
	return d
}

// add stores a gap without what only the store needs, since there may be many.
func (d *details) add(g *store.DetailGap) {
	g.Locator, g.ListCursor = nil, nil
	d.byRef[gapRef{string(g.Stream), string(g.ParentStream), g.Ref}] = g
	d.byID[g.ID] = g
	if g.Status != gapPending || g.RecordKey == "" {
		return
	}
	keys := d.pending[string(g.Stream)]
	if keys == nil {
		keys = map[string][]*store.DetailGap{}
		d.pending[string(g.Stream)] = keys
	}
	if !slices.Contains(keys[g.RecordKey], g) {
		keys[g.RecordKey] = append(keys[g.RecordKey], g)
	}
}

// takePending removes and returns the pending gaps that a record closes once it is flushed.
func (d *details) takePending(stream string, key []byte) []*store.DetailGap {
	gaps := d.pending[stream][string(key)]
	if gaps != nil {
		delete(d.pending[stream], string(key))
	}
	return gaps
}

// accounts reports whether this run reported a gap for a required key.
func (d *details) accounts(stream, parent, key string, onlyParent bool) bool {
	return d.reportedRefs[gapRef{stream, parent, keyRef(key)}] ||
		onlyParent && d.reportedRefs[gapRef{stream, "", keyRef(key)}]
}

func keyRef(key string) string { return "k:" + key }

func gapData(g *store.DetailGap, d data) data {
	d["gap_id"], d["stream"], d["status"], d["attempt_count"] = g.ID, g.Stream, g.Status, g.AttemptCount
	d["parent_stream"] = nullable(string(g.ParentStream))
	d["reason"] = nullable(g.Reason)
	return d
}

// gapBytes returns the bytes of a gap that are kept in memory.
func gapBytes(g *store.DetailGap) int { return len(g.RecordKey) + len(g.Ref) + len(g.Reason) }

// coverageBytes estimates the bytes of a coverage report: its keys and an overhead for each.
func coverageBytes(m *abi.CoverageMessage) int {
	const each = 16
	n := 0
	for _, keys := range [][]string{m.RequiredKeys, m.HydratedKeys, m.GapKeys, m.OptionalSkipKeys} {
		for _, k := range keys {
			n += len(k) + each
		}
	}
	return n
}

// missing reports whether a detail is pending that this run should have collected: one that it reported itself,
// or that START listed for it.
func (d *details) missing(inScope func(string) bool) bool {
	for ref, g := range d.byRef {
		if g.Status == gapPending && (d.reportedRefs[ref] || g.Retryable && inScope(ref.stream)) {
			return true
		}
	}
	return false
}
