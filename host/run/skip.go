package run

import (
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

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
	gs.commits.submit(&store.Commit{Events: events}, nil)
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
