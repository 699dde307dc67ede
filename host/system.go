package host

import (
	"context"
	"encoding/json"
	"time"
)

// System describes the host itself.
type System interface {
	Info(ctx context.Context) Info
	// Ready returns the names of the readiness checks that fail; none if the host is ready.
	Ready(ctx context.Context) (failed []string)
	AuditLog
}

// AuditLog records what was done to the host, and by whom.
type AuditLog interface {
	// Audit writes one entry. details hold counts, digests and codes, never values.
	Audit(ctx context.Context, action, target, outcome string, details map[string]string) error
	// AuditEntries lists newest first, those of all hosts if they share a store. A page may be
	// short or empty although more follow; next is not "" then.
	AuditEntries(ctx context.Context, q AuditQuery) (page []AuditEntry, next string, err error)
	// AuditCopies checks what hosts that share a store copied into it of their audit logs. It
	// reads all of it. There is none in a store that one host has to itself.
	AuditCopies(ctx context.Context) ([]AuditCopy, error)
}

// Info describes the host.
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

// RunsInfo counts active runs and their limits.
type RunsInfo struct {
	Running  int `json:"running"`  // executing, of AtOnce
	Queued   int `json:"queued"`   // waiting for a slot
	Idle     int `json:"standing"` // waiting for their owner or paused; these hold no slot
	Accepted int `json:"accepted"` // all active runs
	AtOnce   int `json:"atOnce"`
	Limit    int `json:"limit"` // a start is refused beyond this many, not counting Idle
}

// BrowserInfo describes the browser that runs get, or why there is none.
type BrowserInfo struct {
	Product string `json:"product,omitempty"` // with its version; "" for none
	Problem string `json:"problem,omitempty"` // why there is none, and what to do
	Egress  string `json:"egress,omitempty"`  // namespace or flags
	UID     string `json:"uid,omitempty"`     // own or shared
	Max     int    `json:"max"`               // surfaces at once
	Live    int    `json:"live"`
}

// SandboxInfo describes what guests run in.
type SandboxInfo struct {
	Engine        string          `json:"engine"`
	EngineVersion string          `json:"engineVersion"`
	Isolation     json.RawMessage `json:"isolation"` // isolation of a worker, by layer
}

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	Action, Actor, Target string
	From, Until           time.Time
	Before                string // what next was; "" starts at the newest
	Limit                 int
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	AuditID   string            `json:"auditId"`
	HostID    string            `json:"hostId,omitempty"` // that wrote it, among those that share a store
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

// AuditCopy is what the store has of the audit log of a host.
type AuditCopy struct {
	HostID string `json:"hostId"`
	// Log counts the logs of that host from 1. A further one means that another one was in the
	// place of its log.
	Log     uint64 `json:"log"`
	Self    bool   `json:"self"`    // it was compared with the log of the host that answers
	Entries uint64 `json:"entries"` // found
	Pending uint64 `json:"pending"` // entries of the log of this host that are not copied yet
	// HeadHash is the hash of the last entry, which covers all of them.
	HeadHash string       `json:"headHash"`
	Broken   int          `json:"broken"`
	Breaks   []AuditBreak `json:"breaks,omitempty"` // the first ones
}

// AuditBreak is a place that is not as it was written.
type AuditBreak struct {
	AuditID string `json:"auditId,omitempty"`
	Why     string `json:"why"`
}
