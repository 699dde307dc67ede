package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Runs starts and steers runs.
type Runs interface {
	// StartRun checks whether the run may start and answers once its row is durable, without
	// waiting for the guest. See docs/spec/runs.md, "Checks before a start".
	StartRun(ctx context.Context, q StartRun) (store.Run, error)
	// ForkRun starts a branch of a run that is over.
	ForkRun(ctx context.Context, q ForkRun) (store.Run, error)
	// CancelRun returns cancelling, cancelled, or the status of a run that had ended. It does
	// not wait for the guest longer than a moment.
	CancelRun(ctx context.Context, id store.RunID, reason string) (status string, err error)
	// PauseRun asks for a pause; policy is drain-current-node or immediate.
	PauseRun(ctx context.Context, id store.RunID, policy, reason string) (at time.Time, err error)
	ResumeRun(ctx context.Context, id store.RunID, reason string) (at time.Time, err error)
	// Recording is what a run recorded, once; store.ErrNotFound after that, and when
	// its connector did not come to its end.
	Recording(ctx context.Context, id store.RunID) (Recording, error)
	// Requests are what a run asked of servers or was refused, oldest first: at most
	// limit, after the first skip. The log keeps the newest of all runs.
	Requests(ctx context.Context, id store.RunID, skip, limit int) ([]Request, error)
	// LiveRun is the state of a run that no event has. It is false when the run is not active
	// in this process.
	LiveRun(id store.RunID) (LiveRun, bool)
	// LiveRunAt is LiveRun, of whichever host has the run: live is nil when the run is not active
	// or when its host does not say in a moment. elsewhere is that host, nil for this one.
	LiveRunAt(ctx context.Context, id store.RunID) (live *LiveRun, elsewhere *Member)
}

// StartRun is a start as the API, the dashboard or a schedule asks for it.
type StartRun struct {
	// WorkflowID is a connection id, or a connector name.
	WorkflowID string
	Mode       string          // full_refresh, incremental or ""
	Scope      json.RawMessage // nil: the grant's
	Narrow     bool            // stored records may lose fields that Scope leaves out
	NoPersist  bool
	Trace      bool // of what is done in a browser
	// Inputs are laid over the settings of a conformance connector.
	Inputs  json.RawMessage
	Given   *Given           // nil: the run has what is stored
	Budgets map[string]int64 // by name, in ms; they only lower those of the host
	Trigger string           // manual, scheduled or retry; "" is manual
	Attempt int              // 0 is 1
	RetryOf store.RunID
	Request store.Request // Transport and By are set from the Principal
	// Dedup refuses the start while a run with the same Request.ScopeID is active:
	// run_already_active.
	Dedup bool
	// With is called with the run that was accepted, and what it returns is written in the
	// same commit; nil for nothing. It neither blocks nor uses the store.
	With func(store.Run) []store.Write `json:"-"`
}

// ForkRun is a branch as it is asked for.
type ForkRun struct {
	Source  store.RunID
	FromSeq uint64
	Start   StartRun // the overlay: Mode, Scope, NoPersist, Budgets, Request, With
}

// LiveRun is the state of a run that is in memory only.
type LiveRun struct {
	Phase           string // preparing, running, waiting, finishing, committing
	Queued          bool   // it waits for a slot of host.runs
	PauseRequested  bool
	Paused          bool
	CancelRequested bool
	HeldUp          string // what keeps it from going on, as a sentence; "" for nothing
	Usage           Usage
	Memory          *Memory // nil: not known yet
}

// Memory is the resident memory of a worker over the time of its run: the most in each of
// equal parts from the run's start, at most 60.
type Memory struct {
	EveryMS int64    `json:"every_ms"`
	Bytes   []uint64 `json:"bytes"`
}

// Usage is what a guest has used so far.
type Usage struct {
	CPU         time.Duration
	MemoryBytes uint64 // resident, of the worker
	HostCalls   uint64
	BytesIn     uint64
}

// Request is one hop of a request that a connector made or was refused, without
// query, headers and bodies.
type Request struct {
	At         time.Time `json:"at"`
	Method     string    `json:"method"`
	Origin     string    `json:"origin"`
	Path       string    `json:"path"`
	Status     int       `json:"status"`            // 0 when there was no answer
	Refused    string    `json:"refused,omitempty"` // code of the error
	Sent       int64     `json:"sent"`              // bytes
	Received   int64     `json:"received"`
	DurationMS int64     `json:"durationMs"`       // until the answer began
	Family     string    `json:"family,omitempty"` // ipv4 or ipv6; "" when nothing was connected
}
