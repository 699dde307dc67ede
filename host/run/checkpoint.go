package run

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// staging keeps the cursors accepted during the run, in the order the streams
// were first staged.
type staging struct {
	order     []string
	cursors   cursors
	committed []string
	withheld  []string
}

func (s *staging) stage(stream string, cursor json.RawMessage) {
	if !slices.Contains(s.order, stream) {
		s.order = append(s.order, stream)
	}
	s.cursors[stream] = cursor
}

// checkpoint is STATE: flush what the cursor covers, then stage it. It
// reports whether the cursor is durable.
func (r *run) checkpoint(m *abi.StateMessage) bool {
	if r.canary.Leaks(m.Cursor) {
		r.leak("STATE", m.Stream, "/cursor", m.Cursor)
		return false
	}
	if !r.remember(len(m.Cursor)-len(r.states.cursors[m.Stream]), "STATE") {
		return false
	}
	r.flushFor(m.Stream)
	cursor := json.RawMessage(bytes.Clone(m.Cursor))
	if !r.ready() {
		return false
	}
	staged := len(r.states.order)
	if !slices.Contains(r.states.order, m.Stream) {
		staged++
	}
	e := r.streamEvent("run.state_staged", abi.Succeeded, m.Stream, data{
		"cursor": r.shownCursor(cursor), "checkpoint_mode": checkpointMode, "grant_id": nullable(string(r.plan.grant)),
		"state_commit_intent": r.plan.intent(), "state_streams_staged": staged,
	})
	r.submit(&store.Commit{
		Staged: []store.State{{Stream: store.Stream(m.Stream), Cursor: cursor, RunID: r.id}},
		Events: []store.Event{e},
	}, func(_ store.Ack, err error) {
		if err == nil {
			r.states.stage(m.Stream, cursor)
		}
	})
	return r.barrier()
}

// shortfalls is §12.2: the checkpoint streams whose coverage is not complete.
// Each adds a known gap and an event.
func (r *run) shortfalls() (short map[string]bool, events []store.Event) {
	short = map[string]bool{}
	for _, parent := range r.states.order {
		for _, child := range r.plan.scope.Streams {
			spec := r.plan.manifest.Stream(child.Name)
			report := r.report(child.Name, parent)
			declared := slices.Contains(spec.ParentStreams, parent)
			var diagnostics data
			switch {
			case report == nil && declared:
				diagnostics = data{"state_stream": parent, "coverage_report": "missing"}
			case report != nil:
				if missing := r.unaccounted(report, spec); missing > 0 {
					diagnostics = data{"state_stream": parent, "required_keys": len(report.RequiredKeys), "missing_required_keys": missing}
				}
			}
			if diagnostics != nil {
				short[parent] = true
				events = append(events, r.shortfall(child.Name, parent, diagnostics))
			}
		}
	}
	return short, events
}

func (r *run) report(stream, parent string) *abi.CoverageMessage {
	for _, c := range r.coverage {
		if c.Stream == stream && c.StateStream == parent {
			return c
		}
	}
	return nil
}

// unaccounted counts the required keys that were neither hydrated nor reported
// as a gap that counts for the report's parent.
func (r *run) unaccounted(report *abi.CoverageMessage, spec abi.StreamSpec) int {
	have := make(map[string]bool, len(report.HydratedKeys))
	for _, k := range report.HydratedKeys {
		have[k] = true
	}
	missing := 0
	for _, k := range report.RequiredKeys {
		if !have[k] && !r.details.accounts(report.Stream, report.StateStream, k, len(spec.ParentStreams) <= 1) {
			missing++
		}
	}
	return missing
}

func (r *run) shortfall(stream, parent string, diagnostics data) store.Event {
	raw, _ := marshal(diagnostics)
	g := KnownGap{
		Kind: gapCoverage, Reason: "detail_coverage_incomplete", Severity: "transient", Stream: &stream,
		RecoveryHint: Hint{abi.RetryByRuntime, true}, Diagnostics: raw,
	}
	r.gaps.add(g)
	return r.streamEvent("run.stream_skipped", "skipped", stream, data{
		"stream": stream, "reason": g.Reason, "message": "Details of " + stream + " are incomplete for the cursor of " + parent + ".",
		"known_gap": g, "diagnostics": json.RawMessage(raw), "state_stream": parent,
	})
}

// eligible is §12.3: which staged streams may commit, in staging order.
func (r *run) eligible(certified bool, short, dropped map[string]bool) []string {
	var out []string
	for _, p := range r.states.order {
		if short[p] || r.refusedAll(p) || certified && (r.failedParent(p) || r.droppedChild(p, dropped)) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// failedParent is R89: p governs a data stream that failed.
func (r *run) failedParent(p string) bool {
	for stream := range r.failed {
		parents := r.plan.manifest.Parents(stream)
		if stream == p && len(parents) == 0 || slices.Contains(parents, p) {
			return true
		}
	}
	return false
}

// droppedChild is R90.
func (r *run) droppedChild(p string, dropped map[string]bool) bool {
	for stream := range dropped {
		if slices.Contains(r.plan.manifest.Stream(stream).ParentStreams, p) {
			return true
		}
	}
	return false
}

// certified is R88: a failure that says, with structure, which streams failed.
func (r *run) certified() bool {
	return r.done != nil && r.done.Status == abi.Failed && r.done.Error != nil &&
		r.done.Error.Code == abi.CodeStreamFailed && len(r.failed) > 0
}

// commitStatus is R83.
func (r *run) commitStatus(status string) string {
	staged, committed := len(r.states.order), len(r.states.committed)
	switch {
	case !r.plan.persist:
		return CommitDisabled
	case staged == 0 && status == abi.Succeeded:
		return CommitDone
	case committed == 0:
		return CommitNone
	case committed < staged:
		return CommitPartial
	}
	return CommitDone
}
