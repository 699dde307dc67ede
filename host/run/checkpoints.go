package run

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// checkpoints keeps the cursors that were accepted during the run, in the order in which the streams were first
// staged.
type checkpoints struct {
	*parts
	order     []string
	cursors   cursors
	committed []string
	withheld  []string
}

func (cp *checkpoints) stage(stream string, cursor json.RawMessage) {
	if !slices.Contains(cp.order, stream) {
		cp.order = append(cp.order, stream)
	}
	cp.cursors[stream] = cursor
}

// staged returns the cursors by stream.
func (cp *checkpoints) staged() cursors { return cp.cursors }

func (cp *checkpoints) cursor(stream string) json.RawMessage { return cp.cursors[stream] }

// counts returns how many streams were staged, and how many committed so far.
func (cp *checkpoints) counts() (staged, committed int) { return len(cp.order), len(cp.committed) }

// withheldStreams returns the streams whose cursors are not advanced.
func (cp *checkpoints) withheldStreams() []string { return cp.withheld }

// withhold withholds the staged cursors that are not eligible.
func (cp *checkpoints) withhold(eligible []string) {
	for _, s := range cp.order {
		if !slices.Contains(eligible, s) {
			cp.withheld = append(cp.withheld, s)
		}
	}
}

func (cp *checkpoints) commit(stream string) { cp.committed = append(cp.committed, stream) }

// undoCommits undoes the last n commits, which the store refused.
func (cp *checkpoints) undoCommits(n int) { cp.committed = cp.committed[:len(cp.committed)-n] }

// checkpoint handles STATE: it flushes what the cursor covers, then stages the cursor. It reports whether the
// cursor is durable.
func (cp *checkpoints) checkpoint(m *abi.StateMessage) bool {
	if cp.canary.Leaks(m.Cursor) {
		cp.outcome.leak("STATE", m.Stream, "/cursor", m.Cursor)
		return false
	}
	if !cp.gaps.remember(len(m.Cursor)-len(cp.cursors[m.Stream]), "STATE") {
		return false
	}
	cp.records.flushFor(m.Stream)
	cursor := json.RawMessage(bytes.Clone(m.Cursor))
	if !cp.outcome.ready() {
		return false
	}
	staged := len(cp.order)
	if !slices.Contains(cp.order, m.Stream) {
		staged++
	}
	e := cp.journal.streamEvent("run.state_staged", abi.Succeeded, m.Stream, data{
		"cursor": cp.journal.shownCursor(cursor), "checkpoint_mode": checkpointMode,
		"grant_id": nullable(string(cp.plan.grant)), "state_commit_intent": cp.plan.intent(), "state_streams_staged": staged,
	})
	cp.commits.submit(&store.Commit{
		Staged: []store.State{{Stream: store.Stream(m.Stream), Cursor: cursor, RunID: cp.id}},
		Events: []store.Event{e},
	}, func(_ store.Ack, err error) {
		if err == nil {
			cp.stage(m.Stream, cursor)
		}
	})
	return cp.loop.barrier()
}

// shortfalls returns the checkpoint streams whose detail coverage is incomplete, with an event for each. Each
// also adds a known gap.
func (cp *checkpoints) shortfalls() (short map[string]bool, events []store.Event) {
	short = map[string]bool{}
	for _, parent := range cp.order {
		for _, child := range cp.plan.scope.Streams {
			spec := cp.plan.manifest.Stream(child.Name)
			report := cp.gaps.report(child.Name, parent)
			declared := slices.Contains(spec.ParentStreams, parent)
			var diagnostics data
			switch {
			case report == nil && declared:
				diagnostics = data{"state_stream": parent, "coverage_report": "missing"}
			case report != nil:
				if missing := cp.gaps.unaccounted(report, spec); missing > 0 {
					diagnostics = data{"state_stream": parent, "required_keys": len(report.RequiredKeys),
						"missing_required_keys": missing}
				}
			}
			if diagnostics != nil {
				short[parent] = true
				events = append(events, cp.shortfall(child.Name, parent, diagnostics))
			}
		}
	}
	return short, events
}

func (cp *checkpoints) shortfall(stream, parent string, diagnostics data) store.Event {
	raw, _ := redact.Marshal(diagnostics)
	g := KnownGap{
		Kind: gapCoverage, Reason: "detail_coverage_incomplete", Severity: "transient", Stream: &stream,
		RecoveryHint: Hint{abi.RetryByRuntime, true}, Diagnostics: raw,
	}
	cp.gaps.add(g)
	return cp.journal.streamEvent("run.stream_skipped", "skipped", stream, data{
		"stream": stream, "reason": g.Reason,
		"message": "Details of " + stream + " are incomplete for the cursor of " + parent + ".", "known_gap": g,
		"diagnostics": json.RawMessage(raw), "state_stream": parent,
	})
}

// eligible returns the staged streams whose cursors may be committed, in staging order.
func (cp *checkpoints) eligible(certified bool, short, dropped map[string]bool) []string {
	var out []string
	for _, p := range cp.order {
		if short[p] || cp.records.refusedAll(p) || certified && (cp.gaps.failedParent(p) || cp.droppedChild(p, dropped)) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// droppedChild reports whether records of a stream that p governs were dropped. Committing the cursor of p would
// lose them.
func (cp *checkpoints) droppedChild(p string, dropped map[string]bool) bool {
	for stream := range dropped {
		if slices.Contains(cp.plan.manifest.Stream(stream).ParentStreams, p) {
			return true
		}
	}
	return false
}

// commitStatus summarizes whether the staged cursors were committed.
func (cp *checkpoints) commitStatus(status string) string {
	staged, committed := len(cp.order), len(cp.committed)
	switch {
	case !cp.plan.persist:
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

// checkpointFact reports whether the cursors that govern a stream were committed.
func (cp *checkpoints) checkpointFact(stream string) string {
	if !cp.plan.persist {
		return CommitDisabled
	}
	governing := slices.DeleteFunc(slices.Clone(cp.plan.manifest.Parents(stream)),
		func(p string) bool { return !cp.plan.inScope(p) })
	if len(governing) == 0 {
		governing = []string{stream}
	}
	all := true
	for _, g := range governing {
		committed := slices.Contains(cp.committed, g)
		if !committed && !slices.Contains(cp.order, g) {
			return "not_staged"
		}
		all = all && committed
	}
	if all {
		return CommitDone
	}
	return CommitNone
}

func (cp *checkpoints) state(stream string) store.State {
	return store.State{Stream: store.Stream(stream), Cursor: cp.cursors[stream], CommittedAt: time.Now(), RunID: cp.id}
}

// advancedEvent returns the run.state_advanced event of the next committed stream.
func (cp *checkpoints) advancedEvent(stream string) store.Event {
	return cp.journal.streamEvent("run.state_advanced", abi.Succeeded, stream, data{
		"cursor": cp.journal.shownCursor(cp.cursors[stream]), "checkpoint_mode": checkpointMode,
		"grant_id": nullable(string(cp.plan.grant)), "state_streams_committed": len(cp.committed) + 1,
	})
}
