package timeline

import (
	"encoding/json"

	"github.com/sluicehost/sluice/store"
)

// SnapshotOfRow shows a run that is over without its log: from the row, which
// outlives it. next is the sequence after the last event that is kept, 0
// for none. It has no states of nodes.
func SnapshotOfRow(row store.Run, a About, next uint64) Snapshot {
	s, r := base(row, a), membersOf(row.Result)
	var c counts
	c.final(r)
	if n, ok := r.object("usage").number("wall_ms"); ok {
		c.DurationMs = &n
	}
	s.NodeStates, s.Variables, s.Channels, s.Metrics = map[string]NodeState{}, map[string]any{}, map[string]any{}, c.metrics()
	s.Sluice.Result, s.Sluice.Outcome, s.Sluice.TerminalReason = row.Status, r.text("outcome"), r.text("terminal_reason")
	s.Sluice.Checkpoints, s.Sluice.KnownGaps = r.raw("checkpoint_summary"), r.raw("known_gaps")
	s.Sluice.PauseRequested, s.Sluice.CancelRequested, s.Sluice.HeldUp = false, false, ""
	s.Status = RowStatus(row)
	if next > 0 && !row.Pruned {
		s.Sluice.LastSequence = ptr(next - 1)
	}
	if row.FinishedAt != nil {
		s.CompletedAt = store.Time(*row.FinishedAt)
	}
	if s.Status == Failed {
		s.Error = &Error{Code: s.Sluice.TerminalReason, Message: r.object("failure").text("message"), Details: detailsOf(r)}
	}
	return s
}

// detailsOf is error.details as far as a result value has it.
func detailsOf(r members) json.RawMessage {
	failure, out := r.object("failure"), members{}
	for name, v := range map[string]string{"failure_origin": failure.text("origin"), "deadline": r.text("deadline"), "connector_error_code": r.object("connector_error").text("code")} {
		out.fill(name, v)
	}
	if v := failure.text("subtype"); v != "" {
		out["violation"] = json.RawMessage(`{"subtype":` + string(quoted(v)) + `}`)
	}
	if len(out) == 0 {
		return nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return raw
}

// RowStatus is the status of a run as far as its row tells: exact once it is
// over, pending or running before.
func RowStatus(row store.Run) Status {
	switch row.Status {
	case "succeeded":
		return Completed
	case "failed":
		return Failed
	case "cancelled":
		r := membersOf(row.Result)
		if r.text("terminal_reason") == "connector_reported_cancelled" && r.text("cancel_cause") == "" { // of an older host
			return Failed
		}
		return Cancelled
	}
	if row.Phase == "preparing" {
		return Pending
	}
	return Running
}
