package run

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A stall is a time in which the store settles no commit, or takes no records,
// for its disk is full. The guest waits meanwhile, which costs it no
// budget, and the run goes on by itself.
type stall struct {
	message string
	shown   string // id of the assistance that says so, "" for none
}

// stalls looks whether the store keeps the run waiting, and says when that
// begins and when it is over.
func (cs *commits) stalls(now time.Time) {
	err := store.Stalled(cs.deps.Store)
	if (err != nil) == (cs.stall != nil) {
		return
	}
	cs.clocks.stall(now, err != nil)
	if err == nil {
		cs.stall = nil
		cs.tellStall("")
		if said := cs.said; said != nil && !cs.terminal.writing() {
			cs.said = nil
			cs.submit(&store.Commit{Events: []store.Event{cs.assistances.assistanceEnd(said.open(), "resolved", "", "")}}, nil)
		}
		cs.sendNext()
		return
	}
	cs.stall = &stall{message: abi.Cut("Waiting for disk space: "+err.Error()+". The run goes on by itself when there is room.", 500)}
	cs.tellStall(cs.stall.message)
	if cs.guest != nil && cs.outcome.left() == nil && cs.outcome.ready() {
		cs.showStall()
	}
}

func (cs *commits) tellStall(message string) {
	cs.control.change(func(l *Live) { l.Stalled = message })
	if cs.deps.Stalls != nil {
		cs.deps.Stalls(message)
	}
}

// showStall is the event that says it. It overtakes what is not with the store
// yet: records may wait there for as long as the stall lasts.
func (cs *commits) showStall() {
	cs.stall.shown, cs.said = hexID("asst_", 8), cs.stall
	m := cs.stall.open().Message
	c := &store.Commit{Events: []store.Event{cs.journal.event("run.assistance_requested", "started", data{
		"assistance_request_id": m.ID, "message": m.Message, "progress_posture": m.ProgressPosture, "owner_action": m.OwnerAction,
		"response_obligation": m.ResponseObligation, "sensitivity": m.Sensitivity, "stream": nil, "attachments": []abi.Attachment{},
	})}}
	cs.unsent = append([]*pendingCommit{cs.pend(c, nil)}, cs.unsent...)
	cs.sendNext()
}

// open is a stall as an assistance of the host's own.
func (s *stall) open() abi.OpenAssistance {
	return abi.OpenAssistance{ID: s.shown, Message: &abi.AssistanceMessage{
		ID: s.shown, Message: s.message, ProgressPosture: abi.PostureWaitingRetry, OwnerAction: abi.ActionNone,
		ResponseObligation: abi.ObligationNone, Sensitivity: "none",
	}}
}

// closeStall ends the assistance of a stall that is not over when the run is.
func (cs *commits) closeStall() []store.Event {
	if cs.said == nil {
		return nil
	}
	return []store.Event{cs.assistances.assistanceEnd(cs.said.open(), "cancelled", "", "")}
}

// errLeft is why the end of a run is not written: whoever asked for it, or its
// host, goes, and the disk is full.
var errLeft = errors.New("the disk is full")

// leaves reports whether a stalled run is given up: nobody is there to wait for
// the disk any more.
func (r *run) leaves() bool {
	return r.commits.stalled() && (r.asker != nil && r.asker.Err() != nil || r.control.stopped())
}

// forsake gives up what is not durable. What the store has already may become
// durable later, which repeats nothing: no cursor covers it.
func (cs *commits) forsake() {
	left := append(cs.pending, cs.unsent...)
	if cs.sending != nil {
		left = append(left, cs.sending)
	}
	cs.pending, cs.unsent, cs.sending, cs.bytes = nil, nil, nil, 0
	for _, p := range left {
		p.done(store.Ack{}, errLeft)
		p.span.end(errLeft)
	}
}

// patiently does what ends with a commit and may take as long as the disk is
// full. It returns errLeft when the run is given up meanwhile, and ends the
// context of f once the store, which is not full, does not take the commit.
func (r *run) patiently(within time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticks := r.ticks
	if ticks == nil { // the run was never begun
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		ticks = ticker.C
	}
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	until := time.Now().Add(within)
	for {
		select {
		case err := <-done:
			return err
		case now := <-ticks:
			r.commits.stalls(now)
			switch {
			case r.leaves():
				return errLeft
			case r.commits.stalled():
				until = now.Add(within)
			case now.After(until):
				cancel()
			}
		}
	}
}
