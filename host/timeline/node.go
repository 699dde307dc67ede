package timeline

import (
	"cmp"
	"maps"

	"github.com/sluicehost/sluice/store"
)

// States of a node.
const (
	NodeIsPending   = "pending"
	NodeIsRunning   = "running"
	NodeIsSuspended = "suspended"
	NodeIsCompleted = "completed"
	NodeIsFailed    = "failed"
	NodeIsCancelled = "cancelled"
	NodeIsSkipped   = "skipped"
)

// States of a stream's checkpoint.
const (
	CheckpointNone      = "none"
	CheckpointStaged    = "staged"
	CheckpointCommitted = "committed"
	CheckpointDisabled  = "disabled"
)

// A NodeState is a step of a run.
type NodeState struct {
	Status      string `json:"status"`
	Attempt     int64  `json:"attempt"`
	StartedAt   string `json:"startedAt,omitempty"`
	CompletedAt string `json:"completedAt,omitempty"`
	InterruptID string `json:"interruptId,omitempty"`
	// Progress is the newest measurement of each stream, "" for measurements without one.
	Progress map[string]Progress    `json:"progress,omitempty"`
	Streams  map[string]StreamState `json:"streams,omitempty"`
}

// Progress is a measurement.
type Progress struct {
	Message string `json:"message"`
	Count   *int64 `json:"count,omitempty"`
	Total   *int64 `json:"total,omitempty"`
	At      string `json:"at"`
}

// StreamState is the state of a stream so far.
type StreamState struct {
	Records    int64  `json:"records"` // stored
	Batches    int64  `json:"batches"`
	Checkpoint string `json:"checkpoint"`
}

type node struct{ NodeState }

// state returns a deep copy.
func (n *node) state() NodeState {
	s := n.NodeState
	s.Progress, s.Streams = maps.Clone(s.Progress), maps.Clone(s.Streams)
	return s
}

// at returns a node, creating it if there is room.
func (f *Fold) at(id string) *node {
	if n := f.nodes[id]; n != nil {
		return n
	}
	if id == "" || len(f.nodes) == maxNodes {
		return nil
	}
	if f.nodes == nil {
		f.nodes = map[string]*node{}
	}
	n := &node{NodeState{Status: NodeIsPending}}
	f.nodes[id] = n
	return n
}

// nodeOf returns the node id of an event.
func nodeOf(e store.Event, m members) string {
	return cmp.Or(e.NodeID, m.text("nodeId"))
}

func (f *Fold) nodeEvent(t Type, e store.Event, m members) {
	id := nodeOf(e, m)
	n := f.at(id)
	if n == nil {
		return
	}
	at := store.Time(e.OccurredAt)
	n.InterruptID = ""
	switch t {
	case NodeStarted:
		f.node = id
		n.Status, n.Attempt, n.StartedAt, n.CompletedAt = NodeIsRunning, m.integer("attempt"), at, ""
		for _, s := range f.start.texts("scope_streams") {
			f.stream(n, s)
		}
	case NodeRetried:
		n.Status, n.Attempt = NodeIsPending, m.integer("attempt")
	case NodeCompleted:
		n.Status, n.CompletedAt = NodeIsCompleted, at
	case NodeFailed:
		n.Status, n.CompletedAt = NodeIsFailed, at
	case NodeSkipped:
		n.Status, n.CompletedAt = NodeIsSkipped, at
	case NodeCancelled:
		n.Status, n.CompletedAt = NodeIsCancelled, at
	}
}

// stream returns the state of a stream. ok is false if there is no room.
func (f *Fold) stream(n *node, name string) (s StreamState, ok bool) {
	s, ok = n.Streams[name]
	if ok || len(n.Streams) == maxStreams {
		return s, ok
	}
	if n.Streams == nil {
		n.Streams = map[string]StreamState{}
	}
	s.Checkpoint = CheckpointNone
	if !f.persist {
		s.Checkpoint = CheckpointDisabled
	}
	n.Streams[name] = s
	return s, true
}

func (f *Fold) streamEvent(t Type, e store.Event, m members) {
	f.counts.add(t, m)
	n := f.at(f.node)
	if n == nil {
		return
	}
	name := string(e.Stream)
	if t == RunProgressReported {
		f.progress(n, name, e, m)
		return
	}
	s, ok := f.stream(n, name)
	if !ok || name == "" {
		return
	}
	switch t {
	case RunBatchIngested:
		s.Records += m.integer("records_flushed")
		s.Batches++
	case RunStateStaged:
		if f.persist {
			s.Checkpoint = CheckpointStaged
		}
	case RunStateAdvanced:
		s.Checkpoint = CheckpointCommitted
	}
	n.Streams[name] = s
}

func (f *Fold) progress(n *node, stream string, e store.Event, m members) {
	if _, known := n.Progress[stream]; !known && len(n.Progress) == maxStreams {
		return
	}
	p := Progress{Message: m.text("message"), At: store.Time(e.OccurredAt)}
	if c, ok := m.number("count"); ok {
		p.Count = &c
	}
	if c, ok := m.number("total"); ok {
		p.Total = &c
	}
	if n.Progress == nil {
		n.Progress = map[string]Progress{}
	}
	n.Progress[stream] = p
}

// Metrics are the record counts of a run as far as they are known. Emitted and DurationMs are known
// once the run is over.
type Metrics struct {
	RecordsEmitted             *int64 `json:"recordsEmitted,omitempty"`
	RecordsAttempted           int64  `json:"recordsAttempted"`
	RecordsAccepted            int64  `json:"recordsAccepted"`
	RecordsFlushed             int64  `json:"recordsFlushed"`
	RecordsPermanentlyRejected int64  `json:"recordsPermanentlyRejected"`
	RecordsUnresolvedRetryable int64  `json:"recordsUnresolvedRetryable"`
	DurationMs                 *int64 `json:"durationMs,omitempty"`
}

type counts struct {
	Metrics
	known bool
}

func (c *counts) add(t Type, m members) {
	if t != RunBatchIngested {
		return
	}
	c.known = true
	c.RecordsAttempted += m.integer("records_attempted")
	c.RecordsAccepted += m.integer("records_accepted")
	c.RecordsFlushed += m.integer("records_flushed")
	c.RecordsPermanentlyRejected += m.integer("records_permanently_rejected")
	c.RecordsUnresolvedRetryable = c.RecordsAttempted - c.RecordsAccepted - c.RecordsPermanentlyRejected
}

// final reads the counts of a terminal event or of a result.
func (c *counts) final(m members) {
	set := func(to *int64, name string) {
		if n, ok := m.number(name); ok {
			*to, c.known = n, true
		}
	}
	set(&c.RecordsAttempted, "records_attempted")
	set(&c.RecordsAccepted, "records_accepted")
	set(&c.RecordsFlushed, "records_flushed")
	set(&c.RecordsPermanentlyRejected, "records_permanently_rejected")
	set(&c.RecordsUnresolvedRetryable, "records_unresolved_retryable")
	if n, ok := m.number("records_emitted"); ok {
		c.RecordsEmitted = &n
	}
	if n, ok := m.number("durationMs"); ok {
		c.DurationMs = &n
	}
}

// metrics returns nil while nothing is known.
func (c *counts) metrics() *Metrics {
	if !c.known && c.DurationMs == nil {
		return nil
	}
	m := c.Metrics
	return &m
}
