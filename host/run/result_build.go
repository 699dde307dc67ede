package run

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

func (e ending) reason() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.reason
}

func (e ending) timedOut() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.timedOut
}

// closingGaps appends the gaps of R107.
func (r *run) closingGaps(end ending) {
	if end.status == abi.Failed {
		g := KnownGap{Kind: gapRunFailed, Reason: end.cause.reason, Severity: "actionable"}
		if e := r.connectorError(end); e != nil {
			g.Message = abi.Cut(e.Message, maxGapText)
			g.RecoveryHint = hintOf(e.RecoveryHint, e.Retryable, g.Reason, e.Message)
		} else {
			g.RecoveryHint = hintOf(nil, nil, g.Reason)
		}
		g.RecoveryHint = r.browser.unrepeated(g.RecoveryHint)
		r.gaps.add(g)
	}
	if status := r.commitStatus(end.status); status == CommitNone || status == CommitPartial {
		r.gaps.add(KnownGap{Kind: gapCheckpoint, Reason: status, Severity: "actionable", RecoveryHint: Hint{abi.RetryByRuntime, true}})
	}
}

// connectorError is the connector's own error, when it decided the end.
func (r *run) connectorError(end ending) *abi.DoneError {
	if r.done == nil || r.done.Error == nil || end.cause == nil || end.cause.violation != nil {
		return nil
	}
	e := *r.done.Error
	e.Message = abi.Cut(redact.Log(r.canary.Text(abi.Clean(e.Message))), 500)
	if r.browser.spent { // B41
		e.Retryable = ptr(false)
		if e.RecoveryHint != nil {
			h := r.browser.unrepeated(Hint{e.RecoveryHint.Action, false})
			e.RecoveryHint = &abi.RecoveryHint{Action: h.Action, Retryable: ptr(false)}
		}
	}
	return &e
}

// noWalls is the isolation of a run that never had a guest.
var noWalls = sandbox.Isolation{Level: "process", Namespaces: []string{}, Seccomp: "off", UID: "shared"}

// result builds the one result value of the run.
func (r *run) result(end ending, now time.Time) *Result {
	n := r.records.perRun
	out := &Result{
		RunID: r.id, TraceID: r.trace, ConnectorID: r.plan.Connector.ID, ConnectionID: r.plan.Connection.ID,
		ConnectorDigest: r.plan.Connector.Digest, Status: end.status,
		RecordsEmitted: r.proto.Records(), RecordsAttempted: n.attempted, RecordsAccepted: n.accepted, RecordsFlushed: n.accepted,
		RecordsPermanentlyRejected: n.rejected, RecordsUnresolvedRetryable: n.attempted - n.accepted - n.rejected,
		State: r.states.cursors, KnownGaps: r.gaps.gaps, DetailGaps: r.gapNotes(), ConnectorError: r.connectorError(end),
		TriggerKind: r.plan.Trigger, AutomationMode: r.plan.AutomationMode, Usage: r.usage(now),
	}
	if out.KnownGaps == nil {
		out.KnownGaps = []KnownGap{}
	}
	out.CheckpointSummary = Checkpoints{
		Mode: checkpointMode, CommitStatus: r.commitStatus(end.status),
		StateStreamsStaged: len(r.states.order), StateStreamsCommitted: len(r.states.committed),
		StateStreamsWithheld: append([]string{}, r.states.withheld...), BufferedRecordsDropped: n.dropped,
		RecordsAttempted: n.attempted, RecordsAccepted: n.accepted, RecordsFlushed: n.accepted,
		RecordsPermanentlyRejected: n.rejected, RecordsUnresolvedRetryable: out.RecordsUnresolvedRetryable,
	}
	out.Isolation = noWalls
	if r.guest != nil {
		out.CollectionFacts = r.facts()
		out.Isolation = r.guest.Isolation()
	}
	out.Outcome = r.outcomeOf(end.status, out.CollectionFacts)
	if r.exit != nil {
		r.describeExit(out, end)
	}
	if r.done != nil && !r.countAgrees() {
		out.ReportedRecordsEmitted = r.reported()
	}
	if end.cause != nil {
		r.describeCause(out, end)
	}
	return out
}

func (r *run) countAgrees() bool {
	n := r.done.RecordsEmitted
	return n != nil && *n == r.proto.Records()
}

func (r *run) reported() json.RawMessage {
	if s := r.done.ReportedRecords; s != "" && len(s) < 40 {
		return json.RawMessage(s)
	}
	return json.RawMessage("null")
}

// describeExit adds code, trap and, for a guest that left without DONE, the end
// of its log.
func (r *run) describeExit(out *Result, end ending) {
	switch r.exit.Kind {
	case sandbox.ExitExited:
		out.ExitCode = ptr(int(r.exit.Code))
	case sandbox.ExitTrapped:
		out.Trap = &Trap{r.exit.TrapKind}
	}
	switch end.reason() {
	case "connector_exit_without_done", "connector_trapped", "connector_stdin_closed":
		out.ConnectorDiagnostics = r.crashReport()
	}
	if end.reason() == "connector_stdin_closed" {
		out.StdinClosedAtPhase = r.stdio.undelivered()
	}
}

func (r *run) describeCause(out *Result, end ending) {
	c := end.cause
	out.TerminalReason = &c.reason
	out.Violation, out.Deadline, out.CancelCause = c.violation, c.deadline, c.cancelCause
	if end.status != abi.Failed {
		return
	}
	out.Failure = &Failure{Reason: c.reason, Origin: c.origin, Message: c.message}
	if c.code != "" {
		out.Failure.Subtype = c.code
	}
	if v := c.violation; v != nil {
		out.Failure.Subtype, out.Failure.Expected, out.Failure.Received = string(v.Subtype), v.Expected, v.Received
	}
	if out.ConnectorError != nil && c.reason == "connector_reported_failed" {
		out.Failure.Message = out.ConnectorError.Message
	}
}

func (r *run) usage(now time.Time) Usage {
	u := Usage{Wall: now.Sub(r.rec.StartedAt).Milliseconds(), OwnerWait: r.clocks.owner.Milliseconds(), RateWait: r.clocks.rate.Milliseconds(),
		Paused: r.clocks.pausedBy(now).Milliseconds()}
	if r.exit != nil {
		e := r.exit.Usage
		u.CPU, u.PeakMemory, u.GuestMemory = e.CPU.Milliseconds(), int64(e.PeakMemoryBytes), int64(e.GuestMemoryBytes)
		u.HostCalls, u.BytesIn = int64(e.HostCalls), int64(e.BytesIn)
	}
	return u
}

const maxGapNotes = 1000

func (r *run) gapNotes() []GapNote {
	out := []GapNote{}
	for _, g := range r.details.touched {
		if len(out) == maxGapNotes {
			break
		}
		out = append(out, GapNote{g.ID, string(g.Stream), string(g.ParentStream), g.Reason, g.Status, g.AttemptCount})
	}
	return out
}

// nodeEnd is the openwop view of the run's end.
func (r *run) nodeEnd(end ending, out *Result, now time.Time) store.Event {
	duration := now.Sub(r.rec.StartedAt).Milliseconds()
	switch {
	case end.status == abi.Succeeded:
		streams := map[string]any{}
		for _, s := range out.CollectionFacts.Streams {
			streams[s.Stream] = map[string]any{"records": s.Collected, "checkpoint": s.Checkpoint}
		}
		return r.nodeEvent("node.completed", abi.Succeeded, data{"outputs": map[string]any{"streams": streams, "outcome": out.Outcome}, "durationMs": duration})
	case end.event == "run.cancelled":
		return r.nodeEvent("node.cancelled", abi.Cancelled, data{"reason": end.reason()})
	}
	return r.nodeEvent("node.failed", end.status, data{"error": r.openwopError(end), "attempts": r.rec.Attempt})
}

func (r *run) openwopError(end ending) map[string]any {
	c := end.cause
	details := map[string]any{}
	for name, v := range map[string]string{"failure_origin": c.origin, "failure_code": c.code, "deadline": c.deadline} {
		if v != "" {
			details[name] = v
		}
	}
	if c.violation != nil {
		details["violation"] = map[string]any{"subtype": c.violation.Subtype}
	}
	message := c.message
	if e := r.connectorError(end); e != nil {
		if e.Code != "" {
			details["connector_error_code"] = e.Code
		}
		if c.reason == "connector_reported_failed" {
			message = e.Message
		}
	}
	return map[string]any{"code": c.reason, "message": message, "details": details, "retryable": r.retryable()}
}

// retryable is what the closing gap says of the run.
func (r *run) retryable() bool {
	for _, g := range slices.Backward(r.gaps.gaps) {
		if g.Kind == gapRunFailed {
			return g.RecoveryHint.Retryable
		}
	}
	return false
}

// terminalEvent is the last event of the run, with the block of §13.3.
func (r *run) terminalEvent(end ending, out *Result, now time.Time) store.Event {
	n := r.records.perRun
	d := data{
		"outcome": out.Outcome, "records_emitted": out.RecordsEmitted, "records_attempted": n.attempted, "records_accepted": n.accepted,
		"records_flushed": n.accepted, "records_permanently_rejected": n.rejected,
		"records_unresolved_retryable": out.RecordsUnresolvedRetryable, "buffered_records_dropped": n.dropped,
		"checkpoint_mode": checkpointMode, "checkpoint_commit_status": out.CheckpointSummary.CommitStatus,
		"state_streams_staged": len(r.states.order), "state_streams_committed": len(r.states.committed),
		"persist_state": r.plan.persist, "grant_id": nullable(string(r.plan.grant)), "trigger_kind": r.plan.Trigger,
		"durationMs": now.Sub(r.rec.StartedAt).Milliseconds(), "usage": out.Usage,
	}
	if len(r.states.withheld) > 0 {
		d["state_streams_withheld"] = r.states.withheld
	}
	if out.CollectionFacts != nil {
		d["collection_facts"], d["isolation"] = out.CollectionFacts, out.Isolation
	}
	if r.gaps.count > 0 {
		d["known_gaps"], d["known_gaps_summary"] = r.gaps.shown(), r.gaps.summary()
	}
	if len(out.DetailGaps) > 0 {
		ids := []string{}
		for _, g := range out.DetailGaps[:min(len(out.DetailGaps), 20)] {
			ids = append(ids, g.GapID)
		}
		d["detail_gaps"] = map[string]any{"pending_recorded": len(r.details.touched), "gap_ids": ids}
	}
	if r.canary.Hits > 0 {
		d["secret_redactions"] = r.canary.Hits
	}
	if r.asking != nil {
		d["open_interaction_id"] = r.asking.id
	}
	d.set("automation_mode", r.plan.AutomationMode)
	if end.cause != nil {
		r.causeData(d, end, out)
	}
	return r.event(end.event, end.status, d)
}

// causeData is the part of the terminal block that says why.
func (r *run) causeData(d data, end ending, out *Result) {
	c := end.cause
	d["reason"] = c.reason
	d.set("failure_origin", c.origin)
	d.set("failure_code", c.code)
	d.set("deadline", c.deadline)
	d.set("cancel_cause", c.cancelCause)
	d.set("stdin_closed_at_phase", out.StdinClosedAtPhase)
	if end.event == "run.failed" {
		d.set("failure_message", c.message)
		d["error"] = r.openwopError(end)
		if r.guest != nil {
			d["failedNodeId"] = r.plan.manifest.Node()
		}
	} else {
		d["cancelledBy"] = r.cancel.by()
	}
	if c.violation != nil {
		d["violation"] = c.violation
	}
	if c.ingest != nil {
		d["ingest_failure"] = c.ingest
	}
	if out.ExitCode != nil {
		d["exit_code"] = *out.ExitCode
	}
	if out.Trap != nil {
		d["trap"] = out.Trap
	}
	if out.ReportedRecordsEmitted != nil {
		d["reported_records_emitted"] = out.ReportedRecordsEmitted
	}
	if out.ConnectorDiagnostics != nil {
		d["connector_diagnostics"] = out.ConnectorDiagnostics
	}
	if e := out.ConnectorError; e != nil {
		d["connector_error_message"] = e.Message
		d.set("connector_error_code", e.Code)
		if e.Retryable != nil {
			d["connector_error_retryable"] = *e.Retryable
		}
	}
}
