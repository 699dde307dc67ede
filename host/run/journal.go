package run

import (
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
func (r *run) shownCursor(c json.RawMessage) json.RawMessage {
	if len(c) > 4*abi.KiB || r.canary.Armed() && r.canary.Find(c) {
		return truncated(c)
	}
	return c
}

// journal remembers the last event a run submitted, for violations.
type journal struct {
	last store.Event
	at   time.Time // of the newest event
}

// event builds an event of this run. The runtime is its actor.
func (r *run) event(typ, status string, d data) store.Event {
	d["source"] = source(r.plan.Connector.ID)
	return r.bare(typ, status, d)
}

// bare is an event whose data is closed: it has no source.
func (r *run) bare(typ, status string, d data) store.Event {
	raw, err := d.encode()
	if err != nil {
		raw = json.RawMessage(`{}`)
		r.latch(hostFault("encode "+typ, err))
	}
	e := store.Event{
		ID: store.EventID(hexID("evt_", 8)), Type: typ, Status: status, OccurredAt: time.Now(),
		RunID: r.id, TraceID: r.trace, ConnectorID: r.plan.Connector.ID, ConnectionID: r.plan.Connection.ID,
		GrantID: r.plan.grant, ActorType: "runtime", ActorID: "sluice", Data: raw,
	}
	if !ofRun(typ) {
		e.NodeID = r.plan.manifest.Node()
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
func (r *run) streamEvent(typ, status, stream string, d data) store.Event {
	e := r.event(typ, status, d)
	e.Stream = store.Stream(stream)
	return e
}

// nodeEvent is an event of the connector's one node.
func (r *run) nodeEvent(typ, status string, d data) store.Event {
	d["nodeId"] = r.plan.manifest.Node()
	return r.event(typ, status, d)
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

func (r *run) pend(c *store.Commit, done func(store.Ack, error)) *pendingCommit {
	if done == nil {
		done = func(store.Ack, error) {}
	}
	p := &pendingCommit{commit: c, taken: make(chan struct{}), done: done}
	for _, b := range c.Batches {
		p.bytes += b.Size()
	}
	r.pendingBytes += p.bytes
	return p
}

// submit queues a commit behind all earlier ones. Waiting progress goes first,
// so that it stays in order.
func (r *run) submit(c *store.Commit, done func(store.Ack, error)) {
	if len(r.progress.waiting) > 0 {
		r.flushProgress(time.Now(), true)
	}
	r.submitNow(c, done)
}

func (r *run) submitNow(c *store.Commit, done func(store.Ack, error)) {
	if n := len(c.Events); n > 0 {
		r.journal.last = c.Events[n-1]
	}
	r.unsent = append(r.unsent, r.pend(c, done))
	r.sendNext()
}

// sendNext hands the store the next commit. A store whose disk is full keeps
// whoever submits records waiting, so nobody of the run waits for that: records
// stay here meanwhile, and the loop goes on.
func (r *run) sendNext() {
	if r.sending == nil && len(r.unsent) > 0 && len(r.unsent[0].commit.Batches) > 0 {
		r.stalls(time.Now()) // which may send what says so
	}
	if r.sending != nil || len(r.unsent) == 0 {
		return
	}
	p := r.unsent[0]
	ctx := r.ctx
	if len(p.commit.Batches) > 0 {
		if r.stall != nil && r.ready() {
			return
		}
		ctx = r.collecting
	}
	r.unsent, r.sending = r.unsent[1:], p
	c := p.commit
	c.Lease, c.Grant = r.lease, r.plan.grant
	r.inOrder(c.Events)
	p.span = r.appended(c.Events)
	go func() {
		p.receipt, p.refused = r.deps.Store.Submit(ctx, c)
		close(p.taken)
	}()
}

// sent is closed when the store took the commit that was handed to it; nil when
// there is none.
func (r *run) sent() <-chan struct{} {
	if r.sending == nil {
		return nil
	}
	return r.sending.taken
}

// took is what follows.
func (r *run) took() {
	p := r.sending
	r.sending = nil
	if p.refused != nil {
		r.fail(p, p.refused)
	} else {
		r.pending = append(r.pending, p)
	}
	r.sendNext()
}

// underway counts the commits that are not settled.
func (r *run) underway() int {
	n := len(r.pending) + len(r.unsent)
	if r.sending != nil {
		n++
	}
	return n
}

// inOrder keeps the times of a run's events from decreasing: events of one
// commit are not made in the order they stand in, and a clock may be set back.
func (r *run) inOrder(events []store.Event) {
	for i := range events {
		at := events[i].OccurredAt.Round(0) // the wall clock: that is what is stored
		if at.Before(r.journal.at) {
			at = r.journal.at
		}
		events[i].OccurredAt, r.journal.at = at, at
	}
}

// latchStore is latch for a failure of the store. One that comes while the guest
// has its grace ends nothing: the cancel came first.
func (r *run) latchStore(c *cause) {
	if r.cancel == nil {
		r.latch(c)
	}
}

// head is closed when the oldest pending commit has settled; nil when there is
// none.
func (r *run) head() <-chan struct{} {
	if len(r.pending) == 0 {
		return nil
	}
	return r.pending[0].receipt.Done()
}

// settle takes the oldest pending commit's outcome.
func (r *run) settle() {
	p := r.pending[0]
	r.pending = r.pending[1:]
	ack, err := p.receipt.Result()
	if err != nil {
		r.fail(p, err)
		return
	}
	r.pendingBytes -= p.bytes
	p.span.end(nil)
	p.done(ack, nil)
	r.announce(p.commit.Events, ack)
}

// fail is the end of a commit that the store refused.
func (r *run) fail(p *pendingCommit, err error) {
	r.pendingBytes -= p.bytes
	p.span.end(err)
	p.done(store.Ack{}, err)
	r.sequence -= uint64(len(p.commit.Events))
	r.latchStore(storeCause(err))
}

// announce shows durable events to whoever watches the run.
func (r *run) announce(events []store.Event, ack store.Ack) {
	if r.deps.Watch == nil {
		return
	}
	for i, e := range events {
		e.Sequence, e.RecordedAt = ack.FirstSequence+uint64(i), ack.RecordedAt
		if i > 0 {
			e.CausationID = events[0].ID
		}
		r.deps.Watch(e)
	}
}

// barrier waits until everything submitted is durable or has failed, and
// reports whether all is well. A disk may take its time: budgets, the lease and
// requests to end the run are looked at meanwhile, and whatever ends it ends the
// wait. The caller then leaves its call alone.
func (r *run) barrier() bool {
	for r.underway() > 0 && r.ready() {
		select {
		case <-r.sent():
			r.took()
		case <-r.head():
			r.settle()
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
	return r.ready()
}

// settled waits for everything submitted, whatever its fate. While the disk is
// full that may be long: a request to end the run is heard then, and the run is
// given up when nobody is there any more.
func (r *run) settled() {
	for r.underway() > 0 {
		var cancels <-chan CancelRequest
		var interrupted <-chan struct{}
		if r.stall != nil {
			cancels, interrupted = r.cancels, r.interrupted
		}
		select {
		case <-r.sent():
			r.took()
		case <-r.head():
			r.settle()
		case c := <-cancels:
			r.cancelRequested(c)
		case <-interrupted:
			r.interrupt()
		case now := <-r.ticks:
			r.stalls(now)
			if r.leaves() {
				r.forsake()
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
