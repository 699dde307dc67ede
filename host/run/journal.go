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

// truncated stands for a value that is too large to show.
func truncated(raw []byte) json.RawMessage {
	sum := sha256.Sum256(raw)
	return json.RawMessage(fmt.Sprintf(`{"truncated":true,"bytes":%d,"sha256":"%s"}`, len(raw), hex.EncodeToString(sum[:])))
}

// shownCursor is a cursor as events show it: a large one as its digest. So is one with a
// protected value, which only an owner who switched the canary off lets pass.
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

// note remembers the last event.
func (j *journal) note(e store.Event) { j.last = e }

// latest is the last event that was submitted.
func (j *journal) latest() store.Event { return j.last }

// refused takes back the numbers of events that did not become durable.
func (j *journal) refused(events []store.Event) { j.sequence -= uint64(len(events)) }

// begin starts the span of the run, and returns it.
func (j *journal) begin() (whole span) {
	j.spanned = j.ctx
	j.spanned, whole = j.traced("run", "link", j.plan.Request.TraceParent)
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
		ID: store.EventID(hexID("evt_", 8)), Type: typ, Status: status, OccurredAt: store.Now(j.deps.Store),
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
	case "run.started", "run.paused", "run.resumed", "run.suspended", "run.cancel_requested", "run.completed", "run.failed", "run.cancelled":
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

// Spans is told when a part of a run begins. The function that it returns
// is called once, at the part's end, with why it failed. It may be called from
// several goroutines. Attributes hold ids and names, never content.
type Spans interface {
	Start(ctx context.Context, name string, attrs map[string]any) (context.Context, func(err error))
}

// A span is a part of a run that somebody traces; nil is one that nobody does.
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

// traced begins a span below that of the run, or of its node. more are pairs of attribute and value.
func (j *journal) traced(name string, more ...any) (context.Context, span) {
	ctx := j.spanned
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

// appended begins the span of a commit's events. Nobody else appends to the
// run's timeline, so their numbers are known.
func (j *journal) appended(events []store.Event) span {
	first := j.sequence
	j.sequence += uint64(len(events))
	if j.deps.Spans == nil || len(events) == 0 {
		return nil
	}
	_, s := j.traced("event.append", "event_type", events[0].Type, "event_seq", first)
	return s
}

// workflow is what the run is called where it was asked for.
func (j *journal) workflow() string {
	return cmp.Or(j.plan.Request.WorkflowID, string(j.plan.Connection.ID))
}

// tracedActivity begins the span of a call that is handled beside the loop.
func (j *journal) tracedActivity(c abi.Call) span {
	if j.deps.Spans == nil {
		return nil
	}
	_, s := j.traced("activity."+activity(c), "node_id", j.plan.manifest.Node())
	return s
}

// activity names a call for a span.
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
