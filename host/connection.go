package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Connections manages configured connectors.
type Connections interface {
	CreateConnection(ctx context.Context, q NewConnection) (Connection, error)
	Connections(ctx context.Context) ([]Connection, error)
	Connection(ctx context.Context, id store.ConnectionID) (Connection, error)
	// ChangeConnection takes effect with the next run. A revision that is not nil must be
	// the current one; otherwise the refusal is precondition_failed.
	ChangeConnection(ctx context.Context, id store.ConnectionID, q ChangeConnection, revision *uint64) (Connection, error)
	// DeleteConnection keeps the collected data, or erases it too. It refuses with
	// run_already_active while a run is active.
	DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error
}

// State changes what a run leaves for the next one.
type State interface {
	// ResetState forgets the cursor of one stream, or of all streams for "".
	ResetState(ctx context.Context, id store.ConnectionID, grant store.GrantID, stream store.Stream) error
	// DismissAttention clears the mark of a connection whose runs need their owner.
	DismissAttention(ctx context.Context, id store.ConnectionID) error
}

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
	Labels          []string        `json:"labels,omitempty"`
}

// ChangeConnection changes a connection. A nil member stays as it is.
type ChangeConnection struct {
	DisplayName     *string         `json:"displayName,omitempty"`
	Settings        json.RawMessage `json:"settings,omitempty"`
	Version         *string         `json:"version,omitempty"`
	Enabled         *bool           `json:"enabled,omitempty"`
	CollectionSince *string         `json:"collectionSince,omitempty"`
	ProfileName     *string         `json:"profileName,omitempty"`
	LeakCanary      *string         `json:"leakCanary,omitempty"`
	Labels          *[]string       `json:"labels,omitempty"`
}

// Connection is a connector as its owner configured and approved it, with its status.
type Connection struct {
	ConnectionID    string          `json:"connectionId"`
	DisplayName     string          `json:"displayName"`
	ConnectorID     string          `json:"connectorId"`
	ConnectorName   string          `json:"connectorName"`
	Version         string          `json:"version"`
	ModuleDigest    string          `json:"moduleDigest"`
	Manifest        json.RawMessage `json:"manifest,omitempty"` // the approved one, unless that is the installed one
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
	Labels          []string        `json:"labels"` // what a host must have to run it
	Schedule        *Schedule       `json:"schedule"`
	LastRun         *LastRun        `json:"lastRun,omitempty"`
	ActiveRunID     string          `json:"activeRunId,omitempty"`
	NeedsAttention  bool            `json:"needsAttention"`
	CreatedAt       time.Time       `json:"createdAt"`
	Revision        uint64          `json:"revision"`
}

// LastRun is the newest finished run of a connection.
type LastRun struct {
	RunID          string    `json:"runId"`
	Status         string    `json:"status"`
	Outcome        string    `json:"outcome,omitempty"` // complete, partial, failed, cancelled
	TerminalReason string    `json:"terminalReason,omitempty"`
	StartedAt      time.Time `json:"startedAt"`
	FinishedAt     time.Time `json:"finishedAt"`
	Records        int64     `json:"records"`
}
