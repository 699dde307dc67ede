package store

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Connector is an installed module and its manifest.
type Connector struct {
	ID          ConnectorID     `json:"connector_id"`
	Name        string          `json:"connector_name"` // slug of R2
	Version     string          `json:"version"`
	DisplayName string          `json:"display_name"`
	Digest      Digest          `json:"digest"`
	Transport   string          `json:"transport"` // abi or stdio
	Manifest    json.RawMessage `json:"manifest"`
	Bundled     bool            `json:"bundled"` // came with Sluice (runtime.md §4)
	InstalledAt time.Time       `json:"installed_at"`
}

// A Connection is a named instance of a connector: the unit that runs (§2.1).
type Connection struct {
	ID              ConnectionID    `json:"connection_id"`
	ConnectorID     ConnectorID     `json:"connector_id"`
	DisplayName     string          `json:"display_name,omitempty"`
	Enabled         bool            `json:"enabled"`
	Settings        json.RawMessage `json:"settings,omitempty"` // object; never a secret (R219)
	Grant           *Grant          `json:"grant,omitempty"`    // nil is the owner's own collection
	Approved        Approved        `json:"approved_bindings"`
	CollectionSince string          `json:"collection_since,omitempty"`
	LeakCanary      string          `json:"leak_canary,omitempty"` // enforce (default) or off
	Digest          Digest          `json:"digest"`                // module the owner approved
	Manifest        json.RawMessage `json:"manifest,omitempty"`    // the active manifest, pinned
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
}

// A Grant is the owner's permission on a connection (§2.2).
type Grant struct {
	ID         GrantID         `json:"grant_id"`
	AccessMode string          `json:"access_mode"`     // continuous or single_use
	Scope      json.RawMessage `json:"scope,omitempty"` // null: everything declared
	ExpiresAt  *time.Time      `json:"expires_at,omitempty"`
	Status     string          `json:"status"` // active, consumed, expired, revoked, invalid
}

// Approved is what the owner let a connection reach (runtime.md §5).
type Approved struct {
	Hosts   []string `json:"hosts,omitempty"`
	Mounts  []Mount  `json:"mounts,omitempty"`
	Browser bool     `json:"browser,omitempty"`
	// Destinations are where secrets may go, by their names, at servers that the
	// manifest leaves to the owner (R157).
	Destinations map[string][]abi.Destination `json:"destinations,omitempty"`
}

// A Mount is an approved directory. Path is a host path and never leaves the
// host; guests see Name.
type Mount struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Writable bool   `json:"writable,omitempty"`
	Device   uint64 `json:"device,omitempty"` // checked at every run (S56)
	Inode    uint64 `json:"inode,omitempty"`
}
