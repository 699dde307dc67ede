package run

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// commits are the unsettled commits of a run. They are submitted to the store one after the other, and become
// durable in that order.
type commits struct {
	*parts
	unsent  []*pendingCommit // not submitted to the store
	sending *pendingCommit   // being submitted; nil for none
	pending []*pendingCommit // accepted by the store, not durable
	bytes   int              // in all of these

	collecting     context.Context // ends when the run must end; drops records not accepted by then
	stopCollecting context.CancelFunc

	stall         *stall // nil while the store accepts commits
	reportedStall *stall // the stall whose assistance is open
}

// A pendingCommit is a commit that is not durable yet. done is called once its outcome is known.
type pendingCommit struct {
	commit   *store.Commit
	accepted chan struct{} // closed when the store accepted or refused it, which sets receipt or refused
	receipt  *store.Receipt
	refused  error
	span     span
	bytes    int // memory of its contents
	done     func(store.Ack, error)
}

func (cs *commits) newPending(c *store.Commit, done func(store.Ack, error)) *pendingCommit {
	if done == nil {
		done = func(store.Ack, error) {}
	}
	p := &pendingCommit{commit: c, accepted: make(chan struct{}), done: done}
	for _, b := range c.Batches {
		p.bytes += b.Size()
	}
	for _, f := range c.Files {
		p.bytes += f.Memory()
	}
	for _, j := range c.Journal {
		p.bytes += len(j.Data)
	}
	cs.bytes += p.bytes
	return p
}

// submit queues a commit after all earlier ones. Progress that is held back is submitted first, to keep the
// order.
func (cs *commits) submit(c *store.Commit, done func(store.Ack, error)) {
	if cs.output.holdsProgress() {
		cs.output.flushProgress(time.Now(), true)
	}
	cs.submitNow(c, done)
}

// record submits a commit of events only.
func (cs *commits) record(events ...store.Event) { cs.submit(&store.Commit{Events: events}, nil) }

func (cs *commits) submitNow(c *store.Commit, done func(store.Ack, error)) {
	if n := len(c.Events); n > 0 {
		cs.journal.setLast(c.Events[n-1])
	}
	if cs.history.replaying() && cs.history.matchCommit(c) {
		if done != nil {
			done(store.Ack{}, nil)
		}
		return
	}
	c.Journal = append(c.Journal, cs.history.takePieces(c)...)
	cs.history.addEvents(len(c.Events))
	cs.unsent = append(cs.unsent, cs.newPending(c, done))
	cs.sendNext()
}

// sendNext submits the next commit to the store in a goroutine. While the store's disk is full, commits with
// records stay in the queue, so that the loop does not wait for them.
func (cs *commits) sendNext() {
	if cs.sending == nil && len(cs.unsent) > 0 && len(cs.unsent[0].commit.Batches) > 0 {
		cs.checkStall(time.Now()) // may submit the event of a stall
	}
	if cs.sending != nil || len(cs.unsent) == 0 {
		return
	}
	p := cs.unsent[0]
	ctx := cs.ctx
	if len(p.commit.Batches) > 0 {
		if cs.stall != nil && cs.outcome.ready() {
			return
		}
		ctx = cs.collecting
	}
	cs.unsent, cs.sending = cs.unsent[1:], p
	c := p.commit
	cs.lease.sign(c)
	cs.journal.inOrder(c.Events)
	p.span = cs.journal.commitSpan(c.Events)
	go func() {
		p.receipt, p.refused = cs.deps.Store.Submit(ctx, c)
		close(p.accepted)
	}()
}

// begin allows submitting records until stopRecords.
func (cs *commits) begin() { cs.collecting, cs.stopCollecting = context.WithCancel(cs.ctx) }

// stopRecords gives up on records that the store has not accepted.
func (cs *commits) stopRecords() { cs.stopCollecting() }

// full reports whether the guest has to wait for the store.
func (cs *commits) full() bool { return cs.unsettled() >= window || cs.bytes >= windowBytes }

// stalled reports whether the store waits for disk space.
func (cs *commits) stalled() bool { return cs.stall != nil }

// addPending adds a commit that the store has accepted.
func (cs *commits) addPending(p *pendingCommit) { cs.pending = append(cs.pending, p) }

// acceptedSignal returns a channel that is closed when the store has accepted or refused the submitted commit; nil if
// there is none.
func (cs *commits) acceptedSignal() <-chan struct{} {
	if cs.sending == nil {
		return nil
	}
	return cs.sending.accepted
}

// handleAccepted handles the outcome of that submission and submits the next commit.
func (cs *commits) handleAccepted() {
	p := cs.sending
	cs.sending = nil
	if p.refused != nil {
		cs.fail(p, p.refused)
	} else {
		cs.pending = append(cs.pending, p)
	}
	cs.sendNext()
}

// unsettled returns the number of unsettled commits.
func (cs *commits) unsettled() int {
	n := len(cs.pending) + len(cs.unsent)
	if cs.sending != nil {
		n++
	}
	return n
}

// oldestDone returns a channel that is closed when the oldest pending commit is settled; nil if there is none.
func (cs *commits) oldestDone() <-chan struct{} {
	if len(cs.pending) == 0 {
		return nil
	}
	return cs.pending[0].receipt.Done()
}

// settle handles the outcome of the oldest pending commit.
func (cs *commits) settle() {
	p := cs.pending[0]
	cs.pending = cs.pending[1:]
	ack, err := p.receipt.Result()
	if err != nil {
		cs.fail(p, err)
		return
	}
	cs.bytes -= p.bytes
	p.span.end(nil)
	p.done(ack, nil)
	cs.journal.announce(p.commit.Events, ack)
}

// fail handles a commit that the store refused.
func (cs *commits) fail(p *pendingCommit, err error) {
	cs.bytes -= p.bytes
	p.span.end(err)
	p.done(store.Ack{}, err)
	cs.journal.undo(p.commit.Events)
	cs.outcome.latchStore(storeCause(err))
}

// storeCause returns the cause of an end for an error of the store.
func storeCause(err error) *cause {
	c := &cause{reason: "runtime_error", origin: "storage", message: abi.Cut(err.Error(), 500)}
	var sink *store.SinkError
	switch {
	case errors.As(err, &sink):
		c.reason = sink.Code
	case errors.Is(err, store.ErrNoSpace):
		c.message += "; free some disk space and run again, nothing stored is lost"
	}
	return c
}

// A stall is a time in which the store settles no commit or accepts no records because its disk is full. The
// guest waits meanwhile without using up its budgets, and the run continues by itself.
type stall struct {
	message string
	shown   string // id of the assistance that shows it, "" for none
}

// checkStall checks whether the store is stalled, and reports the begin and the end of a stall.
func (cs *commits) checkStall(now time.Time) {
	if cs.history.replaying() {
		return
	}
	err := store.Stalled(cs.deps.Store)
	if (err != nil) == (cs.stall != nil) {
		return
	}
	cs.clocks.stall(now, err != nil)
	if err == nil {
		cs.stall = nil
		cs.control.change(func(l *Live) { l.Stalled = "" })
		if reported := cs.reportedStall; reported != nil && !cs.terminal.writing() {
			cs.reportedStall = nil
			cs.submit(&store.Commit{Events: []store.Event{cs.assistances.assistanceEnd(reported.assistance(), "resolved", "",
				"")}, Journal: cs.history.stallEndPiece()}, nil)
		}
		cs.sendNext()
		return
	}
	cs.setStall(&stall{message: abi.Cut("Waiting for disk space: "+err.Error()+
		". The run goes on by itself when there is room.", 500)})
	if cs.guest != nil && cs.outcome.workerExit() == nil && cs.outcome.ready() {
		cs.showStall()
	}
}

// setStall sets the current stall.
func (cs *commits) setStall(s *stall) {
	cs.stall = s
	cs.control.change(func(l *Live) { l.Stalled = s.message })
}

// resumeStall continues a stall that was reported before the run was resumed. It may be over meanwhile.
func (cs *commits) resumeStall(s *stall) {
	cs.reportedStall = s
	cs.clocks.stall(time.Now(), true)
	cs.setStall(s)
}

// showStall submits the event that reports a stall. It goes ahead of queued commits, since those with records
// wait for the end of the stall.
func (cs *commits) showStall() {
	cs.stall.shown, cs.reportedStall = hexID("asst_", 8), cs.stall
	c := &store.Commit{Events: []store.Event{cs.assistances.hostAssistance(cs.stall.assistance())},
		Journal: cs.history.stallPiece(cs.stall)}
	cs.unsent = append([]*pendingCommit{cs.newPending(c, nil)}, cs.unsent...)
	cs.sendNext()
}

// assistance returns a stall as an assistance of the host.
func (s *stall) assistance() abi.OpenAssistance { return hostWait(s.shown, s.message) }

// closeStall returns the event that ends the assistance of a stall when the run ends during it.
func (cs *commits) closeStall() []store.Event {
	if cs.reportedStall == nil {
		return nil
	}
	return []store.Event{cs.assistances.assistanceEnd(cs.reportedStall.assistance(), "cancelled", "", "")}
}

// errAbandoned is the error of commits that are given up because the disk is full and the run or its host has to end.
var errAbandoned = errors.New("the disk is full")

// abandon gives up all commits that are not durable. Some may still become durable, which is harmless since no
// cursor covers them.
func (cs *commits) abandon() {
	for _, p := range cs.unsent {
		for _, f := range p.commit.Files {
			f.Discard()
		}
	}
	left := append(cs.pending, cs.unsent...)
	if cs.sending != nil {
		left = append(left, cs.sending)
	}
	cs.pending, cs.unsent, cs.sending, cs.bytes = nil, nil, nil, 0
	for _, p := range left {
		p.done(store.Ack{}, errAbandoned)
		p.span.end(errAbandoned)
	}
}
