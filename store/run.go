package store

import (
	"encoding/json"
	"time"
)

// A Run is the run record. It outlives the run's timeline.
type Run struct {
	ID           RunID           `json:"run_id"`
	TraceID      TraceID         `json:"trace_id"`
	ConnectorID  ConnectorID     `json:"connector_id"`
	ConnectionID ConnectionID    `json:"connection_id"`
	GrantID      GrantID         `json:"grant_id,omitempty"`
	Digest       Digest          `json:"connector_digest"`
	Status       string          `json:"status"` // active, succeeded, failed, cancelled
	Phase        string          `json:"phase"`  // "" once terminal
	StartedAt    time.Time       `json:"started_at"`
	FinishedAt   *time.Time      `json:"finished_at"`
	TriggerKind  string          `json:"trigger_kind"`
	Attempt      int             `json:"attempt"`
	RetryOf      RunID           `json:"retry_of,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"` // once terminal

	// Resumable says that the journal has everything the run was answered, so that another
	// host can resume it.
	Resumable bool `json:"resumable,omitempty"`
	// HostBound says why the run ends with its host; set if it has asked a question or its
	// connector is resumable.
	HostBound string `json:"host_bound,omitempty"`
	// HostID is the host that performs the run, or did last. It has what is not in the store.
	HostID  string  `json:"host_id,omitempty"`
	Request Request `json:"request,omitzero"`
	// Pruned says that the timeline was deleted.
	Pruned bool `json:"timeline_deleted,omitempty"`
}

// A RunHead is the state of a run's timeline.
type RunHead struct {
	Next  uint64 // sequence of the next event, the number of events so far
	Ended bool   // the last one is terminal
}

// A Request is what the caller said when starting a run, for the API to return. The guest
// sees none of it.
type Request struct {
	Transport    string          `json:"transport,omitempty"` // rest, ui; "" for a schedule and the command line
	By           string          `json:"by,omitempty"`        // principal: key:ID, owner
	WorkflowID   string          `json:"workflow_id,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Configurable json.RawMessage `json:"configurable,omitempty"`
	ScopeID      string          `json:"scope_id,omitempty"`
	TraceParent  string          `json:"traceparent,omitempty"` // W3C trace of the caller
	ForkedFrom   *ForkedFrom     `json:"forked_from,omitempty"`
	CatchUp      bool            `json:"catch_up,omitempty"` // makes up for missed ticks
}

// ForkedFrom is the run that another branched off.
type ForkedFrom struct {
	RunID   RunID  `json:"run_id"`
	FromSeq uint64 `json:"from_seq"`
	Mode    string `json:"mode"`
}

// A Lease gives a connection to its active run. Fence grows by one with every run of the
// connection; every commit of the run carries it.
type Lease struct {
	ConnectionID ConnectionID `json:"connection_id"`
	RunID        RunID        `json:"run_id"`
	TraceID      TraceID      `json:"trace_id"`
	Fence        uint64       `json:"fence"`
	HostID       string       `json:"host_id"`
	BootEpoch    string       `json:"boot_epoch"` // new at every host start
	TriggerKind  string       `json:"trigger_kind"`
	StartedAt    time.Time    `json:"started_at"`
	ExpiresAt    time.Time    `json:"lease_expires_at"`
}

// An Interaction is an open question: raw text and schema, which only the owner reads,
// never an answer. It is erased in the commit that closes it, and when its run ends.
// Message and Schema are encrypted at rest; they are empty if the process that wrote them
// is gone.
type Interaction struct {
	ID        string          `json:"interaction_id"`
	RunID     RunID           `json:"run_id"`
	NodeID    string          `json:"node_id"`
	Interrupt string          `json:"interrupt_id"` // host's own
	Kind      string          `json:"kind"`
	Stream    Stream          `json:"stream,omitempty"`
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"schema,omitempty"`
	OpenedAt  time.Time       `json:"opened_at"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	// Journal is the number of journal pieces up to this question, with which it outlives
	// its host. If it is 0, HostBound says why it does not.
	Journal   uint64 `json:"journal,omitempty"`
	HostBound string `json:"host_bound,omitempty"`
}
