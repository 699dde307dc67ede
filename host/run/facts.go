package run

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// Facts are the collection_facts of R111: what was counted, without a verdict.
type Facts struct {
	ReferenceOnly bool         `json:"reference_only"`
	SchemaVersion int          `json:"schema_version"`
	Streams       []StreamFact `json:"streams"`
}

// A StreamFact is what is known of one in-scope stream.
type StreamFact struct {
	Stream            string       `json:"stream"`
	Collected         int64        `json:"collected"`
	Rejected          int64        `json:"rejected,omitempty"`
	Considered        *int64       `json:"considered,omitempty"`
	Covered           *int64       `json:"covered,omitempty"`
	Checkpoint        string       `json:"checkpoint"`
	PendingDetailGaps int          `json:"pending_detail_gaps"`
	Skipped           *SkippedFact `json:"skipped"`
	CollectionScope   string       `json:"collection_scope,omitempty"`
}

// A SkippedFact is the latest skip of a stream.
type SkippedFact struct {
	Reason         string            `json:"reason"`
	RecoveryAction string            `json:"recovery_action,omitempty"`
	Continuation   *abi.Continuation `json:"continuation,omitempty"`
}

func (rp *report) facts() *Facts {
	f := &Facts{ReferenceOnly: true, SchemaVersion: 1, Streams: []StreamFact{}}
	for _, b := range rp.records.streams() {
		s := StreamFact{Stream: b.stream, Collected: b.emitted, Rejected: int64(b.refused.count), PendingDetailGaps: rp.gaps.pending(b.stream), Checkpoint: rp.states.checkpointFact(b.stream)}
		s.Considered, s.Covered = rp.gaps.covered(b.stream)
		if g := rp.gaps.skipOf(b.stream); g != nil {
			s.Skipped = &SkippedFact{Reason: g.Reason, RecoveryAction: g.RecoveryHint.Action, Continuation: g.Continuation}
			if g.Continuation != nil {
				s.CollectionScope = g.Continuation.Boundary
			}
		}
		f.Streams = append(f.Streams, s)
	}
	return f
}

// checkpointFact is R112.
func (cp *checkpoints) checkpointFact(stream string) string {
	if !cp.plan.persist {
		return CommitDisabled
	}
	governing := slices.DeleteFunc(slices.Clone(cp.plan.manifest.Parents(stream)), func(p string) bool { return !cp.plan.inScope(p) })
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

// covered is R113: sums over a stream's reports, never filled from counts.
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
