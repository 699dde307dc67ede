package timeline

import (
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Bounds of a fold. A guest cannot reach them within its limits, and a damaged log cannot make a
// fold grow without end.
const (
	maxNodes      = 64
	maxStreams    = 512
	maxInterrupts = 1024
	maxItems      = 1024
)

// A Fold is the state of a run after part of its log. Events may be added one by one or together,
// with the same result. The zero Fold is ready to use. It is not safe for concurrent use.
type Fold struct {
	next    uint64 // expected next sequence
	started bool
	paused  bool
	cancel  bool // run.cancel_requested was seen
	// ended is the terminal event, nil while there is none.
	ended *store.Event
	final members // its data

	start    members // data of run.started
	pausedAt time.Time
	node     string // the node that runs or ran last
	nodes    map[string]*node
	counts   counts
	persist  bool

	asked      map[string]request // interrupt.requested events without an identity yet, by node
	interrupts []*Interrupt
	items      []*Item // in the order of the requests
	artifacts  []Artifact
	browser    *Browser // nil: the run has none
	lost       string   // interaction whose surface was lost in the current commit
}

// Next returns the sequence that the next event must have.
func (f *Fold) Next() uint64 { return f.next }

// Ended reports whether the terminal event was read.
func (f *Fold) Ended() bool { return f.ended != nil }

// Status returns the status of the run after the events read.
func (f *Fold) Status() Status {
	switch {
	case f.ended != nil:
		return terminalStatus(Type(f.ended.Type))
	case f.paused:
		return Paused
	case f.open() != nil:
		return waitingFor(f.open().Kind)
	case f.started:
		return Running
	}
	return Pending
}

// Add reads events, which come in order of their sequence. Events read before, and any after the
// terminal one, have no effect. Stop only at the end of a commit: in its middle the fold is in a
// state that the run never had.
func (f *Fold) Add(events ...store.Event) {
	for _, e := range events {
		if e.Sequence < f.next || f.ended != nil {
			continue
		}
		f.next = e.Sequence + 1
		f.add(e, membersOf(e.Data))
	}
}

func (f *Fold) add(e store.Event, m members) {
	if e.CausationID == "" {
		f.lost = ""
	}
	t := Type(e.Type)
	switch t {
	case RunStarted:
		f.begin(e, m)
	case RunPaused:
		f.paused, f.pausedAt = true, e.OccurredAt
	case RunResumed:
		f.resume(e)
	case RunCancelRequested:
		f.cancel = true
	case NodeStarted, NodeCompleted, NodeFailed, NodeSkipped, NodeCancelled, NodeRetried:
		f.nodeEvent(t, e, m)
	case RunProgressReported, RunBatchIngested, RunStateStaged, RunStateAdvanced:
		f.streamEvent(t, e, m)
	case InterruptRequested, NodeSuspended, InterruptResolved, NodeResumed, RunInteractionRequired, RunBrowserSurfaceLost:
		f.interruptEvent(t, e, m)
		if t == RunBrowserSurfaceLost {
			f.browserEvent(t, m)
		}
	case ArtifactCreated:
		f.artifact(e, m)
	case RunBrowserSurfaceRequested, RunBrowserSurfaceQueued, RunBrowserSurfaceStarting, RunBrowserSurfaceReady,
		RunBrowserSurfaceProbe,
		RunBrowserSurfaceFailed, RunBrowserSurfaceReleased, RunBrowserAction, RunBrowserEgressDenied:
		f.browserEvent(t, m)
	case RunAssistanceRequested, RunAssistanceUpdated, RunAssistanceResolved,
		RunAssistanceCancelled, RunAssistanceTimedOut, RunAssistanceEscalated:
		f.assistanceEvent(t, e, m)
	case RunCompleted, RunFailed, RunCancelled:
		f.end(e, m)
	}
}

func (f *Fold) begin(e store.Event, m members) {
	f.started, f.start = true, m
	f.persist = string(m["persist_state"]) != "false"
}

// resume extends the deadline of open questions by the paused time.
func (f *Fold) resume(e store.Event) {
	if f.paused {
		d := e.OccurredAt.Sub(f.pausedAt)
		if q := f.open(); q != nil && q.ExpiresAt != nil && d > 0 {
			q.ExpiresAt = new(q.ExpiresAt.Add(d))
		}
		for _, i := range f.items {
			if i.Status == ItemOpen && i.ExpiresAt != nil && d > 0 {
				i.ExpiresAt = new(i.ExpiresAt.Add(d))
			}
		}
	}
	f.paused = false
}

// end records the terminal event and closes what is still open.
func (f *Fold) end(e store.Event, m members) {
	f.ended, f.final = &e, m
	f.counts.final(m)
	for _, q := range f.interrupts {
		if q.Closed == Open || q.Closed == ClosedByHost && !q.resumed {
			q.Closed = ClosedByEnd
		}
	}
	for _, i := range f.items {
		if i.Status == ItemOpen {
			i.Status = ItemAbandoned
		}
	}
	status := map[Type]string{RunCompleted: NodeIsCompleted, RunFailed: NodeIsFailed,
		RunCancelled: NodeIsCancelled}[Type(e.Type)]
	for _, n := range f.nodes { // a log without the end of a node, as after a crash of the host
		if n.CompletedAt == "" && (n.Status == NodeIsRunning || n.Status == NodeIsSuspended) {
			n.Status, n.CompletedAt = status, store.Time(e.OccurredAt)
		}
	}
}

// An Artifact is a file that a run left, as its log announces it. The file itself may be gone.
type Artifact struct {
	ArtifactID   string      `json:"artifactId"`
	ArtifactType string      `json:"artifactType"`
	RunID        store.RunID `json:"runId"`
	NodeID       string      `json:"nodeId"`
	CreatedAt    string      `json:"createdAt"`
	Summary      string      `json:"summary,omitempty"`
	MediaType    string      `json:"mediaType"`
	Size         int64       `json:"size"`
	Digest       string      `json:"digest"`
	ContentURL   string      `json:"contentUrl,omitempty"` // set by the API
}

// Bounds of what is kept of artifacts.
const (
	maxArtifacts = 64
	maxSummary   = 500
	maxTypeName  = 128
)

// Artifacts returns the artifacts announced so far, oldest first.
func (f *Fold) Artifacts() []Artifact { return slices.Clone(f.artifacts) }

func (f *Fold) artifact(e store.Event, m members) {
	if len(f.artifacts) == maxArtifacts || m.text("artifactId") == "" {
		return
	}
	f.artifacts = append(f.artifacts, Artifact{
		ArtifactID: abi.Cut(m.text("artifactId"), maxTypeName), ArtifactType: abi.Cut(m.text("artifactType"), maxTypeName),
		RunID:  e.RunID,
		NodeID: nodeOf(e, m), CreatedAt: store.Time(e.OccurredAt), Summary: abi.Cut(m.text("summary"), maxSummary),
		MediaType: abi.Cut(m.text("mediaType"), maxTypeName), Size: m.integer("size"),
		Digest: abi.Cut(m.text("digest"), maxTypeName),
	})
}

// A Status is the status of a run.
type Status string

const (
	Pending         Status = "pending"
	Running         Status = "running"
	Paused          Status = "paused"
	WaitingApproval Status = "waiting-approval"
	WaitingInput    Status = "waiting-input"
	WaitingExternal Status = "waiting-external"
	Completed       Status = "completed"
	Failed          Status = "failed"
	Cancelled       Status = "cancelled"
)

// Statuses returns all statuses in the order of a run's life.
func Statuses() []Status {
	return []Status{Pending, Running, Paused, WaitingApproval, WaitingInput, WaitingExternal, Completed, Failed, Cancelled}
}

// Terminal reports whether a run with this status is over.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// waitingFor returns the status of a run with an open interrupt.
func waitingFor(kind string) Status {
	switch kind {
	case "approval":
		return WaitingApproval
	case "external-event":
		return WaitingExternal
	}
	return WaitingInput
}

// terminalStatus returns the status after a terminal event. A connector that reported cancellation
// counts as failed.
func terminalStatus(t Type) Status {
	switch t {
	case RunCompleted:
		return Completed
	case RunCancelled:
		return Cancelled
	}
	return Failed
}

// TerminalStatus returns the status of a run after e, or "" if e does not end a run.
func TerminalStatus(e store.Event) Status {
	if t := Type(e.Type); t.Terminal() {
		return terminalStatus(t)
	}
	return ""
}
