package run

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// commits are those of a run that are not settled. They reach the store one after the
// other, and become durable in that order.
type commits struct {
	*parts
	unsent  []*pendingCommit // not handed to the store
	sending *pendingCommit   // on its way to the store; nil for none
	pending []*pendingCommit // taken by the store
	bytes   int              // of the batches in these

	collecting context.Context // ends when the run is to end: records that the store did not take by then are lost
	collected  context.CancelFunc

	stall *stall // nil while the store takes what comes
	said  *stall // whose assistance is open
}

// A pendingCommit is on its way to the disk. done runs once its fate is known.
type pendingCommit struct {
	commit  *store.Commit
	taken   chan struct{} // closed once the store took it, or refused: then what follows is set
	receipt *store.Receipt
	refused error
	span    span
	bytes   int // of its batches
	done    func(store.Ack, error)
}

func (cs *commits) pend(c *store.Commit, done func(store.Ack, error)) *pendingCommit {
	if done == nil {
		done = func(store.Ack, error) {}
	}
	p := &pendingCommit{commit: c, taken: make(chan struct{}), done: done}
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

// submit queues a commit behind all earlier ones. Waiting progress goes first,
// so that it stays in order.
func (cs *commits) submit(c *store.Commit, done func(store.Ack, error)) {
	if cs.output.holdsProgress() {
		cs.output.flushProgress(time.Now(), true)
	}
	cs.submitNow(c, done)
}

// record submits events alone.
func (cs *commits) record(events ...store.Event) { cs.submit(&store.Commit{Events: events}, nil) }

func (cs *commits) submitNow(c *store.Commit, done func(store.Ack, error)) {
	if n := len(c.Events); n > 0 {
		cs.journal.note(c.Events[n-1])
	}
	if cs.history.replaying() && cs.history.made(c) {
		if done != nil {
			done(store.Ack{}, nil)
		}
		return
	}
	c.Journal = append(c.Journal, cs.history.take(c)...)
	cs.history.counts(len(c.Events))
	cs.unsent = append(cs.unsent, cs.pend(c, done))
	cs.sendNext()
}

// sendNext hands the store the next commit. A store whose disk is full keeps
// whoever submits records waiting, so nobody of the run waits for that: records
// stay here meanwhile, and the loop goes on.
func (cs *commits) sendNext() {
	if cs.sending == nil && len(cs.unsent) > 0 && len(cs.unsent[0].commit.Batches) > 0 {
		cs.stalls(time.Now()) // which may send what says so
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
	p.span = cs.journal.appended(c.Events)
	go func() {
		p.receipt, p.refused = cs.deps.Store.Submit(ctx, c)
		close(p.taken)
	}()
}

// begin has the store take records until stopRecords.
func (cs *commits) begin() { cs.collecting, cs.collected = context.WithCancel(cs.ctx) }

// stopRecords gives up records that the store has not taken.
func (cs *commits) stopRecords() { cs.collected() }

// full reports whether the guest has to wait.
func (cs *commits) full() bool { return cs.underway() >= window || cs.bytes >= windowBytes }

// stalled reports whether the store waits for its disk.
func (cs *commits) stalled() bool { return cs.stall != nil }

// adopt takes a commit that the store has.
func (cs *commits) adopt(p *pendingCommit) { cs.pending = append(cs.pending, p) }

// sent is closed when the store took the commit that was handed to it; nil when
// there is none.
func (cs *commits) sent() <-chan struct{} {
	if cs.sending == nil {
		return nil
	}
	return cs.sending.taken
}

// took is what follows.
func (cs *commits) took() {
	p := cs.sending
	cs.sending = nil
	if p.refused != nil {
		cs.fail(p, p.refused)
	} else {
		cs.pending = append(cs.pending, p)
	}
	cs.sendNext()
}

// underway counts the commits that are not settled.
func (cs *commits) underway() int {
	n := len(cs.pending) + len(cs.unsent)
	if cs.sending != nil {
		n++
	}
	return n
}

// head is closed when the oldest pending commit has settled; nil when there is
// none.
func (cs *commits) head() <-chan struct{} {
	if len(cs.pending) == 0 {
		return nil
	}
	return cs.pending[0].receipt.Done()
}

// settle takes the oldest pending commit's outcome.
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

// fail is the end of a commit that the store refused.
func (cs *commits) fail(p *pendingCommit, err error) {
	cs.bytes -= p.bytes
	p.span.end(err)
	p.done(store.Ack{}, err)
	cs.journal.refused(p.commit.Events)
	cs.outcome.latchStore(storeCause(err))
}

// storeCause maps a store's refusal to a reason.
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
		if said := cs.said; said != nil && !cs.terminal.writing() {
			cs.said = nil
			cs.submit(&store.Commit{Events: []store.Event{cs.assistances.assistanceEnd(said.open(), "resolved", "", "")}, Journal: cs.history.goesOn()}, nil)
		}
		cs.sendNext()
		return
	}
	cs.stands(&stall{message: abi.Cut("Waiting for disk space: "+err.Error()+". The run goes on by itself when there is room.", 500)})
	if cs.guest != nil && cs.outcome.left() == nil && cs.outcome.ready() {
		cs.showStall()
	}
}

// stands says of the run that it waits for the disk.
func (cs *commits) stands(s *stall) {
	cs.stall = s
	cs.control.change(func(l *Live) { l.Stalled = s.message })
}

// stood goes on with a stall that was told of, and maybe is over since, before the run was resumed.
func (cs *commits) stood(s *stall) {
	cs.said = s
	cs.clocks.stall(time.Now(), true)
	cs.stands(s)
}

// showStall is the event that says it. It overtakes what is not with the store
// yet: records may wait there for as long as the stall lasts.
func (cs *commits) showStall() {
	cs.stall.shown, cs.said = hexID("asst_", 8), cs.stall
	c := &store.Commit{Events: []store.Event{cs.assistances.hostAssistance(cs.stall.open())}, Journal: cs.history.overtaken(cs.stall)}
	cs.unsent = append([]*pendingCommit{cs.pend(c, nil)}, cs.unsent...)
	cs.sendNext()
}

// open is a stall as an assistance of the host's own.
func (s *stall) open() abi.OpenAssistance { return waitOf(s.shown, s.message) }

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
