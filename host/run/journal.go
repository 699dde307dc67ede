package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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

// maxEventData bounds one event's data (R180, A94).
const maxEventData = 64 * abi.KiB

// encode writes the payload with its source. Members that would take it over
// the bound become {truncated, bytes, sha256}, largest first.
func (d data) encode(connector store.ConnectorID) (json.RawMessage, error) {
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
	source, err := marshal(map[string]any{"kind": "connector", "id": connector})
	if err != nil {
		return nil, err
	}
	members["source"] = source
	for total += len(source) + 12; total > maxEventData; {
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

// truncated stands for a value that is too large to show (R179, A94).
func truncated(raw []byte) json.RawMessage {
	sum := sha256.Sum256(raw)
	return json.RawMessage(fmt.Sprintf(`{"truncated":true,"bytes":%d,"sha256":"%s"}`, len(raw), hex.EncodeToString(sum[:])))
}

// shownCursor is R179. A cursor with a protected value, which only an owner who
// switched the canary off lets pass, is not shown either (R168, A103).
func (r *run) shownCursor(c json.RawMessage) json.RawMessage {
	if len(c) > 4*abi.KiB || r.canary.armed() && r.canary.find(c) {
		return truncated(c)
	}
	return c
}

// journal remembers the last event a run submitted, for violations (R70).
type journal struct {
	last store.Event
}

// event builds an event of this run. The runtime is its actor.
func (r *run) event(typ, status string, d data) store.Event {
	raw, err := d.encode(r.plan.Connector.ID)
	if err != nil {
		raw = json.RawMessage(`{}`)
		r.latch(hostFault("encode "+typ, err))
	}
	return store.Event{
		ID: store.EventID(hexID("evt_", 8)), Type: typ, Status: status, OccurredAt: time.Now(),
		RunID: r.id, TraceID: r.trace, ConnectorID: r.plan.Connector.ID, ConnectionID: r.plan.Connection.ID,
		GrantID: r.plan.grant, ActorType: "runtime", ActorID: "sluice", Data: raw,
	}
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
	e := r.event(typ, status, d)
	e.NodeID = r.plan.manifest.Node()
	return e
}

// A pendingCommit is on its way to the disk. done runs once its fate is known.
type pendingCommit struct {
	receipt *store.Receipt
	events  []store.Event
	bytes   int // of its batches
	done    func(store.Ack, error)
}

// submit queues a commit behind all earlier ones. Waiting progress goes first,
// so that it stays in order (R181).
func (r *run) submit(c *store.Commit, done func(store.Ack, error)) {
	if len(r.progress.waiting) > 0 {
		r.flushProgress(time.Now(), true)
	}
	r.submitNow(c, done)
}

func (r *run) submitNow(c *store.Commit, done func(store.Ack, error)) {
	if done == nil {
		done = func(store.Ack, error) {}
	}
	c.Lease, c.Grant = r.lease, r.plan.grant
	receipt, err := r.deps.Store.Submit(r.ctx, c)
	if err != nil {
		done(store.Ack{}, err)
		r.latch(storeCause(err))
		return
	}
	if n := len(c.Events); n > 0 {
		r.journal.last = c.Events[n-1]
	}
	bytes := 0
	for _, b := range c.Batches {
		bytes += b.Size()
	}
	r.pendingBytes += bytes
	r.pending = append(r.pending, pendingCommit{receipt, c.Events, bytes, done})
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
	r.pendingBytes -= p.bytes
	ack, err := p.receipt.Result()
	p.done(ack, err)
	if err != nil {
		r.latch(storeCause(err))
		return
	}
	r.announce(p.events, ack)
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
// reports whether all is well. Time goes on meanwhile: budgets and
// cancellation are looked at.
func (r *run) barrier() bool {
	for len(r.pending) > 0 {
		<-r.head()
		r.settle()
	}
	return r.latched == nil
}

// storeCause maps a store's refusal to a reason (§11.2).
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
