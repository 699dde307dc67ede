package run

import (
	"strconv"
	"time"

	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// commitStart makes run.started durable before the guest's first instruction:
// row 2 of the event catalogue.
func (r *run) commitStart() {
	p := r.plan
	names := make([]string, 0, len(p.scope.Streams))
	for _, s := range p.scope.Streams {
		names = append(names, s.Name)
	}
	started := data{
		"workflowId": r.journal.workflow(), "collection_mode": p.mode, "grant_id": nullable(string(p.grant)),
		"persist_state": p.persist, "state_commit_intent": p.intent(), "bindings": p.bindings,
		"scope": p.scope, "scope_streams": names, "trigger_kind": p.Trigger, "attempt": r.rec.Attempt,
		"guest_transport": p.Transport, "module_digest": p.Connector.Digest, "isolation": r.guest.Isolation(),
		"boot_epoch": r.deps.BootEpoch, "controller_id": r.deps.HostID,
	}
	if u := unenforced(p); len(u) > 0 {
		started["time_range_unenforced"] = u
	}
	switch {
	case len(p.from) > 0:
		started["state_from"] = p.from
	case len(p.states) > 0: // of nobody's run
		started["state_supplied"] = true
	}
	started.set("automation_mode", p.AutomationMode)
	started.set("retry_of", string(p.RetryOf))
	started.set("transport", p.Request.Transport)
	started.set("engineVersion", r.deps.EngineVersion)
	if f := p.Request.ForkedFrom; f != nil {
		started["forked_from"] = f
	}
	if p.Request.CatchUp {
		started["catch_up"] = true
	}
	r.stage("running")
	events := []store.Event{
		r.journal.event("run.started", "started", started),
		r.journal.event("lease.acquired", "started", r.lease.held()),
		r.journal.nodeEvent("version.pinned", "started", data{
			"connectorId": p.Connector.ID, "version": p.manifest.Version, "moduleDigest": p.Connector.Digest,
		}),
	}
	if r.rec.Attempt > 1 {
		events = append(events, r.journal.nodeEvent("node.retried", "started", r.anew()))
	}
	events = append(events, r.journal.nodeEvent("node.started", "started", data{"typeId": p.manifest.Name(), "attempt": r.rec.Attempt - 1}))
	r.commits.submit(&store.Commit{Run: ptr(r.rec), Events: events}, nil)
	r.journal.beginNode(p.manifest.Name(), r.rec.Attempt-1)
	r.barrier()
	r.clocks.start(time.Now())
}

// anew says which attempt this is, of a run that is one of a series.
func (r *run) anew() data {
	d := data{"attempt": r.rec.Attempt - 1}
	d.set("retryOf", string(r.plan.RetryOf))
	return d
}

// held says which lease the run has.
func (l *lease) held() data {
	return data{"leaseId": leaseID(l.current), "host": "cloud", "instanceId": l.deps.HostID, "expiresAt": store.Time(l.current.ExpiresAt)}
}

// leaseID names a lease on the timeline.
func leaseID(l store.Lease) string { return string(l.RunID) + ":" + strconv.FormatUint(l.Fence, 10) }

func unenforced(p *Plan) []string { return scope.Unenforced(p.scope, p.manifest) }
