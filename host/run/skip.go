package run

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// skip is SKIP_RESULT (R56 to R60).
func (r *run) skip(m *abi.SkipMessage) {
	reason := "unknown"
	if m.Reason != "" {
		reason = redactGap(r.canary.redact(m.Reason), maxGapText)
	}
	message := redactGap(r.canary.redact(m.Message), maxGapText)
	spec := r.plan.manifest.Stream(m.Stream)
	g := KnownGap{
		Kind: gapSkip, Reason: reason, Message: message, Scope: r.skipScope(m),
		Severity:     severity(gapSkip, m.Reason, r.plan.explicit && m.Stream != "", spec.Availability == abi.UnsupportedInMode, m.RecoveryHint),
		RecoveryHint: hintOf(m.RecoveryHint, nil, m.Reason, m.Message),
		Diagnostics:  boundDiagnostics(r.canary.redactJSON(m.Diagnostics)),
	}
	if m.Stream != "" {
		stream := m.Stream
		g.Stream = &stream
	}
	if m.Continuation != nil {
		c := *m.Continuation
		c.Boundary = redactGap(r.canary.redact(c.Boundary), maxGapText)
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
		s.ResourceIDs = append(s.ResourceIDs, redactGap(r.canary.redact(id), maxGapText))
	}
	if m.TimeRange != nil {
		s.TimeRange = &abi.TimeRange{
			Since: redactGap(r.canary.redact(m.TimeRange.Since), maxGapText), Until: redactGap(r.canary.redact(m.TimeRange.Until), maxGapText),
		}
	}
	return s
}

// Bounds of a diagnostics object (R182).
const (
	maxDiagnosticsDepth = 6
	maxDiagnosticsList  = 32
	maxDiagnosticsBytes = 8 * abi.KiB
)

// boundDiagnostics keeps a diagnostics object small and free of secrets.
func boundDiagnostics(raw json.RawMessage) json.RawMessage {
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return nil
	}
	out, err := marshal(boundValue(v, 1))
	if err != nil {
		return nil
	}
	if len(out) > maxDiagnosticsBytes {
		out, _ = marshal(overflow("size_overflow", 0))
	}
	return out
}

func overflow(reason string, omitted int) map[string]any {
	m := map[string]any{"truncated": true, "reason": reason}
	if omitted > 0 {
		m["omitted"] = omitted
	}
	return m
}

func boundValue(v strictjson.Value, level int) any {
	switch v.Kind {
	case strictjson.KindString:
		s, _ := v.Text()
		return redactGap(s, maxGapText)
	case strictjson.KindArray, strictjson.KindObject:
		if level > maxDiagnosticsDepth {
			return overflow("depth_overflow", 0)
		}
		if v.Is(strictjson.KindArray) {
			return boundList(v, level)
		}
		return boundObject(v, level)
	}
	return json.RawMessage(v.Raw)
}

func boundList(v strictjson.Value, level int) any {
	out, omitted := []any{}, 0
	for item := range v.Items() {
		if len(out) == maxDiagnosticsList {
			omitted++
			continue
		}
		out = append(out, boundValue(item, level+1))
	}
	if omitted > 0 {
		out = append(out, overflow("list_overflow", omitted))
	}
	return out
}

func boundObject(v strictjson.Value, level int) any {
	out, omitted := map[string]any{}, 0
	for name, m := range v.Members() {
		if level == 1 && name == "considered" {
			if n, ok := m.SafeInteger(); !ok || n < 0 {
				continue
			}
		}
		if len(out) == maxDiagnosticsList {
			omitted++
			continue
		}
		out[redactGap(name, 64)] = boundValue(m, level+1)
	}
	if omitted > 0 {
		out["truncated"], out["reason"], out["omitted"] = true, "list_overflow", omitted
	}
	return out
}
