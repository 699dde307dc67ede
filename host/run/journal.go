package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// data is the payload of an event besides source.
type data map[string]any

// set adds a member that is not empty.
func (d data) set(name, value string) {
	if value != "" {
		d[name] = value
	}
}

// maxEventData bounds one event's data.
const maxEventData = 64 * abi.KiB

// source is the member that says which connector an event is of.
func source(connector store.ConnectorID) map[string]any {
	return map[string]any{"kind": "connector", "id": connector}
}

// encode writes the payload. Members that would take it over the bound become
// {truncated, bytes, sha256}, largest first.
func (d data) encode() (json.RawMessage, error) {
	members := make(map[string]json.RawMessage, len(d)+1)
	total := 2
	for name, v := range d {
		b, err := marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode event member %s: %w", name, err)
		}
		members[name] = b
		total += len(b) + len(name) + 4
	}
	for total > maxEventData {
		largest := ""
		for name, b := range members {
			if largest == "" || len(b) > len(members[largest]) {
				largest = name
			}
		}
		short := truncated(members[largest])
		total -= len(members[largest]) - len(short)
		if len(members[largest]) <= len(short) {
			break
		}
		members[largest] = short
	}
	return marshal(members)
}

// truncated stands for a value that is too large to show.
func truncated(raw []byte) json.RawMessage {
	sum := sha256.Sum256(raw)
	return json.RawMessage(fmt.Sprintf(`{"truncated":true,"bytes":%d,"sha256":"%s"}`, len(raw), hex.EncodeToString(sum[:])))
}

// shownCursor is R179. A cursor with a protected value, which only an owner who
// switched the canary off lets pass, is not shown either.
func (j *journal) shownCursor(c json.RawMessage) json.RawMessage {
	if len(c) > 4*abi.KiB || j.canary.Armed() && j.canary.Find(c) {
		return truncated(c)
	}
	return c
}

// journal remembers the last event a run submitted, for violations.
type journal struct {
	*parts
	last     store.Event     // submitted, maybe not durable
	at       time.Time       // of the newest event
	sequence uint64          // of the next event
	spanned  context.Context // of the run's span, or its node's
	node     span            // of the guest
}

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

// note remembers the last event.
func (j *journal) note(e store.Event) { j.last = e }

// latest is the last event that was submitted.
func (j *journal) latest() store.Event { return j.last }

// refused takes back the numbers of events that did not become durable.
func (j *journal) refused(events []store.Event) { j.sequence -= uint64(len(events)) }

// begin starts the span of the run, and returns it.
func (j *journal) begin() (whole span) {
	j.spanned = j.ctx
	j.spanned, whole = j.traced("run")
	return whole
}

// beginNode starts the span of the guest, which all others are below of from now on.
func (j *journal) beginNode(name string, attempt int) {
	j.spanned, j.node = j.traced("node."+name, "node_id", j.plan.manifest.Node(), "node_type", name, "node_attempt", attempt)
}

func (j *journal) endNode(err error) { j.node.end(err) }

// event builds an event of this run. The runtime is its actor.
func (j *journal) event(typ, status string, d data) store.Event {
	d["source"] = source(j.plan.Connector.ID)
	return j.bare(typ, status, d)
}

// bare is an event whose data is closed: it has no source.
func (j *journal) bare(typ, status string, d data) store.Event {
	raw, err := d.encode()
	if err != nil {
		raw = json.RawMessage(`{}`)
		j.outcome.latch(hostFault("encode "+typ, err))
	}
	e := store.Event{
		ID: store.EventID(hexID("evt_", 8)), Type: typ, Status: status, OccurredAt: time.Now(),
		RunID: j.id, TraceID: j.trace, ConnectorID: j.plan.Connector.ID, ConnectionID: j.plan.Connection.ID,
		GrantID: j.plan.grant, ActorType: "runtime", ActorID: "sluice", Data: raw,
	}
	if !ofRun(typ) {
		e.NodeID = j.plan.manifest.Node()
	}
	return e
}

// ofRun reports whether an event is about the run as a whole. All others are of
// the node that works.
func ofRun(typ string) bool {
	switch typ {
	case "run.started", "run.paused", "run.resumed", "run.cancel_requested", "run.completed", "run.failed", "run.cancelled":
		return true
	}
	return strings.HasPrefix(typ, "lease.")
}

// streamEvent is an event about one stream.
func (j *journal) streamEvent(typ, status, stream string, d data) store.Event {
	e := j.event(typ, status, d)
	e.Stream = store.Stream(stream)
	return e
}

// nodeEvent is an event of the connector's one node.
func (j *journal) nodeEvent(typ, status string, d data) store.Event {
	d["nodeId"] = j.plan.manifest.Node()
	return j.event(typ, status, d)
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

func (cs *commits) submitNow(c *store.Commit, done func(store.Ack, error)) {
	if n := len(c.Events); n > 0 {
		cs.journal.note(c.Events[n-1])
	}
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

// inOrder keeps the times of a run's events from decreasing: events of one
// commit are not made in the order they stand in, and a clock may be set back.
func (j *journal) inOrder(events []store.Event) {
	for i := range events {
		at := events[i].OccurredAt.Round(0) // the wall clock: that is what is stored
		if at.Before(j.at) {
			at = j.at
		}
		events[i].OccurredAt, j.at = at, at
	}
}

// latchStore is latch for a failure of the store. One that comes while the guest
// has its grace ends nothing: the cancel came first.
func (o *outcome) latchStore(c *cause) {
	if o.cancel == nil {
		o.latch(c)
	}
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

// announce shows durable events to whoever watches the run.
func (j *journal) announce(events []store.Event, ack store.Ack) {
	if j.deps.Watch == nil {
		return
	}
	for i, e := range events {
		e.Sequence, e.RecordedAt = ack.FirstSequence+uint64(i), ack.RecordedAt
		if i > 0 {
			e.CausationID = events[0].ID
		}
		j.deps.Watch(e)
	}
}

// barrier waits until everything submitted is durable or has failed, and
// reports whether all is well. A disk may take its time: budgets, the lease and
// requests to end the run are looked at meanwhile, and whatever ends it ends the
// wait. The caller then leaves its call alone.
func (r *run) barrier() bool {
	for r.commits.underway() > 0 && r.outcome.ready() {
		select {
		case <-r.commits.sent():
			r.commits.took()
		case <-r.commits.head():
			r.commits.settle()
		case c := <-r.cancels:
			r.cancelRequested(c)
		case <-r.interrupted:
			r.interrupt()
		case now := <-r.ticks:
			if r.guest != nil {
				r.clocks.sample(now, r.guest.Usage().CPU)
			}
			r.inTime(now)
		}
	}
	return r.outcome.ready()
}

// settled waits for everything submitted, whatever its fate. While the disk is
// full that may be long: a request to end the run is heard then, and the run is
// given up when nobody is there any more.
func (r *run) settled() {
	for r.commits.underway() > 0 {
		var cancels <-chan CancelRequest
		var interrupted <-chan struct{}
		if r.commits.stalled() {
			cancels, interrupted = r.cancels, r.interrupted
		}
		select {
		case <-r.commits.sent():
			r.commits.took()
		case <-r.commits.head():
			r.commits.settle()
		case c := <-cancels:
			r.cancelRequested(c)
		case <-interrupted:
			r.interrupt()
		case now := <-r.ticks:
			r.commits.stalls(now)
			if r.leaves() {
				r.commits.forsake()
			}
		}
	}
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
