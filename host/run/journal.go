package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// data is the payload of an event without its source.
type data map[string]any

// set adds a member unless value is empty.
func (d data) set(name, value string) {
	if value != "" {
		d[name] = value
	}
}

// maxEventData limits the data of an event, in bytes.
const maxEventData = 64 * abi.KiB

// source returns the member that identifies the connector of an event.
func source(connector store.ConnectorID) map[string]any {
	return map[string]any{"kind": "connector", "id": connector}
}

// encode encodes the payload. If it exceeds maxEventData, the largest members are replaced by {truncated, bytes,
// sha256}.
func (d data) encode() (json.RawMessage, error) {
	members := make(map[string]json.RawMessage, len(d)+1)
	total := 2
	for name, v := range d {
		b, err := redact.Marshal(v)
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
	return redact.Marshal(members)
}

// truncated returns the placeholder of a value that is too large.
func truncated(raw []byte) json.RawMessage {
	sum := sha256.Sum256(raw)
	return json.RawMessage(fmt.Sprintf(`{"truncated":true,"bytes":%d,"sha256":"%s"}`, len(raw),
		hex.EncodeToString(sum[:])))
}

// shownCursor returns a cursor for events. One that is large or contains a protected value, which is possible
// only with the canary off, is replaced by its digest.
func (j *journal) shownCursor(c json.RawMessage) json.RawMessage {
	if len(c) > 4*abi.KiB || j.canary.Armed() && j.canary.Find(c) {
		return truncated(c)
	}
	return c
}

// journal builds the events of a run, and remembers the last one for violations.
type journal struct {
	*parts
	last     store.Event     // submitted, maybe not durable
	at       time.Time       // time of the newest event
	sequence uint64          // sequence number of the next event
	spanCtx  context.Context // context of the run's span, or of its node's
	node     span            // span of the guest
}

// setLast remembers the last event.
func (j *journal) setLast(e store.Event) { j.last = e }

// latest returns the last event that was submitted.
func (j *journal) latest() store.Event { return j.last }

// undo takes back the sequence numbers of events that did not become durable.
func (j *journal) undo(events []store.Event) { j.sequence -= uint64(len(events)) }

// begin starts the span of the run and returns it.
func (j *journal) begin() (whole span) {
	j.spanCtx = j.ctx
	j.spanCtx, whole = j.startSpan("run", "link", j.plan.Request.TraceParent)
	return whole
}

// beginNode starts the span of the guest, which is the parent of all later ones.
func (j *journal) beginNode(name string, attempt int) {
	j.spanCtx, j.node = j.startSpan("node."+name, "node_id", j.plan.manifest.Node(), "node_type", name,
		"node_attempt", attempt)
}

func (j *journal) endNode(err error) { j.node.end(err) }

// event builds an event of this run with the runtime as its actor.
func (j *journal) event(typ, status string, d data) store.Event {
	d["source"] = source(j.plan.Connector.ID)
	return j.bare(typ, status, d)
}

// bare builds an event whose data takes no further members, such as source.
func (j *journal) bare(typ, status string, d data) store.Event {
	raw, err := d.encode()
	if err != nil {
		raw = json.RawMessage(`{}`)
		j.outcome.latch(hostFault("encode "+typ, err))
	}
	e := store.Event{
		ID: store.EventID(hexID("evt_", 8)), Type: typ, Status: status, OccurredAt: store.Now(j.deps.Store),
		RunID: j.id, TraceID: j.trace, ConnectorID: j.plan.Connector.ID, ConnectionID: j.plan.Connection.ID,
		GrantID: j.plan.grant, ActorType: "runtime", ActorID: "sluice", Data: raw,
	}
	if !ofRun(typ) {
		e.NodeID = j.plan.manifest.Node()
	}
	return e
}

// ofRun reports whether an event is about the run as a whole. All others are about its node.
func ofRun(typ string) bool {
	switch typ {
	case "run.started", "run.paused", "run.resumed", "run.suspended", "run.cancel_requested", "run.completed",
		"run.failed", "run.cancelled":
		return true
	}
	return strings.HasPrefix(typ, "lease.")
}

// streamEvent builds an event about one stream.
func (j *journal) streamEvent(typ, status, stream string, d data) store.Event {
	e := j.event(typ, status, d)
	e.Stream = store.Stream(stream)
	return e
}

// nodeEvent builds an event about the connector's node.
func (j *journal) nodeEvent(typ, status string, d data) store.Event {
	d["nodeId"] = j.plan.manifest.Node()
	return j.event(typ, status, d)
}

// inOrder makes the times of a run's events non-decreasing: events of one commit are not built in their final
// order, and a clock may be set back.
func (j *journal) inOrder(events []store.Event) {
	for i := range events {
		at := events[i].OccurredAt.Round(0) // keep only the wall clock, which is what is stored
		if at.Before(j.at) {
			at = j.at
		}
		events[i].OccurredAt, j.at = at, at
	}
}

// announce passes durable events to Deps.Watch.
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

// Spans traces the parts of a run. Start is called when a part begins. The function that it returns is called
// once at the end of the part, with the error if it failed. Calls may come from several goroutines. Attributes
// hold ids and names, never content.
type Spans interface {
	Start(ctx context.Context, name string, attrs map[string]any) (context.Context, func(err error))
}

// A span ends a traced part of a run; nil if nobody traces.
type span func(error)

func (s span) end(err error) {
	if s != nil {
		s(err)
	}
}

// errno ends the span of a call.
func (s span) errno(e abi.Errno) {
	if e == abi.OK {
		s.end(nil)
		return
	}
	s.end(e)
}

// startSpan starts a span below that of the run or of its node. more are pairs of attribute and value.
func (j *journal) startSpan(name string, more ...any) (context.Context, span) {
	ctx := j.spanCtx
	if j.deps.Spans == nil {
		return ctx, nil
	}
	attrs := map[string]any{"openwop.run_id": string(j.id), "openwop.workflow_id": j.workflow()}
	for i := 0; i+1 < len(more); i += 2 {
		attrs["openwop."+more[i].(string)] = more[i+1]
	}
	ctx, end := j.deps.Spans.Start(ctx, "openwop."+name, attrs)
	return ctx, end
}

// commitSpan starts the span of a commit's events. Only this run appends to its timeline, so it knows the sequence
// numbers.
func (j *journal) commitSpan(events []store.Event) span {
	first := j.sequence
	j.sequence += uint64(len(events))
	if j.deps.Spans == nil || len(events) == 0 {
		return nil
	}
	_, s := j.startSpan("event.append", "event_type", events[0].Type, "event_seq", first)
	return s
}

// workflow returns the workflow id of the request, or the connection's id.
func (j *journal) workflow() string {
	return cmp.Or(j.plan.Request.WorkflowID, string(j.plan.Connection.ID))
}

// tracedActivity starts the span of a call that is handled outside of the loop.
func (j *journal) tracedActivity(c abi.Call) span {
	if j.deps.Spans == nil {
		return nil
	}
	_, s := j.startSpan("activity."+activity(c), "node_id", j.plan.manifest.Node())
	return s
}

// activity returns the name of a call for its span.
func activity(c abi.Call) string {
	for _, f := range abi.Functions {
		if f.Call == c {
			return f.Name
		}
	}
	if c >= abi.CallFileOpen && c <= abi.CallFileTimes {
		return "file"
	}
	return strconv.Itoa(int(c))
}
