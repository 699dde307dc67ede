package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Reconcile closes the runs that an earlier start of the host left active
// (R188): each gets run.failed with controller_restarted and counts rebuilt
// from its timeline, and its connection is free again. It must be called before
// anything starts, by the only host of a store. Doing it twice changes nothing.
func Reconcile(ctx context.Context, st store.Store) error {
	leases, err := st.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list active runs: %w", err)
	}
	for _, l := range leases {
		if err := reconcile(ctx, st, l); err != nil {
			return fmt.Errorf("close run %s: %w", l.RunID, err)
		}
	}
	return nil
}

func reconcile(ctx context.Context, st store.Store, l store.Lease) error {
	rec, err := st.Run(ctx, l.RunID)
	if err != nil {
		return err
	}
	seen, err := replay(ctx, st, l.RunID)
	if err != nil {
		return err
	}
	pending, err := st.Pending(ctx, l.RunID)
	if err != nil {
		return err
	}
	const reason = reasonRestarted
	status := CommitNone
	if !seen.persist {
		status = CommitDisabled
	}
	gaps := gapList{}
	gaps.add(KnownGap{Kind: gapRunFailed, Reason: reason, Severity: "actionable", RecoveryHint: hintOf(nil, nil, reason)})
	if status == CommitNone {
		gaps.add(KnownGap{Kind: gapCheckpoint, Reason: status, Severity: "actionable", RecoveryHint: Hint{"retry_by_runtime", true}})
	}
	const message = "The host stopped while the run was active."
	d := data{
		"reason": reason, "failure_origin": "runtime", "failure_message": message, "counts_source": "reconstructed",
		"records_emitted": nil, "records_attempted": seen.attempted, "records_accepted": seen.accepted, "records_flushed": seen.accepted,
		"records_permanently_rejected": seen.rejected, "records_unresolved_retryable": seen.attempted - seen.accepted - seen.rejected,
		"buffered_records_dropped": 0, "checkpoint_mode": checkpointMode, "checkpoint_commit_status": status,
		"state_streams_staged": seen.staged, "state_streams_committed": 0, "persist_state": seen.persist,
		"grant_id": nullable(string(rec.GrantID)), "trigger_kind": rec.TriggerKind,
		"known_gaps": gaps.shown(), "known_gaps_summary": gaps.summary(),
		"error": map[string]any{"code": reason, "message": message, "details": map[string]any{"failure_origin": "runtime"}, "retryable": true},
	}
	if len(pending) > 0 {
		d["open_interaction_id"] = pending[0].ID
	}
	now := time.Now()
	event := func(typ string, d data) (store.Event, error) {
		raw, err := d.encode(rec.ConnectorID)
		return store.Event{
			ID: store.EventID(hexID("evt_", 8)), Type: typ, Status: "failed", OccurredAt: now, RunID: rec.ID, TraceID: rec.TraceID,
			ConnectorID: rec.ConnectorID, ConnectionID: rec.ConnectionID, GrantID: rec.GrantID, ActorType: "controller", ActorID: "sluice", Data: raw,
		}, err
	}
	c := &store.Commit{Lease: l, Grant: rec.GrantID, End: true}
	if seen.node != "" {
		e, err := event("node.failed", data{"nodeId": seen.node, "error": d["error"], "attempts": rec.Attempt})
		if err != nil {
			return err
		}
		e.NodeID = seen.node
		c.Events = append(c.Events, e)
	}
	e, err := event("run.failed", d)
	if err != nil {
		return err
	}
	c.Events = append(c.Events, e)
	rec.Status, rec.Phase, rec.FinishedAt = abi.Failed, "", &now
	if rec.Result, err = seen.result(rec, gaps, status, message); err != nil {
		return err
	}
	c.Run = &rec
	receipt, err := st.Submit(ctx, c)
	if err != nil {
		return err
	}
	if _, err := receipt.Result(); err != nil && !errors.Is(err, store.ErrRunTerminal) {
		return err
	}
	return nil
}

// reasonRestarted ends a run that its host did not live to end (R188).
const reasonRestarted = "controller_restarted"

// result is the result value of a run that was cut off (R10). What its guest
// had emitted, used and staged is not known any more.
func (s rebuilt) result(rec store.Run, gaps gapList, status, message string) (json.RawMessage, error) {
	open := s.attempted - s.accepted - s.rejected
	return marshal(struct {
		Result
		RecordsEmitted *int64 `json:"records_emitted"` // null: only the host's memory had it
	}{Result: Result{
		RunID: rec.ID, TraceID: rec.TraceID, ConnectorID: rec.ConnectorID, ConnectionID: rec.ConnectionID, ConnectorDigest: rec.Digest,
		Status: abi.Failed, TerminalReason: ptr(reasonRestarted),
		Failure:          &Failure{Reason: reasonRestarted, Origin: "runtime", Message: message},
		RecordsAttempted: s.attempted, RecordsAccepted: s.accepted, RecordsFlushed: s.accepted,
		RecordsPermanentlyRejected: s.rejected, RecordsUnresolvedRetryable: open, State: cursors{},
		CheckpointSummary: Checkpoints{
			Mode: checkpointMode, CommitStatus: status, StateStreamsStaged: s.staged, StateStreamsWithheld: []string{},
			RecordsAttempted: s.attempted, RecordsAccepted: s.accepted, RecordsFlushed: s.accepted,
			RecordsPermanentlyRejected: s.rejected, RecordsUnresolvedRetryable: open,
		},
		KnownGaps: gaps.shown(), DetailGaps: []GapNote{}, TriggerKind: rec.TriggerKind,
	}})
}

// rebuilt is what a timeline tells of a run that was cut off.
type rebuilt struct {
	attempted, accepted, rejected int64
	staged                        int
	persist                       bool
	node                          string
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
