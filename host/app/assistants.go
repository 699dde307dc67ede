package app

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/assistant"
	"github.com/sluicehost/sluice/host/audit"
)

// openAssistants opens the interface for assistants.
func openAssistants(ctx context.Context, d *directory, runs assistant.Starter) (*assistant.Gateway, error) {
	dir := ""
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "assistants")
	}
	return assistant.Open(ctx, assistant.Options{
		Store: d.Store, Runs: runs, Dir: dir, Most: d.Options.Copies.Assistant, Setting: "copies.assistant_bytes",
		Room: d.checkSpace, Version: ThisVersion().Version, Log: d.Options.Log,
		Audited: func(ctx context.Context, action, name string, do func() error) error {
			return asRefusal(d.audited(by(ctx, audit.Event{Action: audit.Action(action), Target: name, Outcome: audit.Done}),
				do))
		},
		Called: func(calls []assistant.Call) error { return d.Audit(callEvents(calls)...) },
	})
}

// callEvents returns the audit events of calls. They carry the digest of the arguments instead of the arguments,
// which is enough to match them with the list of calls.
func callEvents(calls []assistant.Call) []audit.Event {
	out := make([]audit.Event, 0, len(calls))
	for _, c := range calls {
		e := audit.Event{Action: audit.AssistantCalled, Target: c.Tool, Outcome: audit.Outcome(c.Outcome),
			Actor: "assistant:" + c.Assistant, RequestID: c.Who.RequestID, Address: c.Who.Address,
			Details: []audit.Detail{audit.Digest(strings.TrimSpace(c.Digest)), audit.Count(int64(c.Rows))}}
		if c.Code != "" {
			e.Details = append(e.Details, audit.Code(c.Code))
		}
		if d, ok := audit.Fact("call", c.CallID); ok {
			e.Details = append(e.Details, d)
		}
		out = append(out, e)
	}
	return out
}

var _ host.Assistants = (*assistant.Gateway)(nil)
