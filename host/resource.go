package host

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// Connector is A178.
type Connector struct {
	ConnectorID  string          `json:"connectorId"`
	Name         string          `json:"connectorName"`
	Version      string          `json:"version"`
	ModuleDigest string          `json:"moduleDigest"`
	DisplayName  string          `json:"displayName"`
	Description  string          `json:"description,omitempty"`
	Manifest     json.RawMessage `json:"manifest"`
	Requested    RequestedByAll  `json:"requested"`
	ABI          ABI             `json:"abi"`
	Source       Source          `json:"source"`
	Signature    Signature       `json:"signature"`
	Size         int64           `json:"size"`
	InstalledAt  time.Time       `json:"installedAt"`
	InstalledBy  string          `json:"installedBy"`
	IsDefault    bool            `json:"isDefault"`
	Revision     uint64          `json:"revision"`
	Warnings     []Warning       `json:"warnings"`
	Conformance  bool            `json:"conformance,omitempty"`
	Connections  []ConnectionRef `json:"connections"`
}

// RequestedByAll is what a manifest asks for, by sort.
type RequestedByAll struct {
	Bindings         map[string]RequestedBinding `json:"bindings"`
	Secrets          []string                    `json:"secrets"`
	Streams          []string                    `json:"streams"`
	InteractionKinds []string                    `json:"interactionKinds"`
}

// RequestedBinding is a facility that a manifest asks for.
type RequestedBinding struct {
	Required bool             `json:"required"`
	Hosts    []string         `json:"hosts,omitempty"`  // network
	Mounts   []RequestedMount `json:"mounts,omitempty"` // filesystem
	// Browser is what is asked of a browser (browser.md B8).
	Browser *abi.BrowserRequest `json:"browser,omitempty"`
	// Other says that it is approved under Bindings.Other.
	Other bool `json:"other,omitempty"`
	// Words say in sentences what a connector may do once it is approved; none where
	// the other members say all.
	Words []string `json:"words,omitempty"`
}

// RequestedMount is a directory that a connector wants to see.
type RequestedMount struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable"`
	Purpose  string `json:"purpose,omitempty"`
}

type ABI struct {
	Family  string `json:"family"` // sluice or stdio
	Version string `json:"version"`
}

type Source struct {
	Type string `json:"type"` // upload, digest, file, bundled
	Ref  string `json:"ref,omitempty"`
}

type Signature struct {
	Status string `json:"status"` // verified or unsigned
	Signer string `json:"signer,omitempty"`
}

// Warning is G25, or why an install needs a second look.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ConnectionRef names a connection of a connector (A173).
type ConnectionRef struct {
	ConnectionID string `json:"connectionId"`
	DisplayName  string `json:"displayName"`
	Ready        bool   `json:"ready"`
	Schedule     string `json:"schedule"` // effective mode of its schedule, or none
}

// Inspection is a module that was looked at and not stored (A172).
type Inspection struct {
	Manifest  json.RawMessage `json:"manifest"`
	Requested RequestedByAll  `json:"requested"`
	Imports   []string        `json:"imports"`
	Findings  []Warning       `json:"findings"`
	Signature Signature       `json:"signature"`
	Pinned    string          `json:"pinned,omitempty"` // the key that modules of this connector must be signed with
	Digest    string          `json:"digest"`
	Size      int64           `json:"size"`
	// Words are what it asks for, in sentences for people.
	Words []string `json:"words"`
}

// NewConnection is the body of A181.
type NewConnection struct {
	ConnectorName   string          `json:"connectorName"`
	ConnectionID    string          `json:"connectionId,omitempty"`
	Version         string          `json:"version,omitempty"`
	DisplayName     string          `json:"displayName,omitempty"`
	Mode            string          `json:"mode,omitempty"` // live or test
	Settings        json.RawMessage `json:"settings,omitempty"`
	CollectionSince string          `json:"collectionSince,omitempty"`
	ProfileName     string          `json:"profileName,omitempty"`
	LeakCanary      string          `json:"leakCanary,omitempty"`
}

// ChangeConnection is the body of A184; nil leaves a member as it is.
type ChangeConnection struct {
	DisplayName     *string         `json:"displayName,omitempty"`
	Settings        json.RawMessage `json:"settings,omitempty"`
	Version         *string         `json:"version,omitempty"`
	Enabled         *bool           `json:"enabled,omitempty"`
	CollectionSince *string         `json:"collectionSince,omitempty"`
	ProfileName     *string         `json:"profileName,omitempty"`
	LeakCanary      *string         `json:"leakCanary,omitempty"`
}

// Connection is A193.
type Connection struct {
	ConnectionID    string          `json:"connectionId"`
	DisplayName     string          `json:"displayName"`
	ConnectorID     string          `json:"connectorId"`
	ConnectorName   string          `json:"connectorName"`
	Version         string          `json:"version"`
	ModuleDigest    string          `json:"moduleDigest"`
	Manifest        json.RawMessage `json:"manifest,omitempty"` // that was approved, unless the installed one is
	Mode            string          `json:"mode"`
	Enabled         bool            `json:"enabled"`
	Ready           bool            `json:"ready"`
	NotReady        []string        `json:"notReady"`
	Settings        json.RawMessage `json:"settings"`
	Secrets         []Secret        `json:"secrets"`
	Grant           *Grant          `json:"grant"`
	Bindings        Bindings        `json:"bindings"`
	ProfileName     string          `json:"profileName"`
	CollectionSince string          `json:"collectionSince,omitempty"`
	LeakCanary      string          `json:"leakCanary"`
	Schedule        *Schedule       `json:"schedule"`
	LastRun         *LastRun        `json:"lastRun,omitempty"`
	ActiveRunID     string          `json:"activeRunId,omitempty"`
	NeedsAttention  bool            `json:"needsAttention"`
	CreatedAt       time.Time       `json:"createdAt"`
	Revision        uint64          `json:"revision"`
}

// LastRun is the newest run of a connection that is over.
type LastRun struct {
	RunID          string    `json:"runId"`
	Status         string    `json:"status"`
	Outcome        string    `json:"outcome,omitempty"` // complete, partial, failed, cancelled
	TerminalReason string    `json:"terminalReason,omitempty"`
	StartedAt      time.Time `json:"startedAt"`
	FinishedAt     time.Time `json:"finishedAt"`
	Records        int64     `json:"records"`
}

// Requested is what a connection's connector asks for (A186).
type Requested struct {
	Streams  []RequestedStream           `json:"streams"`
	Bindings map[string]RequestedBinding `json:"bindings"`
	Secrets  []Secret                    `json:"secrets"`
	// Words say the same in sentences; Missing are those not yet given.
	Words   []string `json:"words"`
	Missing []string `json:"missing"`
}

// RequestedStream is a stream with what a grant may choose of it.
type RequestedStream struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Fields      []string `json:"fields"`
	Views       []string `json:"views"`
	Required    bool     `json:"required"`
	TimeRange   bool     `json:"timeRange"` // its records have a consent time
	Resources   bool     `json:"resources"` // they can be chosen by resource
}

// GrantTerms is the body of A187.
type GrantTerms struct {
	Scope      json.RawMessage `json:"scope"` // null: everything declared
	AccessMode string          `json:"accessMode"`
	ExpiresAt  *time.Time      `json:"expiresAt,omitempty"`
	// Narrow says that stored records may lose fields that Scope leaves out.
	Narrow bool `json:"narrow,omitempty"`
}

// Grant is A195.
type Grant struct {
	GrantID    string          `json:"grantId"`
	Scope      json.RawMessage `json:"scope"`
	AccessMode string          `json:"accessMode"`
	Status     string          `json:"status"` // active, consumed, expired, revoked, invalid
	ApprovedBy string          `json:"approvedBy"`
	ApprovedAt time.Time       `json:"approvedAt"`
	ExpiresAt  *time.Time      `json:"expiresAt,omitempty"`
}

// Bindings are approved bindings (A189).
type Bindings struct {
	Network           *NetworkBinding              `json:"network,omitempty"`
	Filesystem        *FilesystemBinding           `json:"filesystem,omitempty"`
	Interactive       *bool                        `json:"interactive,omitempty"`
	Browser           *BrowserBinding              `json:"browser,omitempty"` // nil: not approved
	Other             map[string]json.RawMessage   `json:"other,omitempty"`   // bindings that have no member here, by name
	Destinations      map[string][]abi.Destination `json:"destinations,omitempty"`
	PlainAcknowledged []string                     `json:"plainAcknowledged,omitempty"`
}

// Empty reports whether nothing is approved, nor taken away.
func (b Bindings) Empty() bool {
	return b.Network == nil && b.Filesystem == nil && b.Browser == nil && b.Interactive == nil &&
		len(b.Other)+len(b.Destinations)+len(b.PlainAcknowledged) == 0
}

type NetworkBinding struct {
	Hosts []string `json:"hosts"`
}

// BrowserBinding approves a browser. Its hosts are those of the network (B8);
// Profile is the connection's profile name, "" for the one it has.
type BrowserBinding struct {
	Profile string `json:"profile,omitempty"`
}

type FilesystemBinding struct {
	Mounts []Mount `json:"mounts"`
}

// Mount is an approved directory.
type Mount struct {
	Name     string `json:"name"`
	HostPath string `json:"hostPath"`
	Mode     string `json:"mode"` // ro or rw
}

// Secret is what may be known of a secret (A191).
type Secret struct {
	Name         string            `json:"name"`
	Label        string            `json:"label,omitempty"`
	Required     bool              `json:"required"`
	Set          bool              `json:"set"`
	SetAt        *time.Time        `json:"setAt,omitempty"`
	Delivery     string            `json:"delivery"` // sealed or plain
	Destinations []abi.Destination `json:"destinations"`
	OAuth        bool              `json:"oauth,omitempty"` // authorized, not typed
}

// ScheduleDefinition is what an owner says of a schedule (runtime.md §22.1);
// nil members have their default.
type ScheduleDefinition struct {
	Cron            string `json:"cron,omitempty"`
	IntervalSeconds *int64 `json:"intervalSeconds,omitempty"`
	Timezone        string `json:"timezone,omitempty"`
	JitterSeconds   *int64 `json:"jitterSeconds,omitempty"`
	Enabled         *bool  `json:"enabled,omitempty"`
	CatchUp         *bool  `json:"catchUp,omitempty"`
	MaxRetries      *int64 `json:"maxRetries,omitempty"`
}

// ScheduleTerms are a ScheduleDefinition that was checked and completed.
//
// Invariant: exactly one of Cron and IntervalSeconds is set.
type ScheduleTerms struct {
	Cron            string `json:"cron,omitempty"`
	IntervalSeconds int64  `json:"intervalSeconds,omitempty"`
	Timezone        string `json:"timezone,omitempty"` // "" for an interval
	JitterSeconds   int64  `json:"jitterSeconds"`
	Enabled         bool   `json:"enabled"`
	CatchUp         bool   `json:"catchUp"`
	MaxRetries      int64  `json:"maxRetries"`
}

// Schedule is the terms of a schedule with its status.
type Schedule struct {
	ConnectionID string `json:"connectionId"`
	Revision     uint64 `json:"revision"`
	ScheduleTerms

	EffectiveMode          string     `json:"effectiveMode"` // automatic, manual or paused
	HumanAttentionNeeded   bool       `json:"humanAttentionNeeded"`
	IneligibilityReason    string     `json:"ineligibilityReason,omitempty"` // the gate that would refuse now
	LastErrorCode          string     `json:"lastErrorCode,omitempty"`
	LastStartedAt          *time.Time `json:"lastStartedAt,omitempty"`
	LastFinishedAt         *time.Time `json:"lastFinishedAt,omitempty"`
	LastSuccessfulAt       *time.Time `json:"lastSuccessfulAt,omitempty"`
	NextDueAt              *time.Time `json:"nextDueAt,omitempty"`
	ActiveRunID            string     `json:"activeRunId,omitempty"`
	HeldUp                 string     `json:"heldUp,omitempty"` // what keeps a run that is due from starting or going on, as a sentence
	TicksSkippedOverlap    int64      `json:"ticksSkippedOverlap"`
	MinimumIntervalWarning bool       `json:"minimumIntervalWarning"`
	SchedulerBackoff       *Backoff   `json:"schedulerBackoff,omitempty"`
	AutomationMode         string     `json:"automationMode"` // unattended, assisted or ask_before_run
}

// Backoff is what a streak of failures does to a schedule.
type Backoff struct {
	Applied                bool       `json:"backoffApplied"` // the next due time would be skipped
	ConsecutiveFailures    int        `json:"consecutiveFailures"`
	ReasonClass            string     `json:"reasonClass"`
	NextRunAt              *time.Time `json:"nextRunAt,omitempty"`    // nil while it is blocked
	RecommendedHealthState string     `json:"recommendedHealthState"` // cooling_off or blocked
}

// Tick is a history record: one due time, or why it was skipped.
type Tick struct {
	Attempt                int             `json:"attempt"`
	Status                 string          `json:"status"`            // succeeded, failed, cancelled, skipped
	Outcome                string          `json:"outcome,omitempty"` // of a run: complete, partial, failed, cancelled
	ConnectorID            string          `json:"connectorId"`
	ConnectionID           string          `json:"connectionId"`
	Source                 json.RawMessage `json:"source,omitempty"`
	RunID                  string          `json:"runId,omitempty"`
	TraceID                string          `json:"traceId,omitempty"`
	StartedAt              time.Time       `json:"startedAt"`
	CompletedAt            time.Time       `json:"completedAt"`
	RecordsEmitted         *int64          `json:"recordsEmitted"` // nil: nobody knows any more
	ReportedRecordsEmitted *int64          `json:"reportedRecordsEmitted,omitempty"`
	CheckpointSummary      json.RawMessage `json:"checkpointSummary,omitempty"`
	KnownGaps              json.RawMessage `json:"knownGaps,omitempty"`
	ConnectorError         json.RawMessage `json:"connectorError,omitempty"`
	FailureReason          string          `json:"failureReason,omitempty"`
	TerminalReason         string          `json:"terminalReason,omitempty"`
	State                  json.RawMessage `json:"state,omitempty"`
	Error                  string          `json:"error,omitempty"`
	TriggerKind            string          `json:"triggerKind"`
	CatchUp                bool            `json:"catchUp,omitempty"`
}

// Statistics sum up the ticks of a connection. Skipped ones are no runs.
type Statistics struct {
	TotalRuns    int64 `json:"totalRuns"`
	Succeeded    int64 `json:"succeeded"`
	Partial      int64 `json:"partial"` // of those that succeeded, left something out
	Failed       int64 `json:"failed"`
	Cancelled    int64 `json:"cancelled"`
	Skipped      int64 `json:"skipped"`
	TotalRecords int64 `json:"totalRecords"`
	LastRun      *Tick `json:"lastRun"` // the newest record
}

// Info is A230.
type Info struct {
	Version   string           `json:"version"`
	Commit    string           `json:"commit,omitempty"`
	StartedAt time.Time        `json:"startedAt"`
	Sandbox   SandboxInfo      `json:"sandbox"`
	Store     string           `json:"store"` // driver and directory
	Limits    map[string]int64 `json:"limits"`
	Warnings  []Warning        `json:"warnings"`
	HostID    string           `json:"hostId"`
	BootEpoch string           `json:"bootEpoch"`
	Browser   BrowserInfo      `json:"browser"`
	Runs      RunsInfo         `json:"runs"`
}

// RunsInfo says how many runs there are, and how many there may be.
type RunsInfo struct {
	Running  int `json:"running"`  // execute, of AtOnce
	Queued   int `json:"queued"`   // wait for a place to execute
	Standing int `json:"standing"` // wait for their owner, or are paused; they take no place
	Accepted int `json:"accepted"` // active at all
	AtOnce   int `json:"atOnce"`
	Limit    int `json:"limit"` // beyond this many that are not standing a start is refused
}

// BrowserInfo says which browser runs are lent, or why none.
type BrowserInfo struct {
	Product string `json:"product,omitempty"` // with its version; "" for none
	Problem string `json:"problem,omitempty"` // why there is none, and what to do
	Egress  string `json:"egress,omitempty"`  // namespace or flags
	UID     string `json:"uid,omitempty"`     // own or shared
	Max     int    `json:"max"`               // surfaces at once
	Live    int    `json:"live"`
}

// SandboxInfo says what guests run in.
type SandboxInfo struct {
	Engine        string          `json:"engine"`
	EngineVersion string          `json:"engineVersion"`
	Isolation     json.RawMessage `json:"isolation"` // security.md S20
}

// AuditQuery selects entries of the audit log (A224).
type AuditQuery struct {
	Action, Actor, Target string
	From, Until           time.Time
	Before                uint64 // sequence; 0 is the newest
	Limit                 int
}

// AuditEntry is A224.
type AuditEntry struct {
	AuditID   string            `json:"auditId"`
	At        time.Time         `json:"at"`
	Actor     string            `json:"actor"`
	Action    string            `json:"action"`
	Target    string            `json:"target"`
	Outcome   string            `json:"outcome"`
	RequestID string            `json:"requestId,omitempty"`
	Address   string            `json:"address,omitempty"`
	PrevHash  string            `json:"prevHash"`
	Hash      string            `json:"hash"`
	Details   map[string]string `json:"details,omitempty"`
}
