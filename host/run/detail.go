package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

const (
	gapPending   = "pending"
	gapRecovered = "recovered"
)

// details keeps the detail gaps of the connection's namespace and what this
// run learnt about them.
type details struct {
	byRef   map[gapRef]*store.DetailGap
	byID    map[string]*store.DetailGap
	pending map[string]map[string][]*store.DetailGap // stream -> record key -> gaps
	touched []*store.DetailGap                       // reported by this run, in order
	fresh   map[gapRef]bool                          // reported by this run
	healed  map[string]bool                          // ids recovered by this run's message
	met     []*store.DetailGap                       // pending gaps whose record was flushed
}

// gapRef is the identity of a gap inside of its namespace.
type gapRef struct{ stream, parent, ref string }

func newDetails(gaps []store.DetailGap) details {
	d := details{
		byRef: map[gapRef]*store.DetailGap{}, byID: map[string]*store.DetailGap{},
		pending: map[string]map[string][]*store.DetailGap{}, fresh: map[gapRef]bool{}, healed: map[string]bool{},
	}
	for i := range gaps {
		d.keep(&gaps[i])
	}
	return d
}

// keep remembers a gap, without what only the store needs to know of it: there
// may be many.
func (d *details) keep(g *store.DetailGap) {
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

// seen takes the pending gaps that a record closes once it is flushed.
func (d *details) seen(stream string, key []byte) []*store.DetailGap {
	gaps := d.pending[stream][string(key)]
	if gaps != nil {
		delete(d.pending[stream], string(key))
	}
	return gaps
}

// accounts reports whether a gap of this run stands for a required key.
func (d *details) accounts(stream, parent, key string, onlyParent bool) bool {
	return d.fresh[gapRef{stream, parent, keyRef(key)}] || onlyParent && d.fresh[gapRef{stream, "", keyRef(key)}]
}

func keyRef(key string) string { return "k:" + key }

// detailGap is DETAIL_GAP.
func (r *run) detailGap(m *abi.GapMessage) {
	for _, part := range []struct {
		at  string
		raw json.RawMessage
	}{
		{"/parent_stream", abi.AppendQuote(nil, m.ParentStream)}, {"/record_key", abi.AppendQuote(nil, m.RecordKey)},
		{"/reason", abi.AppendQuote(nil, m.Reason)}, {"/gap_id", abi.AppendQuote(nil, m.GapID)},
		{"/detail_locator", m.DetailLocator}, {"/list_cursor", m.ListCursor}, {"/last_error", m.LastError},
	} {
		if r.canary.Leaks(part.raw) {
			r.leak("DETAIL_GAP", m.Stream, part.at, part.raw)
			return
		}
	}
	ref := gapRef{m.Stream, m.ParentStream, keyRef(m.RecordKey)}
	if m.RecordKey == "" {
		sum := sha256.Sum256(m.DetailLocator)
		ref.ref = "l:" + hex.EncodeToString(sum[:])
	}
	d := &r.details
	g, known := d.byRef[ref]
	if !known {
		id := sha256.Sum256([]byte(string(r.plan.Connection.ID) + "\x00" + string(r.plan.grant) + "\x00" + ref.stream + "\x00" + ref.parent + "\x00" + ref.ref))
		g = &store.DetailGap{ID: "gap_" + hex.EncodeToString(id[:8]), Stream: store.Stream(m.Stream), ParentStream: store.Stream(m.ParentStream),
			Ref: ref.ref, RecordKey: m.RecordKey, CreatedAt: time.Now()}
	}
	if d.healed[g.ID] {
		return // stays recovered in the run that recovered it
	}
	if !known && !r.remember(gapBytes(g), "DETAIL_GAP") {
		return
	}
	first := !d.fresh[ref]
	d.fresh[ref] = true
	g.Status, g.Retryable = gapPending, m.Retryable == nil || *m.Retryable
	g.Reason = redact.Gap(r.canary.Text(m.Reason), maxGapText)
	g.AttemptCount++
	g.UpdatedAt, g.RunID = time.Now(), r.id
	d.keep(g)
	stored := *g
	stored.Locator, stored.ListCursor = bytes.Clone(m.DetailLocator), bytes.Clone(m.ListCursor)
	commit := &store.Commit{Gaps: []store.DetailGap{stored}}
	if first {
		d.touched = append(d.touched, g)
		note := r.gapNote(g)
		r.gaps.add(note)
		commit.Events = []store.Event{r.streamEvent("run.detail_gap_recorded", abi.Succeeded, m.Stream, gapData(g, data{"known_gap": note}))}
	}
	r.submit(commit, nil)
}

func gapData(g *store.DetailGap, d data) data {
	d["gap_id"], d["stream"], d["status"], d["attempt_count"] = g.ID, g.Stream, g.Status, g.AttemptCount
	d["parent_stream"] = nullable(string(g.ParentStream))
	d["reason"] = nullable(g.Reason)
	return d
}

func (r *run) gapNote(g *store.DetailGap) KnownGap {
	hint := Hint{abi.RetryByRuntime, true}
	if !g.Retryable {
		hint = Hint{abi.NotRetriable, false}
	}
	reason := g.Reason
	if reason == "" {
		reason = "unknown"
	}
	stream := string(g.Stream)
	return KnownGap{
		Kind: gapDetail, Reason: reason, Severity: severity(gapDetail, "", false, false, nil), Stream: &stream, RecoveryHint: hint,
		Scope: &GapScope{ParentStream: string(g.ParentStream), RecordKey: redact.Gap(r.canary.Text(g.RecordKey), maxGapText)},
	}
}

// detailRecovered is DETAIL_GAP_RECOVERED: all buffers are flushed
// before it takes effect.
func (r *run) detailRecovered(m *abi.RecoveredMessage) bool {
	r.flushAll()
	if !r.barrier() {
		return false
	}
	g, known := r.details.byID[m.GapID]
	known = known && string(g.Stream) == m.Stream
	if !known {
		e := r.streamEvent("run.detail_gap_recovered", abi.Succeeded, m.Stream, data{
			"gap_id": redact.Gap(r.canary.Text(m.GapID), maxGapText), "stream": m.Stream, "matched": false, "status": "unknown",
		})
		r.submit(&store.Commit{Events: []store.Event{e}}, nil)
		return true
	}
	r.details.healed[g.ID] = true
	g.Status, g.UpdatedAt, g.RunID = gapRecovered, time.Now(), r.id
	e := r.streamEvent("run.detail_gap_recovered", abi.Succeeded, m.Stream, gapData(g, data{"matched": true}))
	r.submit(&store.Commit{Gaps: []store.DetailGap{*g}, Events: []store.Event{e}}, nil)
	return true
}

// closedGaps is R99 at the terminal commit: pending gaps whose record was
// stored, however the run ends, or whose key a report says is hydrated. A report
// counts when the run succeeded: otherwise the records it speaks of may have been
// dropped.
func (r *run) closedGaps(succeeded bool) (gaps []store.DetailGap, events []store.Event) {
	d := &r.details
	met := slices.Clone(d.met)
	for _, c := range r.coverage {
		if !succeeded {
			break
		}
		for _, key := range c.HydratedKeys {
			for _, ref := range []gapRef{{c.Stream, c.StateStream, keyRef(key)}, {c.Stream, "", keyRef(key)}} {
				if g := d.byRef[ref]; g != nil {
					met = append(met, g)
				}
			}
		}
	}
	done := map[string]bool{}
	for _, g := range met {
		if g.Status != gapPending || done[g.ID] {
			continue
		}
		done[g.ID] = true
		g.Status, g.UpdatedAt, g.RunID = gapRecovered, time.Now(), r.id
		gaps = append(gaps, *g)
		events = append(events, r.streamEvent("run.detail_gap_recovered", abi.Succeeded, string(g.Stream), gapData(g, data{})))
	}
	return gaps, events
}

// coverageDeclared is DETAIL_COVERAGE: kept until the end.
func (r *run) coverageDeclared(m *abi.CoverageMessage) {
	if !r.remember(coverageBytes(m), "DETAIL_COVERAGE") {
		return
	}
	r.coverage = append(r.coverage, m)
	d := data{
		"stream": m.Stream, "state_stream": m.StateStream,
		"required_keys": len(m.RequiredKeys), "hydrated_keys": len(m.HydratedKeys),
		"gap_keys": len(m.GapKeys), "optional_skip_keys": len(m.OptionalSkipKeys),
	}
	if m.Considered != nil {
		d["considered"] = *m.Considered
	}
	if m.Covered != nil {
		d["covered"] = *m.Covered
	}
	r.submit(&store.Commit{Events: []store.Event{r.streamEvent("run.detail_coverage_declared", abi.Succeeded, m.Stream, d)}}, nil)
}
