package app

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/assistant"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// openAssistants opens the interface for assistants.
func openAssistants(ctx context.Context, d *directory, runs assistant.Starter, all *hosts) (*assistant.Gateway, error) {
	dir, sharing := "", assistant.Hosts(nil)
	if all.members != nil {
		sharing = hostsOfAssistants{all}
	}
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "assistants")
	}
	return assistant.Open(ctx, assistant.Options{
		Store: d.Store, Runs: runs, Hosts: sharing, Dir: dir, Most: d.Options.Copies.Assistant,
		Setting: "copies.assistant_bytes", Room: d.checkSpace, Version: ThisVersion().Version, Log: d.Options.Log,
		Audited: func(ctx context.Context, action, name string, do func() error) error {
			return asRefusal(d.audited(by(ctx, audit.Event{Action: audit.Action(action), Target: name, Outcome: audit.Done}),
				do))
		},
		Called: func(calls []assistant.Call) error { return d.Audit(callEvents(calls)...) },
	})
}

// hostsOfAssistants implements assistant.Hosts.
type hostsOfAssistants struct{ hosts *hosts }

// Self implements assistant.Hosts.
func (h hostsOfAssistants) Self() string { return h.hosts.Epoch }

// Alive implements assistant.Hosts.
func (h hostsOfAssistants) Alive(ctx context.Context, epoch string) (bool, error) {
	return h.hosts.alive(ctx, epoch)
}

// Decide implements assistant.Hosts.
func (h hostsOfAssistants) Decide(ctx context.Context, epoch string, q assistant.Decision) error {
	all, err := h.hosts.list(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(m store.Member) bool { return m.Epoch == epoch })
	switch {
	case i < 0:
		return notFound("call")
	case h.hosts.peers == nil: // a command without a host
		return elsewhere(memberOf(all[i]), "/ui/assistants/"+q.Name, "the call")
	}
	_, err = atMember[assistant.Decision, struct{}](ctx, h.hosts.peers, &all[i], decideVerb, q)
	if errors.Is(err, errOrphan) {
		return notFound("call") // which ended with its host
	}
	return err
}

const decideVerb = "decide" // the verb of such commands

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
