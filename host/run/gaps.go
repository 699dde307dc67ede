package run

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

const (
	gapPending   = "pending"
	gapRecovered = "recovered"
)

// gaps is what a run knows to be missing: known gaps and pending details.
type gaps struct {
	*parts
	gapList
	details    details
	coverage   []*abi.CoverageMessage
	skips      map[string]*KnownGap // latest skip_result by stream
	failed     map[string]bool      // data streams of a certified failure
	remembered int                  // bytes that remember counts
}

func newGaps(all *parts) *gaps {
	gs := &gaps{parts: all, details: newDetails(all.plan.gaps), skips: map[string]*KnownGap{}, failed: map[string]bool{}}
	for i := range all.plan.gaps {
		gs.remembered += gapBytes(&all.plan.gaps[i])
	}
	return gs
}

// takePending removes and returns the pending gaps that a record closes once it is flushed.
func (gs *gaps) takePending(stream string, key []byte) []*store.DetailGap {
	return gs.details.takePending(stream, key)
}

// markStored marks gaps to be closed with the run, since their records are durable.
func (gs *gaps) markStored(met []*store.DetailGap) {
	gs.details.flushed = append(gs.details.flushed, met...)
}

// incomplete reports whether data is missing, not counting gaps that are mere notes.
func (gs *gaps) incomplete() bool { return gs.holes > 0 || gs.details.missing(gs.plan.inScope) }

// pending returns the number of missing details of a stream.
func (gs *gaps) pending(stream string) (n int) {
	for _, g := range gs.details.byRef {
		if string(g.Stream) == stream && g.Status == gapPending {
			n++
		}
	}
	return n
}

// recorded returns the number of detail gaps that this run reported.
func (gs *gaps) recorded() int { return len(gs.details.reported) }

// all returns the known gaps that are kept.
func (gs *gaps) all() []KnownGap { return gs.kept }

func (gs *gaps) any() bool { return gs.count > 0 }

// restore restores an earlier copy of the list.
func (gs *gaps) restore(l gapList) { gs.gapList = l }

// skipOf returns the latest skip of a stream, nil for none.
func (gs *gaps) skipOf(stream string) *KnownGap { return gs.skips[stream] }

// streamFailed reports whether the connector reported a failed stream.
func (gs *gaps) streamFailed() bool { return len(gs.failed) > 0 }

// detailGap handles DETAIL_GAP.
func (gs *gaps) detailGap(m *abi.GapMessage) {
	for _, part := range []struct {
		at  string
		raw json.RawMessage
	}{
		{"/parent_stream", strictjson.AppendQuote(nil, m.ParentStream)},
		{"/record_key", strictjson.AppendQuote(nil, m.RecordKey)}, {"/reason", strictjson.AppendQuote(nil, m.Reason)},
		{"/gap_id", strictjson.AppendQuote(nil, m.GapID)}, {"/detail_locator", m.DetailLocator},
		{"/list_cursor", m.ListCursor}, {"/last_error", m.LastError},
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
		id := sha256.Sum256([]byte(string(gs.plan.Connection.ID) + "\x00" + string(gs.plan.grant) + "\x00" + ref.stream +
			"\x00" + ref.parent + "\x00" + ref.ref))
		g = &store.DetailGap{ID: "gap_" + hex.EncodeToString(id[:8]), Stream: store.Stream(m.Stream),
			ParentStream: store.Stream(m.ParentStream),
			Ref:          ref.ref, RecordKey: m.RecordKey, CreatedAt: time.Now()}
	}
	if d.recovered[g.ID] {
		return // stays recovered for the rest of the run
	}
	if !known && !gs.remember(gapBytes(g), "DETAIL_GAP") {
		return
	}
	first := !d.reportedRefs[ref]
	d.reportedRefs[ref] = true
	g.Status, g.Retryable = gapPending, m.Retryable == nil || *m.Retryable
	g.Reason = redact.Gap(gs.canary.Text(m.Reason), maxGapText)
	g.AttemptCount++
	g.UpdatedAt, g.RunID = time.Now(), gs.id
	d.add(g)
	stored := *g
	stored.Locator, stored.ListCursor = bytes.Clone(m.DetailLocator), bytes.Clone(m.ListCursor)
	commit := &store.Commit{Gaps: []store.DetailGap{stored}}
	if first {
		d.reported = append(d.reported, g)
		note := gs.gapNote(g)
		gs.add(note)
		commit.Events = []store.Event{gs.journal.streamEvent("run.detail_gap_recorded", abi.Succeeded, m.Stream,
			gapData(g, data{"known_gap": note}))}
	}
	gs.commits.submit(commit, nil)
}

func (gs *gaps) gapNote(g *store.DetailGap) KnownGap {
	hint := Hint{abi.RetryByRuntime, true}
	if !g.Retryable {
		hint = Hint{abi.NotRetriable, false}
	}
	reason := cmp.Or(g.Reason, "unknown")
	stream := string(g.Stream)
	return KnownGap{
		Kind: gapDetail, Reason: reason, Severity: severity(gapDetail, "", false, false, nil),
		Stream: &stream, RecoveryHint: hint,
		Scope: &GapScope{ParentStream: string(g.ParentStream),
			RecordKey: redact.Gap(gs.canary.Text(g.RecordKey), maxGapText)},
	}
}

// detailRecovered handles DETAIL_GAP_RECOVERED. All buffers are flushed before it takes effect.
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
	gs.details.recovered[g.ID] = true
	g.Status, g.UpdatedAt, g.RunID = gapRecovered, time.Now(), gs.id
	e := gs.journal.streamEvent("run.detail_gap_recovered", abi.Succeeded, m.Stream, gapData(g, data{"matched": true}))
	gs.commits.submit(&store.Commit{Gaps: []store.DetailGap{*g}, Events: []store.Event{e}}, nil)
	return true
}

// closedGaps closes, with the terminal commit, pending gaps whose record was stored, however the run ends. If
// the run succeeded, it also closes those whose key a coverage report lists as hydrated; otherwise those records
// may have been dropped.
func (gs *gaps) closedGaps(succeeded bool) (gaps []store.DetailGap, events []store.Event) {
	d := &gs.details
	met := slices.Clone(d.flushed)
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
		events = append(events, gs.journal.streamEvent("run.detail_gap_recovered", abi.Succeeded, string(g.Stream),
			gapData(g, data{})))
	}
	return gaps, events
}

// coverageDeclared handles DETAIL_COVERAGE, which is kept until the end.
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

// skip handles SKIP_RESULT.
func (gs *gaps) skip(m *abi.SkipMessage) {
	reason := "unknown"
	if m.Reason != "" {
		reason = redact.Gap(gs.canary.Text(m.Reason), maxGapText)
	}
	message := redact.Gap(gs.canary.Text(m.Message), maxGapText)
	spec := gs.plan.manifest.Stream(m.Stream)
	g := KnownGap{
		Kind: gapSkip, Reason: reason, Message: message, Scope: gs.skipScope(m),
		Severity: severity(gapSkip, m.Reason, gs.plan.explicit && m.Stream != "",
			spec.Availability == abi.UnsupportedInMode, m.RecoveryHint),
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

// stepSkipped returns the openwop event of a skipped stream: a skipped step of the connector's node.
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
			Since: redact.Gap(gs.canary.Text(m.TimeRange.Since), maxGapText),
			Until: redact.Gap(gs.canary.Text(m.TimeRange.Until), maxGapText),
		}
	}
	return s
}

// mostRemembered limits the bytes that a guest can make the host keep until the end of the run: cursors, keys of
// gaps and coverage lists. Limits on the number of messages alone would allow it to fill the host's memory.
const mostRemembered = 16 * abi.MiB

// remember counts n more bytes. It reports false, and ends the run, if they are too many.
func (gs *gaps) remember(n int, typ string) bool {
	if gs.remembered += n; gs.remembered <= mostRemembered {
		return true
	}
	gs.outcome.violate(&abi.Violation{Subtype: abi.VMessageLimitExceeded, MessageType: typ,
		Detail: "limit " + itoa(mostRemembered) + " bytes to remember"})
	return false
}

func (gs *gaps) report(stream, parent string) *abi.CoverageMessage {
	for _, c := range gs.coverage {
		if c.Stream == stream && c.StateStream == parent {
			return c
		}
	}
	return nil
}

// unaccounted returns the number of required keys that were neither hydrated nor reported as a gap of the
// report's parent.
func (gs *gaps) unaccounted(report *abi.CoverageMessage, spec abi.StreamSpec) int {
	have := make(map[string]bool, len(report.HydratedKeys))
	for _, k := range report.HydratedKeys {
		have[k] = true
	}
	missing := 0
	for _, k := range report.RequiredKeys {
		if !have[k] && !gs.details.accounts(report.Stream, report.StateStream, k, len(spec.ParentStreams) <= 1) {
			missing++
		}
	}
	return missing
}

// failedParent reports whether p governs a data stream that failed.
func (gs *gaps) failedParent(p string) bool {
	for stream := range gs.failed {
		parents := gs.plan.manifest.Parents(stream)
		if stream == p && len(parents) == 0 || slices.Contains(parents, p) {
			return true
		}
	}
	return false
}

const maxGapNotes = 1000

func (gs *gaps) gapNotes() []GapNote {
	out := []GapNote{}
	for _, g := range gs.details.reported {
		if len(out) == maxGapNotes {
			break
		}
		out = append(out, GapNote{g.ID, string(g.Stream), string(g.ParentStream), g.Reason, g.Status, g.AttemptCount})
	}
	return out
}

// covered returns the sums over a stream's coverage reports. Without reports it returns nil, not record counts.
func (gs *gaps) covered(stream string) (considered, covered *int64) {
	var reports []*abi.CoverageMessage
	for _, c := range gs.coverage {
		if c.Stream == stream {
			reports = append(reports, c)
		}
	}
	if len(reports) == 0 {
		return nil, nil
	}
	for _, p := range gs.plan.manifest.Parents(stream) {
		if gs.plan.inScope(p) && gs.report(stream, p) == nil {
			return nil, nil
		}
	}
	var con, cov int64
	declared := true
	for _, c := range reports {
		if c.Considered != nil {
			con += *c.Considered
		} else {
			con += int64(len(c.RequiredKeys))
		}
		if c.Covered != nil {
			cov += *c.Covered
		} else {
			declared = false
		}
	}
	if declared {
		covered = &cov
	}
	return &con, covered
}

// reopen reverts gaps whose closing was not committed.
func (gs *gaps) reopen(gaps []store.DetailGap) {
	for _, g := range gaps {
		if kept := gs.details.byID[g.ID]; kept != nil {
			kept.Status = gapPending
		}
	}
}
