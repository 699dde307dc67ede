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

	// Resumable: its journal has all that it was answered, so that whoever performs it next goes on where it was.
	Resumable bool `json:"resumable,omitempty"`
	// HostBound says why the run ends with its host, of one that asked or whose connector is resumable.
	HostBound string  `json:"host_bound,omitempty"`
	Request   Request `json:"request,omitzero"`
	// Pruned: the timeline was deleted.
	Pruned bool `json:"timeline_deleted,omitempty"`
}

// A RunHead is where a run's timeline stands.
type RunHead struct {
	Next  uint64 // sequence of the next event: how many there have been
	Ended bool   // the last one is terminal
}

// A Request is what whoever started a run said of it, for the API to give back.
// Nothing of it reaches the guest.
type Request struct {
	Transport    string          `json:"transport,omitempty"` // rest, ui; "" for a schedule and the command line
	By           string          `json:"by,omitempty"`        // principal: key:ID, owner
	WorkflowID   string          `json:"workflow_id,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Configurable json.RawMessage `json:"configurable,omitempty"`
	ScopeID      string          `json:"scope_id,omitempty"`
	TraceParent  string          `json:"traceparent,omitempty"` // W3C trace that it was created under
	ForkedFrom   *ForkedFrom     `json:"forked_from,omitempty"`
	CatchUp      bool            `json:"catch_up,omitempty"` // it makes up for ticks that passed
}

// ForkedFrom is the run that another branched off.
type ForkedFrom struct {
	RunID   RunID  `json:"run_id"`
	FromSeq uint64 `json:"from_seq"`
	Mode    string `json:"mode"`
}

// A Lease is the active-run record of a connection. Fence grows by one
// with every run of the connection; every commit of the run carries it.
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

// An Interaction is the pending record of an open question: raw text
// and schema, readable by the owner only, never an answer. It is erased in the
// commit that closes it, and when its run ends. Message and Schema are encrypted at
// rest; they are empty when the process that wrote them, and with it the run, is gone.
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
	// Journal is how many pieces of the run's journal lead to this question; with them it
	// outlives the host that asks. With 0 HostBound says why it does not.
	Journal   uint64 `json:"journal,omitempty"`
	HostBound string `json:"host_bound,omitempty"`
}
