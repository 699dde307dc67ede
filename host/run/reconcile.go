package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// Reconcile closes the runs that nobody performs any more: each gets run.failed with controller_restarted and
// counts rebuilt from its timeline, its pending question is erased, and its connection is released. hostID and
// bootEpoch are the caller's. Runs of this boot are never touched. If hosts share the store (store.Members), it
// closes runs whose host is no longer a member, otherwise those of every other boot.
//
// It is called before anything is started, and regularly after that. Repeated or concurrent calls, also on other
// hosts, are harmless.
//
// A run that outlives its host is not closed but passed to waits, which must not block; it may be nil. If hosts
// share the store, each of them may take such a run.
func Reconcile(ctx context.Context, st store.Store, hostID, bootEpoch string, waits func(store.Lease)) error {
	leases, err := st.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list active runs: %w", err)
	}
	shared := store.MembersOf(st)
	alive := map[string]bool{bootEpoch: true}
	if shared != nil && len(leases) > 0 {
		all, err := shared.Members(ctx) // after the leases, so that each holder of a lease is included
		if err != nil {
			return fmt.Errorf("list hosts: %w", err)
		}
		for _, m := range all {
			alive[m.Epoch] = true
		}
	}
	return closeRuns(ctx, st, leases, hostID, func(l store.Lease) bool { return !alive[l.BootEpoch] }, waits)
}

// CloseLost closes the runs of this boot for which lost returns true: active in the store, but their goroutine
// is gone. It complements Reconcile, for a host that knows which runs it performs.
func CloseLost(ctx context.Context, st store.Store, hostID, bootEpoch string, lost func(store.Lease) bool,
	waits func(store.Lease)) error {
	leases, err := st.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list active runs: %w", err)
	}
	return closeRuns(ctx, st, leases, hostID, func(l store.Lease) bool { return l.BootEpoch == bootEpoch && lost(l) },
		waits)
}

// EndSuspended ends a suspended run that cannot be resumed, like Reconcile.
func EndSuspended(ctx context.Context, st store.Store, l store.Lease, hostID, reason, why string) error {
	return endRun(ctx, st, l, hostID, reason, why)
}

// closeRuns closes the runs of the leases for which of returns true, and continues after errors. Runs that
// outlive their host are passed to waits instead.
func closeRuns(ctx context.Context, st store.Store, leases []store.Lease, hostID string, of func(store.Lease) bool,
	waits func(store.Lease)) error {
	var failed error
	for _, l := range leases {
		if !of(l) {
			continue
		}
		if leave, err := isLeftWaiting(ctx, st, l); err != nil {
			failed = errors.Join(failed, fmt.Errorf("look at run %s: %w", l.RunID, err))
			continue
		} else if leave {
			if waits != nil {
				waits(l)
			}
			continue
		}
		if err := endRun(ctx, st, l, hostID, ReasonRestarted, ""); err != nil {
			failed = errors.Join(failed, fmt.Errorf("close run %s: %w", l.RunID, err))
		}
	}
	return failed
}

// isLeftWaiting reports whether a run that nobody performs outlives its host and is left waiting. Any other is ended.
func isLeftWaiting(ctx context.Context, st store.Store, l store.Lease) (bool, error) {
	rec, err := st.Run(ctx, l.RunID)
	if err != nil {
		return false, err
	}
	open, err := st.Pending(ctx, l.RunID)
	return Outlives(rec, open), err
}

// endRun ends a run that nobody performs. The default message says that its host stopped.
func endRun(ctx context.Context, st store.Store, l store.Lease, hostID, reason, message string) error {
	rec, err := st.Run(ctx, l.RunID)
	if err != nil {
		return err
	}
	if message == "" {
		message = restarted("The host stopped while the run was active.", rec)
	}
	if rec.Status != "active" {
		return nil // it ended by itself meanwhile
	}
	seen, err := replay(ctx, st, l.RunID)
	if err != nil {
		return err
	}
	pending, err := st.Pending(ctx, l.RunID)
	if err != nil {
		return err
	}
	status := CommitNone
	if !seen.persist {
		status = CommitDisabled
	}
	gaps := gapList{}
	gaps.add(KnownGap{Kind: gapRunFailed, Reason: reason, Severity: "actionable", RecoveryHint: hintOf(nil, nil, reason)})
	if status == CommitNone {
		gaps.add(KnownGap{Kind: gapCheckpoint, Reason: status, Severity: "actionable",
			RecoveryHint: Hint{"retry_by_runtime", true}})
	}
	d := data{
		"reason": reason, "failure_origin": "runtime", "failure_message": message, "counts_source": "reconstructed",
		"records_emitted":          nil,
		"buffered_records_dropped": 0, "checkpoint_mode": checkpointMode, "checkpoint_commit_status": status,
		"state_streams_staged": seen.staged, "state_streams_committed": 0, "persist_state": seen.persist,
		"grant_id": nullable(string(rec.GrantID)), "trigger_kind": rec.TriggerKind,
		"known_gaps": gaps.shown(), "known_gaps_summary": gaps.summary(),
		"error": map[string]any{"code": reason, "message": message, "details": map[string]any{"failure_origin": "runtime"},
			"retryable": true},
	}
	countsOf(seen.attempted, seen.accepted, seen.rejected).in(d)
	if len(pending) > 0 {
		d["open_interaction_id"] = pending[0].ID
	}
	now := store.Now(st).Round(0)
	if now.Before(seen.last) { // the clock was set back
		now = seen.last
	}
	event := func(typ, status string, d data) (store.Event, error) {
		d["source"] = source(rec.ConnectorID)
		raw, err := d.encode()
		return store.Event{
			ID: store.EventID(hexID("evt_", 8)), Type: typ, Status: status, OccurredAt: now, RunID: rec.ID, TraceID: rec.TraceID,
			ConnectorID: rec.ConnectorID, ConnectionID: rec.ConnectionID, GrantID: rec.GrantID, ActorType: "controller",
			ActorID: "sluice", Data: raw,
		}, err
	}
	c := &store.Commit{Lease: l, Grant: rec.GrantID, End: true}
	if seen.node != "" {
		if c.Events, err = takeoverEvent(event, l, hostID); err != nil { // rows 5 and 7 of the event catalogue
			return err
		}
		e, err := event("node.failed", "failed", data{"nodeId": seen.node, "error": d["error"], "attempts": rec.Attempt})
		if err != nil {
			return err
		}
		e.NodeID = seen.node
		c.Events = append(c.Events, e)
	}
	e, err := event("run.failed", "failed", d)
	if err != nil {
		return err
	}
	c.Events = append(c.Events, e)
	rec.Status, rec.Phase, rec.FinishedAt = abi.Failed, "", &now
	if rec.Result, err = seen.result(rec, gaps, status, reason, message); err != nil {
		return err
	}
	c.Run = &rec
	receipt, err := st.Submit(ctx, c)
	if err != nil {
		return err
	}
	if _, err := receipt.Result(); err != nil && !errors.Is(err, store.ErrRunTerminal) &&
		!errors.Is(err, store.ErrFenced) {
		return err
	}
	return nil
}

// takeoverEvent returns the events that a run's lease was lost, and acquired by this host to end the run.
func takeoverEvent(event func(typ, status string, d data) (store.Event, error), l store.Lease,
	hostID string) ([]store.Event, error) {
	lost, err := event("lease.lost", "failed", data{
		"leaseId": leaseID(l), "host": "cloud", "instanceId": l.HostID, "expiresAt": store.Time(l.ExpiresAt),
	})
	if err != nil {
		return nil, err
	}
	hostID = cmp.Or(hostID, l.HostID) // hostID is "" while a directory is being opened
	acquired, err := event("lease.acquired", "started", data{"leaseId": leaseID(l), "host": "cloud", "instanceId": hostID})
	return []store.Event{lost, acquired}, err
}

// ReasonRestarted is the reason of a run whose host ended before the run did.
const ReasonRestarted = "controller_restarted"

// restarted returns the message of a run that ended with its host, and why it did not outlive it.
func restarted(message string, rec store.Run) string {
	if rec.HostBound == "" {
		return message
	}
	return message + " It did not outlive that: " + rec.HostBound + "."
}

// result returns the result of a run that was cut off. What its guest had emitted, used and staged is not known
// any more.
func (s rebuilt) result(rec store.Run, gaps gapList, status, reason, message string) (json.RawMessage, error) {
	counts := countsOf(s.attempted, s.accepted, s.rejected)
	return redact.Marshal(struct {
		Result
		RecordsEmitted *int64 `json:"records_emitted"` // null, since only the host's memory had it
	}{Result: Result{
		RunID: rec.ID, TraceID: rec.TraceID, ConnectorID: rec.ConnectorID, ConnectionID: rec.ConnectionID,
		ConnectorDigest: rec.Digest, Status: abi.Failed, Outcome: OutcomeFailed, TerminalReason: new(reason),
		Failure:      &Failure{Reason: reason, Origin: "runtime", Message: message},
		RecordCounts: counts, State: cursors{},
		CheckpointSummary: Checkpoints{
			Mode: checkpointMode, CommitStatus: status, StateStreamsStaged: s.staged, StateStreamsWithheld: []string{},
			RecordCounts: counts,
		},
		KnownGaps: gaps.shown(), DetailGaps: []GapNote{}, TriggerKind: rec.TriggerKind, HostBound: rec.HostBound,
	}})
}

// rebuilt is what the timeline of a run that was cut off contains.
type rebuilt struct {
	attempted, accepted, rejected int64
	staged                        int
	persist                       bool
	node                          string
	last                          time.Time // time of the newest event
}

func replay(ctx context.Context, st store.Store, id store.RunID) (rebuilt, error) {
	r := rebuilt{persist: true}
	for from := uint64(0); ; {
		events, err := st.Events(ctx, id, from, 1000)
		if err != nil || len(events) == 0 {
			return r, err
		}
		for _, e := range events {
			var d struct {
				Attempted int64 `json:"records_attempted"`
				Accepted  int64 `json:"records_accepted"`
				Rejected  int64 `json:"records_permanently_rejected"`
				Staged    int   `json:"state_streams_staged"`
				Persist   *bool `json:"persist_state"`
			}
			switch e.Type {
			case "run.batch_ingested", "run.state_staged", "run.started":
				if err := json.Unmarshal(e.Data, &d); err != nil {
					return r, fmt.Errorf("event %d: %w", e.Sequence, err)
				}
			case "node.started":
				r.node = e.NodeID
			}
			r.last = e.OccurredAt
			r.attempted += d.Attempted
			r.accepted += d.Accepted
			r.rejected += d.Rejected
			r.staged = max(r.staged, d.Staged)
			if d.Persist != nil {
				r.persist = *d.Persist
			}
			from = e.Sequence + 1
		}
	}
}
