package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Host is everything at once, as the wiring hands it on. Users declare the part
// that they need. All methods may be called concurrently; an error that is a
// *Refusal is for whoever asked, store.ErrNotFound is 404, anything else is
// internal.
type Host interface {
	Runs
	Artifacts
	Questions
	Connectors
	Connections
	Grants
	State
	Secrets
	Schedules
	Backups
	System
	Views
}

// Runs starts and steers runs (run-api.md section 6).
type Runs interface {
	// StartRun makes the checks of runtime.md §6.1 and answers once the run row is
	// durable, without waiting for the guest (A68).
	StartRun(ctx context.Context, q StartRun) (store.Run, error)
	// ForkRun starts a branch of a run that is over (A77 to A80).
	ForkRun(ctx context.Context, q ForkRun) (store.Run, error)
	// CancelRun returns cancelling, cancelled, or the status of a run that had ended
	// (A72). It does not wait for the guest longer than a moment.
	CancelRun(ctx context.Context, id store.RunID, reason string) (status string, err error)
	// PauseRun asks for a pause (A73); policy is drain-current-node or immediate.
	PauseRun(ctx context.Context, id store.RunID, policy, reason string) (at time.Time, err error)
	ResumeRun(ctx context.Context, id store.RunID, reason string) (at time.Time, err error)
	// Recording is what a run recorded, once; store.ErrNotFound after that, and when
	// its connector did not come to its end.
	Recording(ctx context.Context, id store.RunID) (Recording, error)
	// Requests are what a run asked of servers or was refused, oldest first: at most
	// limit, after the first skip. The log keeps the newest of all runs.
	Requests(ctx context.Context, id store.RunID, skip, limit int) ([]Request, error)
	// LiveRun is what is known of a run of this process and stands in no event;
	// false when it is not active here.
	LiveRun(id store.RunID) (LiveRun, bool)
}

// StartRun is a start as the API, the dashboard or a schedule asks for it.
type StartRun struct {
	// WorkflowID is a connection id, or a connector name (A63).
	WorkflowID string
	Mode       string          // full_refresh, incremental or ""
	Scope      json.RawMessage // nil: the grant's
	Narrow     bool            // stored records may lose fields that Scope leaves out
	NoPersist  bool
	Trace      bool // of what is done in a browser
	// Inputs are laid over the settings of a conformance connector (A65).
	Inputs  json.RawMessage
	Given   *Given           // nil: the run has what is stored
	Budgets map[string]int64 // of runtime.md §19.1, in ms; they only lower
	Trigger string           // manual, scheduled or retry; "" is manual
	Attempt int              // 0 is 1
	RetryOf store.RunID
	Request store.Request // Transport and By are set from the Principal
	// Dedup refuses the start while a run with the same Request.ScopeID is active:
	// run_already_active (A64).
	Dedup bool
	// With is called with the run that was accepted, and what it returns is written
	// in the same commit (A51, S112); nil for nothing. It neither blocks nor uses
	// the store.
	With func(store.Run) []store.Write
}

// ForkRun is a branch as it is asked for (A77).
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
}

// Usage is what a guest has used so far.
type Usage struct {
	CPU         time.Duration
	MemoryBytes uint64 // resident, of the worker
	HostCalls   uint64
	BytesIn     uint64
}

// Questions is the desk where questions meet answers (run-api.md section 9).
type Questions interface {
	// Answer submits a response to a pending interaction; the checks are those of
	// runtime.md §16.3, in their order. It returns once the end of the interaction
	// is durable. Data belongs to the callee, which wipes it.
	Answer(ctx context.Context, a Answer) error
	// RawAssistance is what only those who may answer see of an open item (A163):
	// the connector's own text and schema, and targets of url and qr attachments.
	// store.ErrNotFound when it is not open here.
	RawAssistance(ctx context.Context, run store.RunID, requestID string) (RawAssistance, error)
}

// Answer is what an owner says to a question, from whoever brings it to the run that asked.
type Answer struct {
	RunID         store.RunID
	InteractionID string
	Status        string // success or cancelled; of an owner at the terminal also timeout
	// Data is by the names that the question showed, and by the connector's own once it
	// was checked (run.Question.Check).
	Data map[string]json.RawMessage
	By   string // principal, "" is the owner
}

// RawAssistance is the pending record of an item (R144).
type RawAssistance struct {
	Message     string            `json:"message"`
	Schema      json.RawMessage   `json:"schema,omitempty"`
	Attachments []LiveAttachment  `json:"attachments"`
	Fields      map[string]string `json:"-"` // shown name to the connector's own
	Page        *OpenPage         `json:"page,omitempty"`
}

// OpenPage is what the browser of the run shows when its owner is asked (browser.md
// B193).
type OpenPage struct {
	Title   string `json:"title,omitempty"` // absent: it was not to be had in time
	URLHost string `json:"urlHost,omitempty"`
}

// LiveAttachment has the live extras of R116, which are in no event.
type LiveAttachment struct {
	Kind    string `json:"kind"`
	Role    string `json:"role,omitempty"`
	Label   string `json:"label,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	URL     string `json:"url,omitempty"`
	Payload string `json:"payload,omitempty"`
	Accept  string `json:"accept,omitempty"`
}

// Connectors installs modules (§10.1).
type Connectors interface {
	// InstallConnector reports created false when this digest is installed already.
	InstallConnector(ctx context.Context, q InstallConnector) (c Connector, created bool, err error)
	InspectConnector(ctx context.Context, q InstallConnector) (Inspection, error)
	Connectors(ctx context.Context) ([]Connector, error)
	Connector(ctx context.Context, name string) (Connector, error)
	// UninstallConnector removes all versions, or one. connector_in_use with
	// connectionIds when a connection needs it.
	UninstallConnector(ctx context.Context, name, version string) error
}

// InstallConnector is a module to install; either Module or Digest.
type InstallConnector struct {
	Module         []byte
	Digest         string // of bytes that the store holds (A170)
	Manifest       []byte // nil: the embedded one
	Signature      []byte // minisign, nil for none
	ExpectedDigest string
	// Force goes through with what S141 wants a second look at.
	Force bool
	// Key is the publisher's public key that the owner names, as minisign writes it: no
	// other will do. "" is the pinned key, or on first use the one in the signature.
	Key string
	// Conformance marks a connector of A242, under its reserved name.
	Conformance bool
}

// Connections configures connectors.
type Connections interface {
	CreateConnection(ctx context.Context, q NewConnection) (Connection, error)
	Connections(ctx context.Context) ([]Connection, error)
	Connection(ctx context.Context, id store.ConnectionID) (Connection, error)
	// ChangeConnection applies to the next run. If revision is not nil it must be
	// the current one: precondition_failed.
	ChangeConnection(ctx context.Context, id store.ConnectionID, q ChangeConnection, revision *uint64) (Connection, error)
	// DeleteConnection keeps what was collected, or erases it. run_already_active.
	DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error
}

// Grants say what connections may do.
type Grants interface {
	Requested(ctx context.Context, id store.ConnectionID) (Requested, error)
	// GrantConnection replaces the active grant.
	GrantConnection(ctx context.Context, id store.ConnectionID, q GrantTerms) (Grant, error)
	// GrantGiven gives a connection what q says, beside what it has, and makes one that
	// there is not. The connector need not be installed.
	GrantGiven(ctx context.Context, q GivenGrant) (Connection, error)
	// RevokeGrant ends the active run too; "" is the current grant.
	RevokeGrant(ctx context.Context, id store.ConnectionID, grant string) error
	// ApproveBindings replaces what the connection may use.
	ApproveBindings(ctx context.Context, id store.ConnectionID, q Bindings) (Bindings, error)
}

// State is what runs leave behind for the next one.
type State interface {
	// ResetState forgets the cursor of one stream, or all with "".
	ResetState(ctx context.Context, id store.ConnectionID, grant store.GrantID, stream store.Stream) error
	// DismissAttention clears the mark of a connection whose runs need their owner.
	DismissAttention(ctx context.Context, id store.ConnectionID) error
}

// Secrets are write-only (A194).
type Secrets interface {
	// SetSecret takes 1 byte to 16 KiB. The value belongs to the callee, which wipes
	// it.
	SetSecret(ctx context.Context, id store.ConnectionID, name string, value []byte) error
	Secrets(ctx context.Context, id store.ConnectionID) ([]Secret, error)
	RemoveSecret(ctx context.Context, id store.ConnectionID, name string) error
}

// Schedules says when connections run by themselves (§10.3, runtime.md §22).
type Schedules interface {
	PutSchedule(ctx context.Context, id store.ConnectionID, d ScheduleDefinition, revision *uint64) (s Schedule, created bool, err error)
	Schedule(ctx context.Context, id store.ConnectionID) (Schedule, error)
	Schedules(ctx context.Context) ([]Schedule, error)
	PauseSchedule(ctx context.Context, id store.ConnectionID) (Schedule, error)
	ResumeSchedule(ctx context.Context, id store.ConnectionID) (Schedule, error)
	DeleteSchedule(ctx context.Context, id store.ConnectionID) error
	// ScheduleHistory lists newest first; before "" starts at the newest, and next is
	// "" on the last page.
	ScheduleHistory(ctx context.Context, id store.ConnectionID, before string, limit int) (page []Tick, next string, err error)
	ScheduleStatistics(ctx context.Context, id store.ConnectionID) (Statistics, error)
}

// Backups are made of everything, while the host runs.
type Backups interface {
	// Backup writes a file on the host's machine, as the user that the host runs as,
	// and restores it once, unless the drill is left out. It takes as long as that;
	// when ctx ends there is no file.
	Backup(ctx context.Context, q NewBackup) (Backup, error)
}

// NewBackup says where a backup goes and who can open it. Paths are absolute.
type NewBackup struct {
	To          []string `json:"to,omitempty"`          // age recipients, beside those that are kept
	NewIdentity string   `json:"newIdentity,omitempty"` // a file for a fresh identity, whose recipient is kept
	Plain       bool     `json:"plain,omitempty"`       // not encrypted
	Out         string   `json:"out,omitempty"`         // "" is a name in the data directory
	NoDrill     bool     `json:"noDrill,omitempty"`     // leave it unverified
}

// A Backup is one that was made.
type Backup struct {
	File      string    `json:"file"`
	Created   time.Time `json:"created"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	Encrypted bool      `json:"encrypted"`
	Verified  bool      `json:"verified"`
	Records   uint64    `json:"records"`
	Streams   int       `json:"streams"`
	Modules   int       `json:"modules"`
	Secrets   int       `json:"secrets"`
	Recipient string    `json:"recipient,omitempty"` // of a new identity
}

// System is what is known of the host itself (§10.8).
type System interface {
	Info(ctx context.Context) Info
	// Ready names the checks of A228 that fail; empty when the host is ready.
	Ready(ctx context.Context) (failed []string)
	// Audit writes one entry (A168). details are counts, digests and codes, never
	// values.
	Audit(ctx context.Context, action, target, outcome string, details map[string]string) error
	// AuditEntries lists newest first; before 0 starts at the newest.
	AuditEntries(ctx context.Context, q AuditQuery) (page []AuditEntry, next uint64, err error)
}
