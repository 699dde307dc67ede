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

// terminalRetry bounds how long a terminal event is tried to be written.
const terminalRetry = 30 * time.Second

// perStream reports whether the store commits cursors one by one.
func (r *run) perStream() bool {
	s, ok := r.deps.Store.(interface{ PerStream() bool })
	return ok && s.PerStream()
}

// terminate writes what a run leaves behind: eligible cursors, closed gaps, the
// terminal event. A store that refuses a cursor makes the run a failed
// one, told by a second commit.
func (r *run) terminate(end ending) *Result {
	r.ending = true
	dropped := r.dropBuffers()
	if c := r.grantFault(); c != nil && end.commit {
		end = ending{status: abi.Failed, event: "run.failed", cause: c}
	}
	eligible, lead := r.checkpoints(end, dropped)
	lead = append(lead, r.refusedRecords()...)
	if r.perStream() {
		for len(eligible) > 0 {
			if err := r.advance(lead, eligible[0]); err != nil {
				return r.refused(lead, eligible[0], err)
			}
			eligible, lead = eligible[1:], nil
		}
	}
	gaps := r.gaps.clone()
	commit, result := r.final(end, lead, eligible)
	err := r.write(commit)
	if err == nil {
		return result
	}
	var sink *store.SinkError
	if (len(eligible) > 0 || errors.As(err, &sink)) && !gone(err) {
		r.gaps, r.states.committed = gaps, r.states.committed[:len(r.states.committed)-len(eligible)]
		r.reopen(commit.Gaps)
		return r.refused(lead, refusedStream(err, eligible), err)
	}
	slog.Error("terminal event not written", "run", r.id, "error", err)
	return r.unwritten(result, err)
}

// checkpoints decides which staged cursors may commit.
func (r *run) checkpoints(end ending, dropped map[string]bool) (eligible []string, events []store.Event) {
	if !end.commit {
		return nil, nil
	}
	short, events := r.shortfalls()
	eligible = r.eligible(end.status == abi.Failed, short, dropped)
	if !r.plan.persist {
		return nil, events
	}
	for _, s := range r.states.order {
		if !slices.Contains(eligible, s) {
			r.states.withheld = append(r.states.withheld, s)
		}
	}
	return eligible, events
}

func (r *run) state(stream string) store.State {
	return store.State{Stream: store.Stream(stream), Cursor: r.states.cursors[stream], CommittedAt: time.Now(), RunID: r.id}
}

// advanced is run.state_advanced for the next committed stream.
func (r *run) advanced(stream string) store.Event {
	return r.streamEvent("run.state_advanced", abi.Succeeded, stream, data{
		"cursor": r.shownCursor(r.states.cursors[stream]), "checkpoint_mode": checkpointMode,
		"grant_id": nullable(string(r.plan.grant)), "state_streams_committed": len(r.states.committed) + 1,
	})
}

// advance commits one cursor behind lead, in a store that cannot commit them
// together.
func (r *run) advance(lead []store.Event, stream string) error {
	events := append(slices.Clone(lead), r.advanced(stream))
	err := r.write(&store.Commit{Advance: []store.State{r.state(stream)}, Events: events})
	if err == nil {
		r.states.committed = append(r.states.committed, stream)
	}
	return err
}

// gapsAtOnce is how many gaps the terminal commit closes. A run may close
// 50,000: the others go ahead of it, which is harmless, for a gap closes on the
// strength of records that are durable already.
const gapsAtOnce = 200

// final builds the terminal commit and the result that goes with it.
func (r *run) final(end ending, lead []store.Event, eligible []string) (*store.Commit, *Result) {
	c := &store.Commit{End: true, Events: slices.Concat(lead, r.closeAssistances(end.status, end.reason(), end.timedOut()))}
	if r.cancel != nil && r.cancel.event != nil {
		c.Events = append(c.Events, *r.cancel.event)
	}
	for _, s := range eligible {
		c.Advance = append(c.Advance, r.state(s))
		c.Events = append(c.Events, r.advanced(s))
		r.states.committed = append(r.states.committed, s)
	}
	gaps, events := r.closedGaps(end.status == abi.Succeeded)
	for len(gaps) > gapsAtOnce {
		r.submit(&store.Commit{Gaps: gaps[:gapsAtOnce], Events: events[:gapsAtOnce]}, nil)
		gaps, events = gaps[gapsAtOnce:], events[gapsAtOnce:]
	}
	c.Gaps, c.Events = gaps, append(c.Events, events...)
	if end.status == abi.Succeeded {
		g := r.plan.Connection.Grant
		c.ConsumeGrant = g != nil && g.AccessMode == "single_use"
	}
	r.closingGaps(end)
	now := time.Now()
	result := r.result(end, now)
	if r.guest != nil {
		c.Events = append(c.Events, r.nodeEnd(end, result, now))
	}
	last := r.terminalEvent(end, result, now)
	c.Events = append(c.Events, last)
	r.rec.Status, r.rec.Phase, r.rec.FinishedAt = end.status, "", &last.OccurredAt // the log and the record say the same
	if raw, err := marshal(result); err == nil {
		r.rec.Result = raw
	}
	c.Run = ptr(r.rec)
	return c, result
}

// refused is R93: stream X could not be committed, so the run failed. Without a
// stream it is R5: the sink refused the success itself.
func (r *run) refused(lead []store.Event, stream string, err error) *Result {
	c := storeCause(err)
	if stream != "" {
		c.message = abi.Cut("The state of "+stream+" could not be committed: "+c.message, 500)
		lead = append(lead, r.streamEvent("run.state_commit_failed", abi.Failed, stream, data{
			"cursor": r.shownCursor(r.states.cursors[stream]), "checkpoint_mode": checkpointMode, "grant_id": nullable(string(r.plan.grant)),
			"error_message": redact.Gap(err.Error(), 200), "state_streams_staged": len(r.states.order),
			"state_streams_committed": len(r.states.committed),
		}))
	}
	end := ending{status: abi.Failed, cause: c, event: "run.failed"}
	commit, result := r.final(end, lead, nil)
	if err := r.write(commit); err != nil {
		slog.Error("terminal event not written", "run", r.id, "error", err)
		return r.unwritten(result, err)
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

// gone says that the run may write nothing more.
func gone(err error) bool {
	return errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrRunTerminal) || errors.Is(err, store.ErrClosed) || errors.Is(err, errLeft)
}

// reopen takes back gaps whose closing was not committed.
func (r *run) reopen(gaps []store.DetailGap) {
	for _, g := range gaps {
		if kept := r.details.byID[g.ID]; kept != nil {
			kept.Status = gapPending
		}
	}
}

// unwritten is a result whose terminal event is not durable: never a success.
// The next start of the host closes the run.
func (r *run) unwritten(result *Result, err error) *Result {
	if result.Status == abi.Succeeded {
		result.Status, result.TerminalReason = abi.Failed, ptr("runtime_error")
		result.CheckpointSummary.CommitStatus = CommitNone
		result.CheckpointSummary.StateStreamsCommitted = 0
	}
	result.Outcome = result.Status
	r.lost = err
	result.Failure = &Failure{Reason: *result.TerminalReason, Origin: "storage",
		Message: abi.Cut("The end of the run could not be written: "+err.Error(), 500)}
	return result
}

// write makes a commit durable, with back-off while the store is unwell.
func (r *run) write(c *store.Commit) error {
	c.Lease, c.Grant = r.lease, r.plan.grant
	span := r.appended(c.Events)
	r.inOrder(c.Events)
	var ack store.Ack
	err := r.patiently(terminalRetry, func(ctx context.Context) (err error) {
		ack, err = persist(ctx, r.deps.Store, c)
		return err
	})
	span.end(err)
	if err != nil {
		r.sequence -= uint64(len(c.Events))
		return err
	}
	r.announce(c.Events, ack)
	return nil
}

func persist(ctx context.Context, s store.Store, c *store.Commit) (ack store.Ack, err error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		var receipt *store.Receipt
		if receipt, err = s.Submit(ctx, c); err == nil {
			ack, err = receipt.Result()
		}
		var state *store.StateError
		var sink *store.SinkError
		if err == nil || gone(err) || errors.As(err, &state) || errors.As(err, &sink) || errors.Is(err, store.ErrReadOnly) {
			return ack, err
		}
		select {
		case <-ctx.Done():
			return ack, err
		case <-time.After(wait):
		}
	}
}
