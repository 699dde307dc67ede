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
func (r *run) stalls(now time.Time) {
	err := store.Stalled(r.deps.Store)
	if (err != nil) == (r.stall != nil) {
		return
	}
	r.clocks.stall(now, err != nil)
	if err == nil {
		r.stall = nil
		r.tellStall("")
		if said := r.saidStall; said != nil && !r.ending {
			r.saidStall = nil
			r.submit(&store.Commit{Events: []store.Event{r.assistanceEnd(said.open(), "resolved", "", "")}}, nil)
		}
		r.sendNext()
		return
	}
	r.stall = &stall{message: abi.Cut("Waiting for disk space: "+err.Error()+". The run goes on by itself when there is room.", 500)}
	r.tellStall(r.stall.message)
	if r.guest != nil && r.exit == nil && r.ready() {
		r.showStall()
	}
}

func (r *run) tellStall(message string) {
	r.control.change(func(l *Live) { l.Stalled = message })
	if r.deps.Stalls != nil {
		r.deps.Stalls(message)
	}
}

// showStall is the event that says it. It overtakes what is not with the store
// yet: records may wait there for as long as the stall lasts.
func (r *run) showStall() {
	r.stall.shown, r.saidStall = hexID("asst_", 8), r.stall
	m := r.stall.open().Message
	c := &store.Commit{Events: []store.Event{r.event("run.assistance_requested", "started", data{
		"assistance_request_id": m.ID, "message": m.Message, "progress_posture": m.ProgressPosture, "owner_action": m.OwnerAction,
		"response_obligation": m.ResponseObligation, "sensitivity": m.Sensitivity, "stream": nil, "attachments": []abi.Attachment{},
	})}}
	r.unsent = append([]*pendingCommit{r.pend(c, nil)}, r.unsent...)
	r.sendNext()
}

// open is a stall as an assistance of the host's own.
func (s *stall) open() abi.OpenAssistance {
	return abi.OpenAssistance{ID: s.shown, Message: &abi.AssistanceMessage{
		ID: s.shown, Message: s.message, ProgressPosture: abi.PostureWaitingRetry, OwnerAction: abi.ActionNone,
		ResponseObligation: abi.ObligationNone, Sensitivity: "none",
	}}
}

// closeStall ends the assistance of a stall that is not over when the run is.
func (r *run) closeStall() []store.Event {
	if r.saidStall == nil {
		return nil
	}
	return []store.Event{r.assistanceEnd(r.saidStall.open(), "cancelled", "", "")}
}

// errLeft is why the end of a run is not written: whoever asked for it, or its
// host, goes, and the disk is full.
var errLeft = errors.New("the disk is full")

// leaves reports whether a stalled run is given up: nobody is there to wait for
// the disk any more.
func (r *run) leaves() bool {
	return r.stall != nil && (r.asker != nil && r.asker.Err() != nil || r.control.stopping.Load())
}

// forsake gives up what is not durable. What the store has already may become
// durable later, which repeats nothing: no cursor covers it.
func (r *run) forsake() {
	left := append(r.pending, r.unsent...)
	if r.sending != nil {
		left = append(left, r.sending)
	}
	r.pending, r.unsent, r.sending, r.pendingBytes = nil, nil, nil, 0
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
			r.stalls(now)
			switch {
			case r.leaves():
				return errLeft
			case r.stall != nil:
				until = now.Add(within)
			case now.After(until):
				cancel()
			}
		}
	}
}
