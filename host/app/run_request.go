package app

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A RunRequest describes the run that a caller wants to start.
type RunRequest struct {
	Connector  *Loaded
	Connection store.ConnectionID // by default the connector's name

	Mode       string
	Scope      json.RawMessage
	Narrow     bool            // allows stored records to lose fields that Scope leaves out
	Config     json.RawMessage // nil keeps the connection's settings
	State      json.RawMessage
	ResetState bool
	NoPersist  bool
	// Approved adds, for this run, to what the connection is granted.
	Approved store.Approved
	// Accepted reports that the owner accepted what this version of the connector requests beyond the version
	// that they approved.
	Accepted bool
	Secrets  map[string]string // take precedence over stored ones
	Owner    run.Owner         // nil means not interactive
	Trigger  string            // "" means manual
	Watch    func(store.Event)
	// Budgets and MemoryBytes replace the host's; zero values keep them.
	Budgets     run.Budgets
	MemoryBytes uint64
	// Lower lowers budgets, by name and in milliseconds. It cannot raise them.
	Lower map[string]int64
	// Trace records browser actions.
	Trace bool
	// Existing refuses an unknown connection instead of making it.
	Existing bool
	// StateFrom are the runs that committed the cursors in State, by stream. It is set for a branch.
	StateFrom map[string]store.RunID

	// store is the store that the run commits to, nil for the host's own.
	store store.Store

	AutomationMode string
	Attempt        int // 0 means 1
	RetryOf        store.RunID
	Request        store.Request
	At             host.StartAt // of a run that another host was asked for; Writes are the caller's
	Slots          run.Slots
	Spans          run.Spans
	// Launched is called with the guest before it runs, and returns the guest that the run uses instead. It may
	// be nil.
	Launched func(run.Guest) run.Guest
	// Interpreter is for conformance tests; see sandbox.Spec.
	Interpreter bool
	// Record records the run; Replay repeats a recorded run without network and vault. At most one is set.
	Record *Recorder
	Replay *Recording

	fixed     *abi.Fixed
	serviced  bool           // by a host that stays running
	rehearsed bool           // its journal is only for this process
	resume    *run.Suspended // set for a run that is resumed from its journal
	sealed    []byte         // the secret that the journal is sealed with; nil means the newest
}
