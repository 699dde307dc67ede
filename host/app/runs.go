package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// runs implements host.Runs, except for branches.
type runs struct {
	*directory
	controller  *controller.Controller
	starter     *starter
	bindings    *bindings
	workflows   *workflows
	temporaries *temporaries
	broker      *interaction.Broker
	suspended   *suspendedRuns
	hosts       *hosts
	spans       run.Spans
	commitTo    store.Store // nil means the store of the directory
	idle        bool        // the host belongs to one command and ends with it

	recordings recordings
}

// StartRun implements host.Runs. A run of the service can always ask its owner, at the broker.
func (rs *runs) StartRun(ctx context.Context, q host.StartRun) (store.Run, error) {
	if r, done, err := rs.startElsewhere(ctx, q, askToStart); done || err != nil {
		return r, err
	}
	return rs.start(ctx, q, branch{})
}

func (rs *runs) start(ctx context.Context, q host.StartRun, b branch) (store.Run, error) {
	for {
		if rec, err := rs.startOnce(ctx, q, b); !overtaken(err) {
			return rec, err
		}
	}
}

func (rs *runs) startOnce(ctx context.Context, q host.StartRun, b branch) (store.Run, error) {
	who := host.Who(ctx)
	if err := checkBudgets(q.Budgets); err != nil {
		return store.Run{}, err
	}
	if err := rs.hosts.open(ctx); err != nil {
		return store.Run{}, err
	}
	q.WorkflowID = strings.Clone(q.WorkflowID)
	q.Request.Transport, q.Request.By, q.Request.WorkflowID = who.Transport, who.ID, q.WorkflowID
	var w workflow
	rec, err := rs.controller.StartFor(ctx, startedBy(who),
		func(ctx context.Context, slots run.Slots) (controller.Job, error) {
			var err error
			if w, err = rs.workflows.resolve(ctx, q); err != nil {
				return controller.Job{}, err
			}
			if err := rs.hosts.labelled(ctx, w.connection); err != nil {
				rs.temporaries.remove(w)
				return controller.Job{}, err
			}
			scope, err := rs.correlate(ctx, q.Request.ScopeID, q.Dedup)
			if err != nil {
				rs.temporaries.remove(w)
				return controller.Job{}, err
			}
			request := rs.request(w, q, b, slots)
			var p *prepared
			if err = rs.applyOverrides(&request, q.Overrides); err == nil {
				p, err = rs.starter.prepare(ctx, request)
			}
			if err != nil {
				rs.temporaries.remove(w)
				return controller.Job{}, err
			}
			if q.Overrides != nil && q.Overrides.TimeOuts {
				rs.broker.AllowTimeOuts(p.run.ID)
			}
			w.loaded = nil // do not keep it for as long as the run lasts
			recorder, with := request.Record, scope.with(q.With, store.Now(rs.Store))
			return controller.Job{Run: p.run, With: with, Abandon: p.abandon, Ended: func(r *run.Result) {
				rs.ended(p, w, r)
				if err := rs.recordings.add(p.run.ID, recorder, r); err != nil {
					rs.Options.Log.Error("recording_lost", "run", p.run.ID, "error", err)
				}
			}}, nil
		})
	return rec, rs.startError(ctx, w, err)
}

// startedBy returns the key of controller.StartFor for a principal. "" is the host, for schedules.
func startedBy(who host.Principal) string {
	switch {
	case who.ID == "scheduler" && who.Transport == "":
		return ""
	case who.ID == "":
		return "owner"
	}
	return who.ID
}

// stored reports whether everything that a run is given is stored, so that it is available to a resumed run.
func stored(g *host.Overrides) bool {
	if g == nil {
		return true
	}
	own := *g
	own.Accepted = false // recorded with the version that runs
	return own.Empty()
}

func (rs *runs) request(w workflow, q host.StartRun, b branch, slots run.Slots) RunRequest {
	at := host.StartAt{}
	if q.At != nil {
		at = *q.At
	}
	return RunRequest{
		At: at, Connector: w.loaded, Connection: w.connection, Existing: !w.create, serviced: !rs.idle && !w.temporary &&
			stored(q.Overrides), Owner: rs.broker, Slots: slots, Spans: rs.spans, store: rs.commitTo,
		Mode: q.Mode, Scope: q.Scope, Narrow: q.Narrow, State: b.state, StateFrom: b.cursorRuns, NoPersist: q.NoPersist,
		Trace: q.Trace, Lower: q.Budgets, Trigger: q.Trigger, Attempt: q.Attempt, RetryOf: q.RetryOf, Request: q.Request,
		AutomationMode: b.automation,
	}
}

// ended cleans up after a run that is over, suspended or was not accepted. r is nil for a run without a result.
func (rs *runs) ended(p *prepared, w workflow, r *run.Result) {
	rs.broker.Forget(p.run.ID)
	rs.release(p, w, r)
	if r == nil {
		rs.suspended.put(p.run.ID, !p.run.Progressed())
		return
	}
	if err := rs.uncorrelate(context.Background(), p.scopeID); err != nil { // the next start of the scope id does it
		rs.Options.Log.Warn("run_not_taken_out_of_its_scope", "run", p.run.ID, "error", err)
	}
}

// release gives up what a run was lent.
func (rs *runs) release(p *prepared, w workflow, r *run.Result) {
	if r == nil {
		if err := p.release(); err != nil {
			rs.Options.Log.Error("network_not_closed", "run", p.run.ID, "error", err)
		}
	}
	rs.temporaries.remove(w)
}

// checkBudgets refuses budgets of 0 or less, since 0 would mean unlimited and a request may only lower budgets.
func checkBudgets(b map[string]int64) error {
	for _, ms := range b {
		if ms <= 0 {
			return host.Refuse("invalid_request", "a budget is a number of milliseconds above 0").With("field", "budgets")
		}
	}
	return nil
}

// startError adds to run_already_active when a retry may succeed.
func (rs *runs) startError(ctx context.Context, w workflow, err error) error {
	err = asRefusal(err)
	var r *host.Refusal
	if !errors.As(err, &r) || r.Code != "run_already_active" {
		return err
	}
	r.With("activeHost", "cloud").With("retryAfter", 1)
	leases, listed := rs.Store.Leases(ctx)
	if listed != nil {
		return errors.Join(err, fmt.Errorf("list active runs: %w", listed))
	}
	for _, l := range leases {
		if l.ConnectionID == w.connection || r.Details["activeRunId"] == string(l.RunID) {
			r.With("activeRunId", string(l.RunID)).With("retryAfter", max(1, int(math.Ceil(time.Until(l.ExpiresAt).Seconds()))))
		}
	}
	return err
}

// CancelRun implements host.Runs.
func (rs *runs) CancelRun(ctx context.Context, id store.RunID, reason string) (string, error) {
	return atHolder(ctx, rs.hosts.peers, id, "cancel", steer{Run: id, Reason: reason}, rs.cancel)
}

// steer is a request to cancel, pause or resume a run.
type steer struct {
	Run            store.RunID
	Policy, Reason string
}

func (rs *runs) cancel(ctx context.Context, q steer) (string, error) {
	id, reason := q.Run, q.Reason
	live, active := rs.controller.Live(id)
	if rs.suspended.cancel(id, run.CancelRequest{Cause: "owner", Reason: strings.Clone(reason), By: host.Who(ctx).ID}) {
		rs.steered(ctx, id, "cancel", nil)
		return rs.cancelled(ctx, id)
	}
	status, err := rs.controller.Cancel(ctx, id,
		run.CancelRequest{Cause: "owner", Reason: strings.Clone(reason), By: host.Who(ctx).ID})
	if active && !live.CancelRequested {
		rs.steered(ctx, id, "cancel", err)
	}
	return status, asRefusal(err)
}

// wakes is how long a cancel waits for the end of a run that is woken for it.
const wakes = 10 * time.Second

// cancelled waits for the end of a run that was woken to be cancelled.
func (rs *runs) cancelled(ctx context.Context, id store.RunID) (string, error) {
	wake, stop := rs.Store.Watch(id)
	defer stop()
	late := time.NewTimer(wakes)
	defer late.Stop()
	for {
		rec, err := rs.Store.Run(ctx, id)
		if err != nil {
			return "", err
		}
		if status := controller.Status(rec); status != "" {
			return status, nil
		}
		select {
		case <-wake:
		case <-late.C:
			return "cancelling", nil
		case <-ctx.Done():
			return "cancelling", nil
		}
	}
}

// PauseRun implements host.Runs.
func (rs *runs) PauseRun(ctx context.Context, id store.RunID, policy, reason string) (time.Time, error) {
	return atHolder(ctx, rs.hosts.peers, id, "pause", steer{id, policy, reason}, rs.pause)
}

func (rs *runs) pause(ctx context.Context, q steer) (time.Time, error) {
	if rs.suspended.has(q.Run) {
		return time.Time{}, host.Refuse("conflict",
			"the run sleeps until its question is answered, so there is nothing to pause").With("runStatus", "waiting-input")
	}
	at, err := rs.controller.Pause(ctx, q.Run,
		run.PauseRequest{Policy: strings.Clone(q.Policy), Reason: strings.Clone(q.Reason), By: host.Who(ctx).ID})
	rs.steered(ctx, q.Run, "pause", err)
	return at, asRefusal(err)
}

// ResumeRun implements host.Runs.
func (rs *runs) ResumeRun(ctx context.Context, id store.RunID, reason string) (time.Time, error) {
	return atHolder(ctx, rs.hosts.peers, id, "resume", steer{Run: id, Reason: reason}, rs.goOn)
}

func (rs *runs) goOn(ctx context.Context, q steer) (time.Time, error) {
	if rs.suspended.has(q.Run) {
		return time.Time{}, host.Refuse("conflict",
			"the run sleeps until its question is answered, and is not paused").With("runStatus", "waiting-input")
	}
	at, err := rs.controller.Resume(ctx, q.Run, run.ResumeRequest{Reason: strings.Clone(q.Reason), By: host.Who(ctx).ID})
	rs.steered(ctx, q.Run, "resume", err)
	return at, asRefusal(err)
}

// steered records in the audit log that somebody cancelled, paused or resumed a run. A failure to do so is only
// logged, since it must not prevent anybody from stopping a run.
func (rs *runs) steered(ctx context.Context, id store.RunID, code string, err error) {
	if err != nil {
		return
	}
	e := audit.Event{Action: audit.RunSteered, Target: string(id), Outcome: audit.Done,
		Details: []audit.Detail{audit.Code(code)}}
	if err := rs.Audit(by(ctx, e)); err != nil {
		rs.Options.Log.Error("steering_not_written_down", "run", id, "code", code, "error", err)
	}
}

// LiveRun implements host.Runs.
func (rs *runs) LiveRun(id store.RunID) (host.LiveRun, bool) {
	l, ok := rs.controller.Live(id)
	if l.Queued && l.Stalled == "" {
		n := rs.controller.Stats()
		l.Stalled = fmt.Sprintf("Waits for a place: %d of %d runs execute, and %d wait.", n.Running, n.Runs, n.Queued)
	}
	memory := (*host.Memory)(nil)
	if l.Memory != nil {
		memory = &host.Memory{EveryMS: l.Memory.Every, Bytes: l.Memory.Bytes}
	}
	return host.LiveRun{
		Phase: l.Phase, Queued: l.Queued, PauseRequested: l.PauseRequested, Paused: l.Paused,
		CancelRequested: l.CancelRequested, HeldUp: l.Stalled, Memory: memory,
		Usage: host.Usage{CPU: l.Usage.CPU, MemoryBytes: cmp.Or(l.Usage.MemoryBytes, l.Usage.PeakMemoryBytes),
			HostCalls: l.Usage.HostCalls, BytesIn: l.Usage.BytesIn, OwnerWait: l.OwnerWait, Paused: l.PauseTotal},
	}, ok
}

// LiveRunAt implements host.Runs.
func (rs *runs) LiveRunAt(ctx context.Context, id store.RunID) (*host.LiveRun, *host.Member) {
	if l, ok := rs.LiveRun(id); ok {
		return &l, nil
	}
	if rs.hosts.peers == nil {
		return nil, nil
	}
	return rs.hosts.peers.looks.of(ctx, rs.hosts.peers, id)
}

// Requests implements host.Runs.
func (rs *runs) Requests(ctx context.Context, id store.RunID, skip, limit int) (out []host.Request, err error) {
	log := rs.requests
	if log == nil {
		return nil, host.Refuse("unavailable", "a store in memory keeps no log of requests")
	}
	if err := log.Flush(); err != nil {
		return nil, err
	}
	some := false
	for r, err := range log.All(ctx, string(id)) {
		some = true
		switch {
		case err != nil:
			return nil, err
		case skip > 0:
			skip--
			continue
		case len(out) == limit:
			return out, nil
		}
		out = append(out, host.Request{At: r.At.Time, Method: r.Method, Origin: r.Origin, Path: r.Path,
			Status: r.Status, Refused: r.Refused,
			Sent: r.Sent, Received: r.Received, DurationMS: r.Millis, Family: r.Family})
	}
	if !some {
		return nil, rs.hosts.awayFrom(ctx, id, "the log of the requests of this run")
	}
	return out, nil
}
