package timeline

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Closing says how an interrupt was closed.
type Closing uint8

const (
	Open         Closing = 0
	Answered     Closing = 1 // somebody answered or deliberately cancelled it
	TimedOut     Closing = 2
	SurfaceLost  Closing = 3
	ClosedByHost Closing = 4 // the host gave it up and the run continued
	ClosedByEnd  Closing = 5 // the run was cancelled or ended meanwhile
)

// Code returns the code that refuses an attempt to resolve the interrupt: "" while it is open,
// otherwise interrupt_already_resolved, no_pending_interaction or interrupt_cancelled.
func (c Closing) Code() string {
	switch c {
	case Open:
		return ""
	case Answered:
		return "interrupt_already_resolved"
	case ClosedByEnd:
		return "interrupt_cancelled"
	}
	return "no_pending_interaction"
}

// An Interrupt is a question in openwop's form.
type Interrupt struct {
	ID            string // "" only in a log without node.suspended
	NodeID        string
	InteractionID string
	// InteractionKind is what the connector asked for: otp, credentials, manual_action, approval or
	// clarification.
	InteractionKind string
	Kind, Key       string
	Payload         InterruptPayload
	ExpiresAt       *time.Time // by its own timeout, without paused time

	Closed Closing
	// Outcome is success, cancelled or timeout, or "" if no answer was recorded.
	Outcome    string
	ResolvedBy string
	resumed    bool // node.resumed followed
}

// An InterruptPayload is the answer to GET of an interrupt.
type InterruptPayload struct {
	Kind         string          `json:"kind"`
	Key          string          `json:"key"`
	Data         json.RawMessage `json:"data"` // an object
	ResumeSchema json.RawMessage `json:"resumeSchema,omitempty"`
	TimeoutMs    *int64          `json:"timeoutMs,omitempty"`
}

// A request is an interrupt.requested event until node.suspended gives its identity.
type request struct {
	payload InterruptPayload
	kind    string // of the interaction
}

// InterruptOfNode returns the newest interrupt of a node, open or closed. It reports false if there
// was none.
func (f *Fold) InterruptOfNode(id string) (Interrupt, bool) {
	return f.lookup(func(q *Interrupt) bool { return q.NodeID == id })
}

// InterruptByID returns one interrupt, open or closed.
func (f *Fold) InterruptByID(id string) (Interrupt, bool) {
	return f.lookup(func(q *Interrupt) bool { return q.ID == id })
}

func (f *Fold) lookup(is func(*Interrupt) bool) (Interrupt, bool) {
	for _, q := range slices.Backward(f.interrupts) {
		if is(q) {
			return *q, true
		}
	}
	return Interrupt{}, false
}

// open returns the newest interrupt if it is open; a node has at most one open interrupt.
func (f *Fold) open() *Interrupt {
	for _, q := range slices.Backward(f.interrupts) {
		if q.Closed == Open {
			return q
		}
	}
	return nil
}

func (f *Fold) interruptEvent(t Type, e store.Event, m members) {
	node := nodeOf(e, m)
	switch t {
	case InterruptRequested:
		f.request(node, m)
	case RunInteractionRequired:
		if r, ok := f.asked[f.node]; ok {
			r.kind = m.text("kind")
			f.asked[f.node] = r
		}
	case NodeSuspended:
		f.suspend(node, e, m)
	case RunBrowserSurfaceLost:
		if f.lost = m.text("interaction_id"); f.lost == "" {
			f.lost = e.InteractionID
		}
	case InterruptResolved:
		f.resolve(m)
	case NodeResumed:
		for _, q := range f.interrupts {
			q.resumed = q.resumed || q.ID == m.text("interruptId")
		}
		if n := f.at(node); n != nil {
			n.Status, n.InterruptID = NodeIsRunning, ""
		}
	}
}

func (f *Fold) request(node string, m members) {
	p := InterruptPayload{Kind: m.text("kind"), Key: m.text("key"), Data: json.RawMessage(`{}`),
		ResumeSchema: m.raw("resumeSchema")}
	if m.object("data") != nil {
		p.Data = m.raw("data")
	}
	if n, ok := m.number("timeoutMs"); ok && n >= 0 {
		p.TimeoutMs = &n
	}
	if f.asked == nil {
		f.asked = map[string]request{}
	}
	if len(f.asked) < maxNodes {
		f.asked[node] = request{payload: p}
	}
}

func (f *Fold) suspend(node string, e store.Event, m members) {
	r := f.asked[node]
	delete(f.asked, node)
	q := &Interrupt{
		ID: m.text("interruptId"), NodeID: node, InteractionID: e.InteractionID, InteractionKind: r.kind,
		Kind: m.text("kind"), Key: m.text("key"), Payload: r.payload,
	}
	if q.Payload.Data == nil { // a log without interrupt.requested
		q.Payload = InterruptPayload{Kind: q.Kind, Key: q.Key, Data: json.RawMessage(`{}`)}
	}
	if ms := q.Payload.TimeoutMs; ms != nil && *ms < int64(maxTimeout/time.Millisecond) {
		q.ExpiresAt = new(e.OccurredAt.Add(time.Duration(*ms) * time.Millisecond))
	}
	if len(f.interrupts) == maxInterrupts {
		f.interrupts = slices.Delete(f.interrupts, 0, 1)
	}
	f.interrupts = append(f.interrupts, q)
	for _, i := range f.items {
		if i.Status == ItemOpen && i.RequestID == q.InteractionID {
			i.InterruptID, i.NodeID = q.ID, node
		}
	}
	if n := f.at(node); n != nil {
		n.Status, n.InterruptID = NodeIsSuspended, q.ID
	}
}

// maxTimeout bounds a timeout; longer ones are shown without an end.
const maxTimeout = 10 * 365 * 24 * time.Hour

func (f *Fold) resolve(m members) {
	id := m.text("interruptId")
	for _, q := range slices.Backward(f.interrupts) {
		if q.ID != id || q.Closed != Open {
			continue
		}
		q.Outcome, q.ResolvedBy = m.text("status"), m.text("resolvedBy")
		q.Closed = f.closing(q)
		if n := f.at(q.NodeID); n != nil && n.Status == NodeIsSuspended {
			n.Status, n.InterruptID = NodeIsRunning, ""
		}
		return
	}
}

// closing derives from the events how a question was closed. A question that the host cancels while
// the run is being cancelled ends with the run.
func (f *Fold) closing(q *Interrupt) Closing {
	switch {
	case q.Outcome == "timeout":
		return TimedOut
	case f.lost != "" && f.lost == q.InteractionID:
		return SurfaceLost
	case q.Outcome == "success", q.ResolvedBy != "host":
		return Answered
	case f.cancel:
		return ClosedByEnd
	}
	return ClosedByHost
}
