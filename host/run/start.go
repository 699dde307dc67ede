package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// Accept makes the run's row and lease durable before there is a guest, and returns the row. If with is not nil,
// it is called with the row, and what it returns is written in the same commit. The error is a *Refusal if the
// connection has an active run or START is too large, and nothing was recorded then. The caller must call Do
// soon, which renews the lease and always ends the run.
func (r *Run) Accept(ctx context.Context, with func(store.Run) []store.Write) (store.Run, error) {
	if err := r.r.accept(ctx, with); err != nil {
		return store.Run{}, err
	}
	return r.r.rec, nil
}

func (r *run) accept(ctx context.Context, with func(store.Run) []store.Write) error {
	start, err := r.plan.start(r.id)
	if err != nil {
		return asRefusal(err)
	}
	r.calls.begin(start)
	if r.history.replaying() {
		return r.takeOver(ctx)
	}
	if err := r.acquire(ctx, with); err != nil {
		return err
	}
	r.clocks.start(time.Now())
	r.accepted = true
	return nil
}

// takeOver takes the lease of a suspended run.
func (r *run) takeOver(ctx context.Context) error {
	held, err := r.deps.Store.TakeOver(ctx, r.deps.History.Resume.Lease, r.deps.HostID, r.deps.BootEpoch, r.deps.LeaseTTL)
	if err != nil {
		return asRefusal(fmt.Errorf("resume run: %w", err))
	}
	r.lease.set(held)
	r.deps.History.Resume.Lease = held // for another attempt, if this one comes no further
	if err := r.history.readOutOfOrder(ctx); err != nil {
		return asRefusal(fmt.Errorf("resume run: %w", err))
	}
	r.clocks.start(time.Now())
	r.accepted = true
	return nil
}

// acquire inserts the run and its lease.
func (r *run) acquire(ctx context.Context, with func(store.Run) []store.Write) error {
	var writes []store.Write
	if with != nil {
		writes = with(r.rec)
	}
	held, err := r.deps.Store.Acquire(ctx, r.rec, r.deps.HostID, r.deps.BootEpoch, r.deps.LeaseTTL, writes...)
	var active *store.ActiveError
	var conflict *store.ConflictError
	switch {
	case err == nil:
		r.lease.set(held)
		return nil
	case errors.As(err, &active):
		return refuse("run_already_active", "connection %s is being collected by run %s", r.plan.Connection.ID, active.RunID).
			with("activeRunId", active.RunID)
	case errors.Is(err, store.ErrNoSpace):
		return refuse("store_no_space", "%v; free some disk space and start again", err)
	case errors.As(err, &conflict):
		return err // about the writes of the caller
	}
	return asRefusal(fmt.Errorf("start run: %w", err))
}

// launch starts the worker and makes run.started durable before the guest executes. It reports whether there is
// a guest to run.
func (r *run) launch(ctx context.Context) bool {
	prepare, cancel := context.WithTimeout(ctx, cmp.Or(r.plan.Budgets.Prepare, 1<<62)) // no limit
	defer cancel()
	var guest Guest
	var files binding.Binding
	err := r.whileRunning(prepare, func(ctx context.Context) (err error) {
		guest, files, err = r.deps.Launch(ctx, Launch{
			RunID: r.id, Name: r.plan.manifest.Name(), Env: r.plan.environment(),
		})
		return err
	})
	r.bindings.add(files)
	if err != nil {
		if !r.outcome.cancelled() {
			r.outcome.latch(r.outcome.launchCause(err, prepare.Err()))
		}
		return false
	}
	if !r.outcome.ready() {
		discard(guest)
		return false
	}
	r.guest = guest
	r.control.setGuest(guest)
	r.commitStart()
	if r.outcome.ready() {
		if err := guest.Go(); err != nil {
			r.outcome.latch(hostFault("start guest", err))
		}
	}
	if !r.outcome.ready() {
		guest.Kill()
	}
	if r.plan.Transport == "stdio" {
		r.proto.Step(abi.StepStart)
		r.calls.sendStdioStart()
	}
	return true
}

// discard ends a guest that never ran.
func discard(g Guest) {
	g.Kill()
	for in := range g.Calls() {
		in.Release()
	}
}

// commitStart makes the events of row 2 of the event catalogue durable before the guest's first instruction.
func (r *run) commitStart() {
	p := r.plan
	names := make([]string, 0, len(p.scope.Streams))
	for _, s := range p.scope.Streams {
		names = append(names, s.Name)
	}
	started := data{
		"workflowId": r.journal.workflow(), "collection_mode": p.mode, "grant_id": nullable(string(p.grant)),
		"persist_state": p.persist, "state_commit_intent": p.intent(), "bindings": p.startBindings,
		"scope": p.scope, "scope_streams": names, "trigger_kind": p.Trigger, "attempt": r.rec.Attempt,
		"guest_transport": p.Transport, "module_digest": p.Connector.Digest, "isolation": r.guest.Isolation(),
		"boot_epoch": r.deps.BootEpoch, "controller_id": r.deps.HostID,
	}
	if u := unenforced(p); len(u) > 0 {
		started["time_range_unenforced"] = u
	}
	switch {
	case len(p.stateRuns) > 0:
		started["state_from"] = p.stateRuns
	case len(p.states) > 0: // not committed by a run
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
		r.journal.event("lease.acquired", "started", r.lease.eventData()),
		r.journal.nodeEvent("version.pinned", "started", data{
			"connectorId": p.Connector.ID, "version": p.manifest.Version, "moduleDigest": p.Connector.Digest,
		}),
	}
	if r.rec.Attempt > 1 {
		events = append(events, r.journal.nodeEvent("node.retried", "started", r.attemptData()))
	}
	events = append(events, r.journal.nodeEvent("node.started", "started",
		data{"typeId": p.manifest.Name(), "attempt": r.rec.Attempt - 1}))
	r.commits.submit(&store.Commit{Run: new(r.rec), Events: events}, nil)
	r.journal.beginNode(p.manifest.Name(), r.rec.Attempt-1)
	r.barrier()
	r.clocks.start(time.Now())
}

// attemptData returns which attempt this is, and the run that it retries.
func (r *run) attemptData() data {
	d := data{"attempt": r.rec.Attempt - 1}
	d.set("retryOf", string(r.plan.RetryOf))
	return d
}

func unenforced(p *Plan) []string { return scope.Unenforced(p.scope, p.manifest) }
