package run

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// report builds the result and the terminal event from the state of the other parts.
type report struct{ *parts }

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

// closingGaps adds the gaps that result from the end of the run itself.
func (rp *report) closingGaps(end ending) {
	if end.status == abi.Failed {
		g := KnownGap{Kind: gapRunFailed, Reason: end.cause.reason, Severity: "actionable"}
		if e := rp.connectorError(end); e != nil {
			g.Message = abi.Cut(e.Message, maxGapText)
			g.RecoveryHint = hintOf(e.RecoveryHint, e.Retryable, g.Reason, e.Message)
		} else {
			g.RecoveryHint = hintOf(nil, nil, g.Reason)
		}
		g.RecoveryHint = rp.bindings.withoutRetry(g.RecoveryHint)
		rp.gaps.add(g)
	}
	if status := rp.states.commitStatus(end.status); status == CommitNone || status == CommitPartial {
		rp.gaps.add(KnownGap{Kind: gapCheckpoint, Reason: status, Severity: "actionable",
			RecoveryHint: Hint{abi.RetryByRuntime, true}})
	}
}

// connectorError returns the error of the connector's DONE, redacted, nil if it did not decide the end.
func (rp *report) connectorError(end ending) *abi.DoneError {
	if rp.outcome.proposal() == nil || rp.outcome.proposal().Error == nil || end.cause == nil ||
		end.cause.violation != nil {
		return nil
	}
	e := *rp.outcome.proposal().Error
	e.Message = abi.Cut(redact.Log(rp.canary.Text(abi.Clean(e.Message))), 500)
	if rp.bindings.secretMayBeSpent() {
		e.Retryable = new(false)
		if e.RecoveryHint != nil {
			h := rp.bindings.withoutRetry(Hint{e.RecoveryHint.Action, false})
			e.RecoveryHint = &abi.RecoveryHint{Action: h.Action, Retryable: new(false)}
		}
	}
	return &e
}

// noWalls is the isolation in the result of a run that never had a guest.
var noWalls = sandbox.Isolation{Level: "process", Namespaces: []string{}, Seccomp: "off", UID: "shared"}

// result builds the result of the run.
func (rp *report) result(end ending, now time.Time) *Result {
	n := rp.records.counts()
	out := &Result{
		RunID: rp.id, TraceID: rp.trace, ConnectorID: rp.plan.Connector.ID, ConnectionID: rp.plan.Connection.ID,
		ConnectorDigest: rp.plan.Connector.Digest, Status: end.status,
		RecordsEmitted: max(rp.proto.Records(), n.attempted), // a replay that ended early has not seen all
		RecordCounts:   countsOf(n.attempted, n.accepted, n.rejected),
		State:          rp.states.staged(), KnownGaps: rp.gaps.all(), DetailGaps: rp.gaps.gapNotes(),
		ConnectorError: rp.connectorError(end), TriggerKind: rp.plan.Trigger, AutomationMode: rp.plan.AutomationMode,
		Usage: rp.usage(now), Memory: rp.control.memorySoFar(), HostBound: rp.loop.boundBy(),
	}
	if out.KnownGaps == nil {
		out.KnownGaps = []KnownGap{}
	}
	staged, committed := rp.states.counts()
	out.CheckpointSummary = Checkpoints{
		Mode: checkpointMode, CommitStatus: rp.states.commitStatus(end.status),
		StateStreamsStaged: staged, StateStreamsCommitted: committed,
		StateStreamsWithheld: append([]string{}, rp.states.withheldStreams()...), BufferedRecordsDropped: n.dropped,
		RecordCounts: out.RecordCounts,
	}
	out.Isolation = noWalls
	if rp.guest != nil {
		out.CollectionFacts = rp.facts()
		out.Isolation = rp.guest.Isolation()
	}
	out.Outcome = rp.outcomeOf(end.status, out.CollectionFacts)
	if rp.outcome.workerExit() != nil {
		rp.describeExit(out, end)
	}
	if rp.outcome.proposal() != nil && !rp.countAgrees() {
		out.ReportedRecordsEmitted = rp.reported()
	}
	if end.cause != nil {
		rp.describeCause(out, end)
	}
	return out
}

func (rp *report) countAgrees() bool {
	n := rp.outcome.proposal().RecordsEmitted
	return n != nil && *n == rp.proto.Records()
}

func (rp *report) reported() json.RawMessage {
	if s := rp.outcome.proposal().ReportedRecords; s != "" && len(s) < 40 {
		return json.RawMessage(s)
	}
	return json.RawMessage("null")
}

// describeExit adds exit code, trap and, for a guest that exited without DONE, the end of its log.
func (rp *report) describeExit(out *Result, end ending) {
	switch rp.outcome.workerExit().Kind {
	case sandbox.ExitExited:
		out.ExitCode = new(int(rp.outcome.workerExit().Code))
	case sandbox.ExitTrapped:
		out.Trap = &Trap{rp.outcome.workerExit().TrapKind}
	}
	switch end.reason() {
	case "connector_exit_without_done", "connector_trapped", "connector_stdin_closed":
		out.ConnectorDiagnostics = rp.output.crashReport()
	}
	if end.reason() == "connector_stdin_closed" {
		out.StdinClosedAtPhase = rp.calls.undelivered()
	}
}

func (rp *report) describeCause(out *Result, end ending) {
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

func (rp *report) usage(now time.Time) Usage {
	owner, rate := rp.clocks.waited()
	u := Usage{Wall: rp.loop.age().Milliseconds(), OwnerWait: owner.Milliseconds(), RateWait: rate.Milliseconds(),
		Paused: rp.clocks.pausedBy(now).Milliseconds()}
	if rp.outcome.workerExit() != nil {
		e := rp.outcome.workerExit().Usage
		u.CPU, u.PeakMemory, u.GuestMemory = e.CPU.Milliseconds(), int64(e.PeakMemoryBytes), int64(e.GuestMemoryBytes)
		u.HostCalls, u.BytesIn = int64(e.HostCalls), int64(e.BytesIn)
	}
	return u
}

// nodeEnd builds the openwop event of the run's end.
func (rp *report) nodeEnd(end ending, out *Result, now time.Time) store.Event {
	duration := rp.loop.age().Milliseconds()
	switch {
	case end.status == abi.Succeeded:
		streams := map[string]any{}
		for _, s := range out.CollectionFacts.Streams {
			streams[s.Stream] = map[string]any{"records": s.Collected, "checkpoint": s.Checkpoint}
		}
		return rp.journal.nodeEvent("node.completed", abi.Succeeded,
			data{"outputs": map[string]any{"streams": streams, "outcome": out.Outcome}, "durationMs": duration})
	case end.event == "run.cancelled":
		return rp.journal.nodeEvent("node.cancelled", abi.Cancelled, data{"reason": end.reason()})
	}
	return rp.journal.nodeEvent("node.failed", end.status,
		data{"error": rp.openwopError(end), "attempts": rp.loop.row().Attempt})
}

func (rp *report) openwopError(end ending) map[string]any {
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
	if e := rp.connectorError(end); e != nil {
		if e.Code != "" {
			details["connector_error_code"] = e.Code
		}
		if c.reason == "connector_reported_failed" {
			message = e.Message
		}
	}
	return map[string]any{"code": c.reason, "message": message, "details": details, "retryable": rp.retryable()}
}

// retryable returns whether the closing gap allows a retry.
func (rp *report) retryable() bool {
	for _, g := range slices.Backward(rp.gaps.all()) {
		if g.Kind == gapRunFailed {
			return g.RecoveryHint.Retryable
		}
	}
	return false
}

// terminalEvent builds the last event of the run.
func (rp *report) terminalEvent(end ending, out *Result, now time.Time) store.Event {
	n := rp.records.counts()
	staged, committed := rp.states.counts()
	d := data{
		"outcome": out.Outcome, "records_emitted": out.RecordsEmitted, "buffered_records_dropped": n.dropped,
		"checkpoint_mode": checkpointMode, "checkpoint_commit_status": out.CheckpointSummary.CommitStatus,
		"state_streams_staged": staged, "state_streams_committed": committed,
		"persist_state": rp.plan.persist, "grant_id": nullable(string(rp.plan.grant)), "trigger_kind": rp.plan.Trigger,
		"durationMs": rp.loop.age().Milliseconds(), "usage": out.Usage,
	}
	out.RecordCounts.in(d)
	if withheld := rp.states.withheldStreams(); len(withheld) > 0 {
		d["state_streams_withheld"] = withheld
	}
	if out.CollectionFacts != nil {
		d["collection_facts"], d["isolation"] = out.CollectionFacts, out.Isolation
	}
	if rp.gaps.any() {
		d["known_gaps"], d["known_gaps_summary"] = rp.gaps.shown(), rp.gaps.summary()
	}
	if len(out.DetailGaps) > 0 {
		ids := []string{}
		for _, g := range out.DetailGaps[:min(len(out.DetailGaps), 20)] {
			ids = append(ids, g.GapID)
		}
		d["detail_gaps"] = map[string]any{"pending_recorded": rp.gaps.recorded(), "gap_ids": ids}
	}
	if rp.canary.Hits > 0 {
		d["secret_redactions"] = rp.canary.Hits
	}
	d.set("open_interaction_id", rp.questions.openID())
	d.set("automation_mode", rp.plan.AutomationMode)
	if end.cause != nil {
		rp.causeData(d, end, out)
	}
	return rp.journal.event(end.event, end.status, d)
}

// causeData adds the cause of the end to the terminal event.
func (rp *report) causeData(d data, end ending, out *Result) {
	c := end.cause
	d["reason"] = c.reason
	d.set("failure_origin", c.origin)
	d.set("failure_code", c.code)
	d.set("deadline", c.deadline)
	d.set("cancel_cause", c.cancelCause)
	d.set("stdin_closed_at_phase", out.StdinClosedAtPhase)
	if end.event == "run.failed" {
		d.set("failure_message", c.message)
		d["error"] = rp.openwopError(end)
		if rp.guest != nil {
			d["failedNodeId"] = rp.plan.manifest.Node()
		}
	} else {
		d["cancelledBy"] = rp.outcome.endedBy()
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

func (rp *report) facts() *Facts {
	f := &Facts{ReferenceOnly: true, SchemaVersion: 1, Streams: []StreamFact{}}
	for _, b := range rp.records.streams() {
		s := StreamFact{Stream: b.stream, Collected: b.emitted, Rejected: int64(b.refused.count),
			PendingDetailGaps: rp.gaps.pending(b.stream), Checkpoint: rp.states.checkpointFact(b.stream)}
		s.Considered, s.Covered = rp.gaps.covered(b.stream)
		if g := rp.gaps.skipOf(b.stream); g != nil {
			s.Skipped = &SkippedFact{Reason: g.Reason, RecoveryAction: g.RecoveryHint.Action, Continuation: g.Continuation}
			if g.Continuation != nil {
				s.CollectionScope = g.Continuation.Boundary
			}
		}
		f.Streams = append(f.Streams, s)
	}
	return f
}

// The outcomes of a run. In contrast to its status, the outcome distinguishes a success with complete data from
// one that lacks some.
const (
	OutcomeComplete  = "complete"
	OutcomePartial   = "partial"
	OutcomeFailed    = abi.Failed
	OutcomeCancelled = abi.Cancelled
)

// outcomeOf returns partial for a success that lacks data: a known gap that is more than a note, a pending
// detail, or a record that was not stored.
func (rp *report) outcomeOf(status string, facts *Facts) string {
	n := rp.records.counts()
	switch {
	case status != abi.Succeeded:
		return status
	case rp.gaps.incomplete(), n.rejected > 0, n.attempted > n.accepted:
		return OutcomePartial
	}
	if facts != nil && slices.ContainsFunc(facts.Streams, StreamFact.short) {
		return OutcomePartial
	}
	return OutcomeComplete
}

// short reports whether the connector considered more items than it covered.
func (f StreamFact) short() bool {
	return f.Considered != nil && f.Covered != nil && *f.Covered < *f.Considered
}

// err returns why a run failed, for its span. The text is a code.
func (r *Result) err() error {
	if r.Status == abi.Succeeded || r.TerminalReason == nil {
		return nil
	}
	return errors.New(*r.TerminalReason)
}
