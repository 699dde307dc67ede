package app

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A RunRequest is a start as a caller asks for it.
type RunRequest struct {
	Connector  *Loaded
	Connection store.ConnectionID // "" is the connector's name

	Mode       string
	Scope      json.RawMessage
	Narrow     bool            // stored records may lose fields that Scope leaves out
	Config     json.RawMessage // nil keeps the connection's settings
	State      json.RawMessage
	ResetState bool
	NoPersist  bool
	// Approved adds to what the connection is granted, for this run.
	Approved store.Approved
	// Accepted says that the owner agreed to what this version of the connector
	// asks for beyond the one they approved before.
	Accepted bool
	Secrets  map[string]string // win over stored ones
	Owner    run.Owner         // nil: not interactive
	Trigger  string            // "" is manual
	Watch    func(store.Event)
	// Budgets and MemoryBytes replace the host's; zero values keep them.
	Budgets     run.Budgets
	MemoryBytes uint64
	// Lower are budgets by name, in ms; they only lower.
	Lower map[string]int64
	// Trace records what is done in a browser.
	Trace bool
	// Existing refuses a connection that there is not, instead of making it.
	Existing bool
	// StateFrom are the runs that committed what State holds, by stream: this run is a branch
	// of one.
	StateFrom map[string]store.RunID

	// store is what the run commits to, when that is not the host's own.
	store store.Store

	AutomationMode string
	Attempt        int // 0 is 1
	RetryOf        store.RunID
	Request        store.Request
	Slots          run.Slots
	Spans          run.Spans
	// Launched sees the guest before it runs, and gives the run what it has in its place; nil for nothing.
	Launched func(run.Guest) run.Guest
	// Interpreter is for conformance tests; see sandbox.Spec.
	Interpreter bool
	// Record keeps the run; Replay runs it without network and vault, as it was
	// kept. Nil for neither; not both.
	Record *Recorder
	Replay *Recording

	fixed     *abi.Fixed
	serviced  bool           // by a host that is left running
	rehearsed bool           // its journal is for this process alone
	resume    *run.Suspended // from its journal; nil for a run that begins
	sealed    []byte         // the journal secret that it was sealed with, or is to be; nil for the newest
}
