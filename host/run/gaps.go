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

// gaps is what a run knows to be missing: known gaps, and the details that are.
type gaps struct {
	*parts
	gapList
	details    details
	coverage   []*abi.CoverageMessage
	skips      map[string]*KnownGap // latest skip_result by stream
	failed     map[string]bool      // data streams of a certified failure
	remembered int                  // bytes, see remember
}

func newGaps(all *parts) *gaps {
	gs := &gaps{parts: all, details: newDetails(all.plan.gaps), skips: map[string]*KnownGap{}, failed: map[string]bool{}}
	for i := range all.plan.gaps {
		gs.remembered += gapBytes(&all.plan.gaps[i])
	}
	return gs
}

// seen takes the pending gaps that a record closes once it is flushed.
func (gs *gaps) seen(stream string, key []byte) []*store.DetailGap {
	return gs.details.seen(stream, key)
}

// stored closes gaps with the run, for their records are durable.
func (gs *gaps) stored(met []*store.DetailGap) { gs.details.met = append(gs.details.met, met...) }

// incomplete reports whether something is missing that is more than a remark.
func (gs *gaps) incomplete() bool { return gs.holes > 0 || gs.details.missing(gs.plan.inScope) }

// pending counts the details of a stream that are missing.
func (gs *gaps) pending(stream string) (n int) {
	for _, g := range gs.details.byRef {
		if string(g.Stream) == stream && g.Status == gapPending {
			n++
		}
	}
	return n
}

// recorded counts the detail gaps that this run reported.
func (gs *gaps) recorded() int { return len(gs.details.touched) }

// all are the known gaps, as far as they are kept.
func (gs *gaps) all() []KnownGap { return gs.kept }

func (gs *gaps) any() bool { return gs.count > 0 }

// restore goes back to a clone.
func (gs *gaps) restore(l gapList) { gs.gapList = l }

// skipOf is the latest skip of a stream, nil for none.
func (gs *gaps) skipOf(stream string) *KnownGap { return gs.skips[stream] }

// streamFailed reports whether the connector named a stream that failed.
func (gs *gaps) streamFailed() bool { return len(gs.failed) > 0 }

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
func (gs *gaps) detailGap(m *abi.GapMessage) {
	for _, part := range []struct {
		at  string
		raw json.RawMessage
	}{
		{"/parent_stream", abi.AppendQuote(nil, m.ParentStream)}, {"/record_key", abi.AppendQuote(nil, m.RecordKey)},
		{"/reason", abi.AppendQuote(nil, m.Reason)}, {"/gap_id", abi.AppendQuote(nil, m.GapID)},
		{"/detail_locator", m.DetailLocator}, {"/list_cursor", m.ListCursor}, {"/last_error", m.LastError},
	} {
		if gs.canary.Leaks(part.raw) {
			gs.outcome.leak("DETAIL_GAP", m.Stream, part.at, part.raw)
			return
		}
	}
	ref := gapRef{m.Stream, m.ParentStream, keyRef(m.RecordKey)}
	if m.RecordKey == "" {
		sum := sha256.Sum256(m.DetailLocator)
		ref.ref = "l:" + hex.EncodeToString(sum[:])
	}
	d := &gs.details
	g, known := d.byRef[ref]
	if !known {
		id := sha256.Sum256([]byte(string(gs.plan.Connection.ID) + "\x00" + string(gs.plan.grant) + "\x00" + ref.stream + "\x00" + ref.parent + "\x00" + ref.ref))
		g = &store.DetailGap{ID: "gap_" + hex.EncodeToString(id[:8]), Stream: store.Stream(m.Stream), ParentStream: store.Stream(m.ParentStream),
			Ref: ref.ref, RecordKey: m.RecordKey, CreatedAt: time.Now()}
	}
	if d.healed[g.ID] {
		return // stays recovered in the run that recovered it
	}
	if !known && !gs.remember(gapBytes(g), "DETAIL_GAP") {
		return
	}
	first := !d.fresh[ref]
	d.fresh[ref] = true
	g.Status, g.Retryable = gapPending, m.Retryable == nil || *m.Retryable
	g.Reason = redact.Gap(gs.canary.Text(m.Reason), maxGapText)
	g.AttemptCount++
	g.UpdatedAt, g.RunID = time.Now(), gs.id
	d.keep(g)
	stored := *g
	stored.Locator, stored.ListCursor = bytes.Clone(m.DetailLocator), bytes.Clone(m.ListCursor)
	commit := &store.Commit{Gaps: []store.DetailGap{stored}}
	if first {
		d.touched = append(d.touched, g)
		note := gs.gapNote(g)
		gs.add(note)
		commit.Events = []store.Event{gs.journal.streamEvent("run.detail_gap_recorded", abi.Succeeded, m.Stream, gapData(g, data{"known_gap": note}))}
	}
	gs.commits.submit(commit, nil)
}

func gapData(g *store.DetailGap, d data) data {
	d["gap_id"], d["stream"], d["status"], d["attempt_count"] = g.ID, g.Stream, g.Status, g.AttemptCount
	d["parent_stream"] = nullable(string(g.ParentStream))
	d["reason"] = nullable(g.Reason)
	return d
}

func (gs *gaps) gapNote(g *store.DetailGap) KnownGap {
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
		Scope: &GapScope{ParentStream: string(g.ParentStream), RecordKey: redact.Gap(gs.canary.Text(g.RecordKey), maxGapText)},
	}
}

// detailRecovered is DETAIL_GAP_RECOVERED: all buffers are flushed
// before it takes effect.
func (gs *gaps) detailRecovered(m *abi.RecoveredMessage) bool {
	gs.records.flushAll()
	if !gs.loop.barrier() {
		return false
	}
	g, known := gs.details.byID[m.GapID]
	known = known && string(g.Stream) == m.Stream
	if !known {
		e := gs.journal.streamEvent("run.detail_gap_recovered", abi.Succeeded, m.Stream, data{
			"gap_id": redact.Gap(gs.canary.Text(m.GapID), maxGapText), "stream": m.Stream, "matched": false, "status": "unknown",
		})
		gs.commits.record(e)
		return true
	}
	gs.details.healed[g.ID] = true
	g.Status, g.UpdatedAt, g.RunID = gapRecovered, time.Now(), gs.id
	e := gs.journal.streamEvent("run.detail_gap_recovered", abi.Succeeded, m.Stream, gapData(g, data{"matched": true}))
	gs.commits.submit(&store.Commit{Gaps: []store.DetailGap{*g}, Events: []store.Event{e}}, nil)
	return true
}

// closedGaps are closed by the terminal commit: pending gaps whose record was
// stored, however the run ends, or whose key a report says is hydrated. A report
// counts when the run succeeded: otherwise the records it speaks of may have been
// dropped.
func (gs *gaps) closedGaps(succeeded bool) (gaps []store.DetailGap, events []store.Event) {
	d := &gs.details
	met := slices.Clone(d.met)
	for _, c := range gs.coverage {
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
		g.Status, g.UpdatedAt, g.RunID = gapRecovered, time.Now(), gs.id
		gaps = append(gaps, *g)
		events = append(events, gs.journal.streamEvent("run.detail_gap_recovered", abi.Succeeded, string(g.Stream), gapData(g, data{})))
	}
	return gaps, events
}

// coverageDeclared is DETAIL_COVERAGE: kept until the end.
func (gs *gaps) coverageDeclared(m *abi.CoverageMessage) {
	if !gs.remember(coverageBytes(m), "DETAIL_COVERAGE") {
		return
	}
	gs.coverage = append(gs.coverage, m)
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
	gs.commits.record(gs.journal.streamEvent("run.detail_coverage_declared", abi.Succeeded, m.Stream, d))
}

// skip is SKIP_RESULT.
func (gs *gaps) skip(m *abi.SkipMessage) {
	reason := "unknown"
	if m.Reason != "" {
		reason = redact.Gap(gs.canary.Text(m.Reason), maxGapText)
	}
	message := redact.Gap(gs.canary.Text(m.Message), maxGapText)
	spec := gs.plan.manifest.Stream(m.Stream)
	g := KnownGap{
		Kind: gapSkip, Reason: reason, Message: message, Scope: gs.skipScope(m),
		Severity:     severity(gapSkip, m.Reason, gs.plan.explicit && m.Stream != "", spec.Availability == abi.UnsupportedInMode, m.RecoveryHint),
		RecoveryHint: hintOf(m.RecoveryHint, nil, m.Reason, m.Message),
		Diagnostics:  redact.Diagnostics(gs.canary.JSON(m.Diagnostics)),
	}
	if m.Stream != "" {
		stream := m.Stream
		g.Stream = &stream
	}
	if m.Continuation != nil {
		c := *m.Continuation
		c.Boundary = redact.Gap(gs.canary.Text(c.Boundary), maxGapText)
		g.Continuation = &c
	}
	gs.add(g)
	whole := m.Stream != "" && g.Scope == nil && gs.skips[m.Stream] == nil
	if m.Stream != "" {
		gs.skips[m.Stream] = &g
		if m.Reason == abi.CodeStreamFailed {
			gs.failed[m.Stream] = true
		}
	}
	d := data{"stream": nullable(m.Stream), "reason": reason, "message": nullable(message), "known_gap": g}
	if g.Diagnostics != nil {
		d["diagnostics"] = g.Diagnostics
	}
	events := []store.Event{gs.journal.streamEvent("run.stream_skipped", "skipped", m.Stream, d)}
	if whole {
		events = append(events, gs.stepSkipped(m.Stream, reason))
	}
	gs.commits.record(events...)
}

// stepSkipped is a skipped stream as openwop sees it: a step of the connector's
// node that is passed over.
func (gs *gaps) stepSkipped(stream, reason string) store.Event {
	id := gs.plan.manifest.Node() + "." + stream
	e := gs.journal.streamEvent("node.skipped", "skipped", stream, data{"nodeId": id, "reason": reason})
	e.NodeID = id
	return e
}

func (gs *gaps) skipScope(m *abi.SkipMessage) *GapScope {
	if len(m.ResourceIDs) == 0 && m.TimeRange == nil {
		return nil
	}
	s := &GapScope{}
	for i, id := range m.ResourceIDs {
		if i == maxGapListItem {
			s.Truncated = true
			break
		}
		s.ResourceIDs = append(s.ResourceIDs, redact.Gap(gs.canary.Text(id), maxGapText))
	}
	if m.TimeRange != nil {
		s.TimeRange = &abi.TimeRange{
			Since: redact.Gap(gs.canary.Text(m.TimeRange.Since), maxGapText), Until: redact.Gap(gs.canary.Text(m.TimeRange.Until), maxGapText),
		}
	}
	return s
}

// mostRemembered bounds what a run's guest can make the host keep until the end
// of the run: cursors, keys of gaps, lists of coverage. The limits of
// the protocol count messages, and a thousand of the largest would fill the
// host's memory.
const mostRemembered = 16 * abi.MiB

// remember takes note of n bytes more. False: they are too many, and the run has
// ended.
func (gs *gaps) remember(n int, typ string) bool {
	if gs.remembered += n; gs.remembered <= mostRemembered {
		return true
	}
	gs.outcome.violate(&abi.Violation{Subtype: abi.VMessageLimitExceeded, MessageType: typ, Detail: "limit " + itoa(mostRemembered) + " bytes to remember"})
	return false
}

// gapBytes is what is remembered of a gap: its names, not where its details are.
func gapBytes(g *store.DetailGap) int { return len(g.RecordKey) + len(g.Ref) + len(g.Reason) }

// coverageBytes counts keys as they are and a little for each.
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

// missing reports whether a detail is pending that this run should have got: one
// it reported itself, or one that START served it.
func (d *details) missing(inScope func(string) bool) bool {
	for ref, g := range d.byRef {
		if g.Status == gapPending && (d.fresh[ref] || g.Retryable && inScope(ref.stream)) {
			return true
		}
	}
	return false
}
