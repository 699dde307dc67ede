package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Runs starts and steers runs.
type Runs interface {
	// StartRun checks whether the run may start and returns once the run is durable,
	// without waiting for the guest. See docs/spec/runs.md, "Checks before a start".
	StartRun(ctx context.Context, q StartRun) (store.Run, error)
	// ForkRun starts a branch of a finished run.
	ForkRun(ctx context.Context, q ForkRun) (store.Run, error)
	// CancelRun returns cancelling, cancelled, or the status of a run that had already
	// ended. It waits for the guest only briefly.
	CancelRun(ctx context.Context, id store.RunID, reason string) (status string, err error)
	// PauseRun asks for a pause; policy is drain-current-node or immediate.
	PauseRun(ctx context.Context, id store.RunID, policy, reason string) (at time.Time, err error)
	ResumeRun(ctx context.Context, id store.RunID, reason string) (at time.Time, err error)
	// Recording returns a run's recording once. It returns store.ErrNotFound afterwards,
	// and for a run whose connector did not finish.
	Recording(ctx context.Context, id store.RunID) (Recording, error)
	// Requests lists a run's HTTP requests, refused ones included, oldest first: at most
	// limit, after the first skip. The log keeps only the newest requests of all runs.
	Requests(ctx context.Context, id store.RunID, skip, limit int) ([]Request, error)
	// LiveRun returns the state of a run that no event records. It reports false if the run
	// is not active in this process.
	LiveRun(id store.RunID) (LiveRun, bool)
	// LiveRunAt is LiveRun across all hosts: live is nil if the run is not active or its
	// host does not answer quickly. elsewhere is that host, nil for this one.
	LiveRunAt(ctx context.Context, id store.RunID) (live *LiveRun, elsewhere *Member)
}

// StartRun is a request to start a run.
type StartRun struct {
	// WorkflowID is a connection id or a connector name.
	WorkflowID string
	Mode       string          // full_refresh, incremental or ""
	Scope      json.RawMessage `json:",omitempty"` // nil: the grant's
	Narrow     bool            // stored records may lose fields that Scope leaves out
	NoPersist  bool
	Trace      bool // record the actions in the browser
	// Inputs override the settings of a conformance connector.
	Inputs    json.RawMessage  `json:",omitempty"`
	Overrides *Overrides       // overrides for this run; nil for none
	Budgets   map[string]int64 // by name, in ms; they can only lower the host's
	Trigger   string           // manual, scheduled or retry; "" is manual
	Attempt   int              // 0 means 1
	RetryOf   store.RunID
	Request   store.Request // Transport and By are set from the Principal
	// Dedup refuses with run_already_active while a run with the same Request.ScopeID is
	// active.
	Dedup bool
	// With, if not nil, is called with the accepted run; the writes that it returns join
	// the same commit. It must neither block nor use the store.
	With func(store.Run) []store.Write `json:"-"`
	// At is set where another host is asked to perform the run: With was called already.
	At *StartAt
}

// A StartAt is what a host decides of a run that another one performs.
type StartAt struct {
	RunID   store.RunID
	TraceID store.TraceID
	Writes  []store.Write // of StartRun.With
}

// ForkRun is a request for a branch.
type ForkRun struct {
	Source  store.RunID
	FromSeq uint64
	Start   StartRun // overrides: Mode, Scope, NoPersist, Budgets, Request, With
}

// LiveRun is the state of a run that is kept in memory only.
type LiveRun struct {
	Phase           string // preparing, running, waiting, finishing, committing
	Queued          bool   // waits for one of the host.runs slots
	PauseRequested  bool
	Paused          bool
	CancelRequested bool
	HeldUp          string // why it cannot go on, as a sentence; "" for no reason
	Usage           Usage
	Memory          *Memory // nil until it is known
}

// Memory is a worker's resident memory over the run: the peak of each of up to 60 equal
// periods from the start.
type Memory struct {
	EveryMS int64    `json:"every_ms"`
	Bytes   []uint64 `json:"bytes"`
}

// Usage is what a run has used so far.
type Usage struct {
	CPU         time.Duration
	MemoryBytes uint64 // of the worker, resident
	HostCalls   uint64
	BytesIn     uint64

	OwnerWait time.Duration // spent waiting for the owner
	Paused    time.Duration
}

// Request is one hop of a request that a connector made or was refused, without query,
// headers and bodies.
type Request struct {
	At         time.Time `json:"at"`
	Method     string    `json:"method"`
	Origin     string    `json:"origin"`
	Path       string    `json:"path"`
	Status     int       `json:"status"`            // 0 if there was no answer
	Refused    string    `json:"refused,omitempty"` // error code
	Sent       int64     `json:"sent"`              // bytes
	Received   int64     `json:"received"`
	DurationMS int64     `json:"durationMs"`       // until the answer began
	Family     string    `json:"family,omitempty"` // ipv4 or ipv6; "" if no connection was made
}
