package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// StartRun implements host.Runs. A run of the service can always ask its
// owner, at the desk.
func (s *Service) StartRun(ctx context.Context, q host.StartRun) (store.Run, error) {
	return s.start(ctx, q, branch{})
}

// A branch is what a run that branches off another begins with (A79). The zero
// branch is none.
type branch struct {
	state []byte
	from  map[string]store.RunID

	automation string // automation_mode of one that starts by itself (§22.5)
}

func (s *Service) start(ctx context.Context, q host.StartRun, b branch) (store.Run, error) {
	who := host.Who(ctx)
	if err := checkBudgets(q.Budgets); err != nil {
		return store.Run{}, err
	}
	q.WorkflowID = strings.Clone(q.WorkflowID)
	q.Request.Transport, q.Request.By, q.Request.WorkflowID = who.Transport, who.ID, q.WorkflowID
	sc, err := s.correlations.enter(ctx, q.Request.ScopeID)
	if err != nil {
		return store.Run{}, err
	}
	defer s.correlations.leave(sc)
	var w workflow
	rec, err := s.runs.StartFor(ctx, startedBy(who), func(ctx context.Context, slots run.Slots) (controller.Job, error) {
		var err error
		if w, err = s.resolve(ctx, q); err != nil {
			return controller.Job{}, err
		}
		if err := sc.free(ctx, s.host.Store, q.Dedup); err != nil {
			s.leave(w)
			return controller.Job{}, err
		}
		request := s.request(w, q, b, slots)
		var p *prepared
		if err = s.give(&request, q.Given); err == nil {
			p, err = s.host.prepare(ctx, request)
		}
		if err != nil {
			s.leave(w)
			return controller.Job{}, err
		}
		if q.Given != nil && q.Given.TimeOuts {
			s.desk.AllowTimeOuts(p.run.ID)
		}
		w.loaded = nil // not to be kept for as long as the run lasts
		recorder, over := request.Record, s.correlations.add(sc, p.run.ID)
		return controller.Job{Run: p.run, With: q.With, Abandon: p.abandon, Ended: func(r *run.Result) {
			s.ended(p, w, r)
			if err := s.recordings.add(p.run.ID, recorder, r); err != nil {
				s.log.Error("recording_lost", "run", p.run.ID, "error", err)
			}
			over()
		}}, nil
	})
	return rec, s.startError(ctx, w, err)
}

// startedBy is whose share of the host's places a run takes: "" is the host's own,
// which a schedule has.
func startedBy(who host.Principal) string {
	switch {
	case who.ID == "scheduler" && who.Transport == "":
		return ""
	case who.ID == "":
		return "owner"
	}
	return who.ID
}

func (s *Service) request(w workflow, q host.StartRun, b branch, slots run.Slots) RunRequest {
	return RunRequest{
		Connector: w.loaded, Connection: w.connection, Existing: !w.making, Owner: s.desk, Slots: slots, Spans: s.spans, store: s.store,
		Mode: q.Mode, Scope: q.Scope, Narrow: q.Narrow, State: b.state, StateFrom: b.from, NoPersist: q.NoPersist, Trace: q.Trace, Lower: q.Budgets,
		Trigger: q.Trigger, Attempt: q.Attempt, RetryOf: q.RetryOf, Request: q.Request, AutomationMode: b.automation,
	}
}

// ended clears up behind a run that is over, was not accepted, or came to no
// end.
func (s *Service) ended(p *prepared, w workflow, r *run.Result) {
	s.desk.Forget(p.run.ID)
	if r == nil {
		if err := p.release(); err != nil {
			s.log.Error("network_not_closed", "run", p.run.ID, "error", err)
		}
	}
	s.leave(w)
}

// checkBudgets: a budget of 0 would be none, and only lower ones may be asked
// for (A67).
func checkBudgets(b map[string]int64) error {
	for _, ms := range b {
		if ms <= 0 {
			return host.Refuse("invalid_request", "a budget is a number of milliseconds above 0").With("field", "budgets")
		}
	}
	return nil
}

// startError adds to run_already_active when the connection may be free (A64).
func (s *Service) startError(ctx context.Context, w workflow, err error) error {
	err = asked(err)
	var r *host.Refusal
	if !errors.As(err, &r) || r.Code != "run_already_active" {
		return err
	}
	r.With("activeHost", "cloud").With("retryAfter", 1)
	leases, listed := s.host.Store.Leases(ctx)
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
func (s *Service) CancelRun(ctx context.Context, id store.RunID, reason string) (string, error) {
	live, active := s.runs.Live(id)
	status, err := s.runs.Cancel(ctx, id, run.CancelRequest{Cause: "owner", Reason: strings.Clone(reason), By: host.Who(ctx).ID})
	if active && !live.CancelRequested {
		s.steered(ctx, id, "cancel", err)
	}
	return status, asked(err)
}

// PauseRun implements host.Runs.
func (s *Service) PauseRun(ctx context.Context, id store.RunID, policy, reason string) (time.Time, error) {
	at, err := s.runs.Pause(ctx, id, run.PauseRequest{Policy: strings.Clone(policy), Reason: strings.Clone(reason), By: host.Who(ctx).ID})
	s.steered(ctx, id, "pause", err)
	return at, asked(err)
}

// ResumeRun implements host.Runs.
func (s *Service) ResumeRun(ctx context.Context, id store.RunID, reason string) (time.Time, error) {
	at, err := s.runs.Resume(ctx, id, run.ResumeRequest{Reason: strings.Clone(reason), By: host.Who(ctx).ID})
	s.steered(ctx, id, "resume", err)
	return at, asked(err)
}

// steered writes down that somebody cancelled, paused or resumed a run. It is
// had also where it cannot be written down: who wants a run to stop is obeyed.
func (s *Service) steered(ctx context.Context, id store.RunID, code string, err error) {
	if err != nil {
		return
	}
	e := audit.Event{Action: audit.RunSteered, Target: string(id), Outcome: audit.Done, Details: []audit.Detail{audit.Code(code)}}
	if err := s.host.Audit(by(ctx, e)); err != nil {
		s.log.Error("steering_not_written_down", "run", id, "code", code, "error", err)
	}
}

// Requests implements host.Runs.
func (s *Service) Requests(ctx context.Context, id store.RunID, skip, limit int) (out []host.Request, err error) {
	log := s.host.requests
	if log == nil {
		return nil, host.Refuse("unavailable", "a store in memory keeps no log of requests")
	}
	if err := log.Flush(); err != nil {
		return nil, err
	}
	for r, err := range log.All(ctx, string(id)) {
		switch {
		case err != nil:
			return nil, err
		case skip > 0:
			skip--
			continue
		case len(out) == limit:
			return out, nil
		}
		out = append(out, host.Request{At: r.At.Time, Method: r.Method, Origin: r.Origin, Path: r.Path, Status: r.Status, Refused: r.Refused,
			Sent: r.Sent, Received: r.Received, DurationMS: r.Millis, Family: r.Family})
	}
	return out, nil
}

// LiveRun implements host.Runs.
func (s *Service) LiveRun(id store.RunID) (host.LiveRun, bool) {
	l, ok := s.runs.Live(id)
	if l.Queued && l.Stalled == "" {
		n := s.runs.Stats()
		l.Stalled = fmt.Sprintf("Waits for a place: %d of %d runs execute, and %d wait.", n.Running, n.Runs, n.Queued)
	}
	return host.LiveRun{
		Phase: l.Phase, Queued: l.Queued, PauseRequested: l.PauseRequested, Paused: l.Paused, CancelRequested: l.CancelRequested,
		HeldUp: l.Stalled,
		Usage:  host.Usage{CPU: l.Usage.CPU, MemoryBytes: l.Usage.PeakMemoryBytes, HostCalls: l.Usage.HostCalls, BytesIn: l.Usage.BytesIn},
	}, ok
}

// WaitRun waits for the end of a run and returns its result. It is
// controller.ErrNotActive for a run that is over already: its row says how.
func (s *Service) WaitRun(ctx context.Context, id store.RunID) (*run.Result, error) {
	return s.runs.Wait(ctx, id)
}
