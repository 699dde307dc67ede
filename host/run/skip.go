package run

import (
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// skip is SKIP_RESULT.
func (r *run) skip(m *abi.SkipMessage) {
	reason := "unknown"
	if m.Reason != "" {
		reason = redact.Gap(r.canary.Text(m.Reason), maxGapText)
	}
	message := redact.Gap(r.canary.Text(m.Message), maxGapText)
	spec := r.plan.manifest.Stream(m.Stream)
	g := KnownGap{
		Kind: gapSkip, Reason: reason, Message: message, Scope: r.skipScope(m),
		Severity:     severity(gapSkip, m.Reason, r.plan.explicit && m.Stream != "", spec.Availability == abi.UnsupportedInMode, m.RecoveryHint),
		RecoveryHint: hintOf(m.RecoveryHint, nil, m.Reason, m.Message),
		Diagnostics:  redact.Diagnostics(r.canary.JSON(m.Diagnostics)),
	}
	if m.Stream != "" {
		stream := m.Stream
		g.Stream = &stream
	}
	if m.Continuation != nil {
		c := *m.Continuation
		c.Boundary = redact.Gap(r.canary.Text(c.Boundary), maxGapText)
		g.Continuation = &c
	}
	r.gaps.add(g)
	whole := m.Stream != "" && g.Scope == nil && r.skips[m.Stream] == nil
	if m.Stream != "" {
		r.skips[m.Stream] = &g
		if m.Reason == abi.CodeStreamFailed {
			r.failed[m.Stream] = true
		}
	}
	d := data{"stream": nullable(m.Stream), "reason": reason, "message": nullable(message), "known_gap": g}
	if g.Diagnostics != nil {
		d["diagnostics"] = g.Diagnostics
	}
	events := []store.Event{r.streamEvent("run.stream_skipped", "skipped", m.Stream, d)}
	if whole {
		events = append(events, r.stepSkipped(m.Stream, reason))
	}
	r.submit(&store.Commit{Events: events}, nil)
}

// stepSkipped is a skipped stream as openwop sees it: a step of the connector's
// node that is passed over.
func (r *run) stepSkipped(stream, reason string) store.Event {
	id := r.plan.manifest.Node() + "." + stream
	e := r.streamEvent("node.skipped", "skipped", stream, data{"nodeId": id, "reason": reason})
	e.NodeID = id
	return e
}

func (r *run) skipScope(m *abi.SkipMessage) *GapScope {
	if len(m.ResourceIDs) == 0 && m.TimeRange == nil {
		return nil
	}
	s := &GapScope{}
	for i, id := range m.ResourceIDs {
		if i == maxGapListItem {
			s.Truncated = true
			break
		}
		s.ResourceIDs = append(s.ResourceIDs, redact.Gap(r.canary.Text(id), maxGapText))
	}
	if m.TimeRange != nil {
		s.TimeRange = &abi.TimeRange{
			Since: redact.Gap(r.canary.Text(m.TimeRange.Since), maxGapText), Until: redact.Gap(r.canary.Text(m.TimeRange.Until), maxGapText),
		}
	}
	return s
}
