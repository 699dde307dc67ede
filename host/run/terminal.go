package run

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// terminalRetry limits how long writing the terminal event is retried.
const terminalRetry = 30 * time.Second

// terminal makes the end of a run durable.
type terminal struct {
	*parts
	ending   bool  // the terminal event is being written
	writeErr error // why the terminal event is not durable
}

// writing reports whether the terminal event is being written.
func (te *terminal) writing() bool { return te.ending }

// failure returns why the terminal event is not durable, nil if it is.
func (te *terminal) failure() error { return te.writeErr }

// perStream reports whether the store commits cursors one by one.
func (te *terminal) perStream() bool {
	s, ok := te.deps.Store.(interface{ PerStream() bool })
	return ok && s.PerStream()
}

// terminate writes the end of a run: eligible cursors, closed gaps and the terminal event. If the store refuses
// a cursor, the run fails, which a second commit records.
func (te *terminal) terminate(end ending) *Result {
	te.ending = true
	dropped := te.records.dropBuffers()
	if c := te.plan.grantFault(store.Now(te.deps.Store)); c != nil && end.commit {
		end = ending{status: abi.Failed, event: "run.failed", cause: c}
	}
	eligible, lead := te.checkpoints(end, dropped)
	lead = append(lead, te.records.refusedRecords()...)
	if te.perStream() {
		for len(eligible) > 0 {
			if err := te.advance(lead, eligible[0]); err != nil {
				return te.refusedCommit(lead, eligible[0], err)
			}
			eligible, lead = eligible[1:], nil
		}
	}
	gaps := te.gaps.clone()
	commit, result := te.final(end, lead, eligible)
	err := te.write(commit)
	if err == nil {
		return result
	}
	var sink *store.SinkError
	if (len(eligible) > 0 || errors.As(err, &sink)) && !mayNotWrite(err) {
		te.gaps.restore(gaps)
		te.states.undoCommits(len(eligible))
		te.gaps.reopen(commit.Gaps)
		return te.refusedCommit(lead, refusedStream(err, eligible), err)
	}
	slog.Error("terminal event not written", "run", te.id, "error", err)
	return te.unwritten(result, err)
}

// checkpoints determines which staged cursors may be committed.
func (te *terminal) checkpoints(end ending, dropped map[string]bool) (eligible []string, events []store.Event) {
	if !end.commit {
		return nil, nil
	}
	short, events := te.states.shortfalls()
	eligible = te.states.eligible(end.status == abi.Failed, short, dropped)
	if !te.plan.persist {
		return nil, events
	}
	te.states.withhold(eligible)
	return eligible, events
}

// advance commits one cursor after the lead events, for a store that cannot commit cursors together.
func (te *terminal) advance(lead []store.Event, stream string) error {
	events := append(slices.Clone(lead), te.states.advancedEvent(stream))
	err := te.write(&store.Commit{Advance: []store.State{te.states.state(stream)}, Events: events})
	if err == nil {
		te.states.commit(stream)
	}
	return err
}

// gapsAtOnce is how many gaps the terminal commit closes. A run may close 50,000. The others are closed before
// it, which is harmless since the records that close them are durable.
const gapsAtOnce = 200

// final builds the terminal commit and the result.
func (te *terminal) final(end ending, lead []store.Event, eligible []string) (*store.Commit, *Result) {
	c := &store.Commit{End: true,
		Events: slices.Concat(lead, te.assistances.closeAssistances(end.status, end.reason(), end.timedOut()))}
	c.Events = append(c.Events, te.outcome.unrecordedCancel()...)
	for _, s := range eligible {
		c.Advance = append(c.Advance, te.states.state(s))
		c.Events = append(c.Events, te.states.advancedEvent(s))
		te.states.commit(s)
	}
	gaps, events := te.gaps.closedGaps(end.status == abi.Succeeded)
	for len(gaps) > gapsAtOnce {
		te.commits.submit(&store.Commit{Gaps: gaps[:gapsAtOnce], Events: events[:gapsAtOnce]}, nil)
		gaps, events = gaps[gapsAtOnce:], events[gapsAtOnce:]
	}
	c.Gaps, c.Events = gaps, append(c.Events, events...)
	if end.status == abi.Succeeded {
		g := te.plan.Connection.Grant
		c.ConsumeGrant = g != nil && g.AccessMode == "single_use"
	}
	te.report.closingGaps(end)
	now := time.Now()
	result := te.report.result(end, now)
	if te.guest != nil {
		c.Events = append(c.Events, te.report.nodeEnd(end, result, now))
	}
	last := te.report.terminalEvent(end, result, now)
	c.Events = append(c.Events, last)
	raw, err := redact.Marshal(result)
	if err != nil {
		slog.Error("encode result", "run", te.id, "error", err)
	}
	c.Run = te.loop.setEnd(end.status, last.OccurredAt, raw)
	return c, result
}

// refusedCommit ends the run as failed after the store refused the cursor of a stream. Without a stream, the sink
// refused the success itself.
func (te *terminal) refusedCommit(lead []store.Event, stream string, err error) *Result {
	c := storeCause(err)
	if stream != "" {
		staged, committed := te.states.counts()
		c.message = abi.Cut("The state of "+stream+" could not be committed: "+c.message, 500)
		lead = append(lead, te.journal.streamEvent("run.state_commit_failed", abi.Failed, stream, data{
			"cursor": te.journal.shownCursor(te.states.cursor(stream)), "checkpoint_mode": checkpointMode,
			"grant_id": nullable(string(te.plan.grant)), "error_message": redact.Gap(err.Error(), 200),
			"state_streams_staged": staged, "state_streams_committed": committed,
		}))
	}
	end := ending{status: abi.Failed, cause: c, event: "run.failed"}
	commit, result := te.final(end, lead, nil)
	if err := te.write(commit); err != nil {
		slog.Error("terminal event not written", "run", te.id, "error", err)
		return te.unwritten(result, err)
	}
	return result
}

func refusedStream(err error, eligible []string) string {
	var s *store.StateError
	switch {
	case errors.As(err, &s):
		return string(s.Stream)
	case len(eligible) > 0:
		return eligible[0]
	}
	return ""
}

// mayNotWrite reports whether the run may write nothing more.
func mayNotWrite(err error) bool {
	return errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrRunTerminal) || errors.Is(err, store.ErrStopped) ||
		errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrClosed) || errors.Is(err, errAbandoned)
}

// unwritten returns the result of a run whose terminal event is not durable, which is never a success. The next
// start of the host closes the run.
func (te *terminal) unwritten(result *Result, err error) *Result {
	if result.Status == abi.Succeeded {
		result.Status, result.TerminalReason = abi.Failed, new("runtime_error")
		result.CheckpointSummary.CommitStatus = CommitNone
		result.CheckpointSummary.StateStreamsCommitted = 0
	}
	result.Outcome = result.Status
	te.writeErr = err
	result.Failure = &Failure{Reason: *result.TerminalReason, Origin: "storage",
		Message: abi.Cut("The end of the run could not be written: "+err.Error(), 500)}
	return result
}

// write makes a commit durable, and retries with back-off after temporary errors of the store.
func (te *terminal) write(c *store.Commit) error {
	te.lease.sign(c)
	span := te.journal.commitSpan(c.Events)
	te.journal.inOrder(c.Events)
	var ack store.Ack
	err := te.loop.waitWhileStalled(terminalRetry, func(ctx context.Context) (err error) {
		ack, err = persist(ctx, te.deps.Store, c)
		return err
	})
	span.end(err)
	if err != nil {
		te.journal.undo(c.Events)
		return err
	}
	te.journal.announce(c.Events, ack)
	return nil
}

func persist(ctx context.Context, s store.Leases, c *store.Commit) (ack store.Ack, err error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		var receipt *store.Receipt
		if receipt, err = s.Submit(ctx, c); err == nil {
			ack, err = receipt.Result()
		}
		var state *store.StateError
		var sink *store.SinkError
		if err == nil || mayNotWrite(err) || errors.As(err, &state) || errors.As(err, &sink) ||
			errors.Is(err, store.ErrNotFound) {
			return ack, err
		}
		select {
		case <-ctx.Done():
			return ack, err
		case <-time.After(wait):
		}
	}
}

// memoryWall returns the memory limit of the worker.
func (te *terminal) memoryWall() int64 {
	if g, ok := te.guest.(interface{ MemoryWall() uint64 }); ok {
		return int64(g.MemoryWall())
	}
	return int64(te.outcome.workerExit().Usage.PeakMemoryBytes)
}

// breach records that a limit with an openwop name was exceeded.
func (te *terminal) breach(c *cause) {
	if c == nil || te.outcome.workerExit() == nil {
		return
	}
	var d data
	switch {
	case c.reason == "memory_limit_exceeded":
		d = data{"kind": "wasm-memory", "limit": te.memoryWall(),
			"observed": int64(te.outcome.workerExit().Usage.PeakMemoryBytes)}
	case c.deadline == "compute":
		d = data{"kind": "wasm-execution-time", "limit": te.plan.Budgets.Compute.Milliseconds(),
			"observed": te.clocks.computeTime().Milliseconds()}
	default:
		return
	}
	defer te.outcome.saveCause()()
	te.commits.record(te.journal.nodeEvent("cap.breached", "failed", d))
	te.loop.settled()
}

// finish ends a run whose guest is gone or was never launched.
func (r *run) finish() *Result {
	r.clocks.end(time.Now())
	r.bindings.abort() // requests that the guest did not wait for
	r.calls.lastLine()
	r.questions.closeUnanswered()
	r.output.endText()
	if r.guest != nil {
		r.output.endLog()
	}
	r.secrets.sealedUses()
	r.output.flushProgress(time.Now(), true) // so that the last message is not lost
	r.settled()
	r.records.keepEmitted()
	if r.outcome.ready() && r.outcome.exitedCleanly() {
		r.outcome.checkExit()
	}
	if !r.outcome.over() && r.outcome.exitedCleanly() && r.outcome.proposal().Status == abi.Succeeded {
		r.calls.checkRecording(true)
	}
	r.bindings.closeSpeakers()
	r.stop()
	end := r.outcome.decide()
	r.terminal.breach(end.cause)
	r.control.phase("committing")
	result := r.terminal.terminate(end)
	r.journal.endNode(result.err())
	r.control.setFinalStatus(statusOf(result))
	r.bindings.close()
	r.files.discardUnheld()
	return result
}

// statusOf returns the API's name for the end of a run.
func statusOf(r *Result) string {
	switch {
	case r.Status == abi.Succeeded:
		return "completed"
	case r.CancelCause != "":
		return "cancelled"
	}
	return "failed"
}
