package host

import (
	"context"
	"encoding/json"
	"time"
)

// System is what is known of the host itself.
type System interface {
	Info(ctx context.Context) Info
	// Ready names the checks of readiness that fail; empty when the host is ready.
	Ready(ctx context.Context) (failed []string)
	AuditLog
}

// AuditLog is what was done to the host, and by whom.
type AuditLog interface {
	// Audit writes one entry. details are counts, digests and codes, never values.
	Audit(ctx context.Context, action, target, outcome string, details map[string]string) error
	// AuditEntries lists newest first; before 0 starts at the newest.
	AuditEntries(ctx context.Context, q AuditQuery) (page []AuditEntry, next uint64, err error)
}

// Info is what the host says of itself.
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
	Isolation     json.RawMessage `json:"isolation"` // what holds around a worker, by layer
}

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	Action, Actor, Target string
	From, Until           time.Time
	Before                uint64 // sequence; 0 is the newest
	Limit                 int
}

// AuditEntry is an entry of the audit log.
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
