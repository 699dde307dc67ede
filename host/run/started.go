package run

import (
	"time"

	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// commitStart makes run.started durable before the guest's first instruction
// (R32): row 2 of the event catalogue.
func (r *run) commitStart() {
	p := r.plan
	names := make([]string, 0, len(p.scope.Streams))
	for _, s := range p.scope.Streams {
		names = append(names, s.Name)
	}
	started := data{
		"workflowId": p.Connection.ID, "collection_mode": p.mode, "grant_id": nullable(string(p.grant)),
		"persist_state": p.persist, "state_commit_intent": p.intent(), "bindings": p.bindings,
		"scope": p.scope, "scope_streams": names, "trigger_kind": p.Trigger, "attempt": r.rec.Attempt,
		"guest_transport": p.Transport, "module_digest": p.Connector.Digest, "isolation": r.guest.Isolation(),
		"boot_epoch": r.deps.BootEpoch, "controller_id": r.deps.HostID,
	}
	if u := unenforced(p); len(u) > 0 {
		started["time_range_unenforced"] = u
	}
	started.set("automation_mode", p.AutomationMode)
	started.set("retry_of", string(p.RetryOf))
	r.rec.Phase = "running"
	r.submit(&store.Commit{Run: ptr(r.rec), Events: []store.Event{
		r.event("run.started", "started", started),
		r.event("lease.acquired", "started", data{
			"leaseId": string(r.id) + ":" + itoa(int(r.lease.Fence)), "host": "cloud", "instanceId": r.deps.HostID,
			"expiresAt": store.Time(r.lease.ExpiresAt),
		}),
		r.nodeEvent("node.started", "started", data{"typeId": "connector", "attempt": r.rec.Attempt - 1}),
	}}, nil)
	r.barrier()
	r.clocks.started = time.Now()
}

func unenforced(p *Plan) []string { return scope.Unenforced(p.scope, p.manifest) }
