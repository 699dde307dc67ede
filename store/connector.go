package store

import (
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Connector is an installed module and its manifest.
type Connector struct {
	ID          ConnectorID     `json:"connector_id"`
	Name        string          `json:"connector_name"` // slug
	Version     string          `json:"version"`
	DisplayName string          `json:"display_name"`
	Digest      Digest          `json:"digest"`
	Transport   string          `json:"transport"` // abi or stdio
	Manifest    json.RawMessage `json:"manifest"`
	Bundled     bool            `json:"bundled"` // came with Sluice
	InstalledAt time.Time       `json:"installed_at"`
	Signer      *Signer         `json:"signer,omitempty"` // nil is an unsigned module
	InstalledBy string          `json:"installed_by,omitempty"`
	Source      string          `json:"source,omitempty"` // upload, digest, file or bundled
	Size        int64           `json:"size,omitempty"`   // of the module, in bytes
	Warnings    []Warning       `json:"warnings,omitempty"`
	// Conformance marks a connector that tests the API. Its runs have temporary
	// connections.
	Conformance bool `json:"conformance,omitempty"`
	// Revision grows by one when another module replaces this one.
	Revision uint64 `json:"revision,omitempty"`
}

// A Warning says that a module and its manifest disagree.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A Signer is the key that signed a module.
type Signer struct {
	KeyID string `json:"key_id"`     // for people; anyone can make a key with the same id
	Key   string `json:"public_key"` // in minisign's format
}

// A Pin is the publisher's key of a connector: modules with its id must be signed with it.
// It outlives the connector, so that uninstalling and reinstalling does not avoid it.
type Pin struct {
	ConnectorID ConnectorID `json:"connector_id"`
	Name        string      `json:"connector_name"`
	Signer      Signer      `json:"signer"`
	PinnedAt    time.Time   `json:"pinned_at"`
}

// A Connection is a configured instance of a connector: the unit that runs.
type Connection struct {
	ID              ConnectionID    `json:"connection_id"`
	ConnectorID     ConnectorID     `json:"connector_id"`
	DisplayName     string          `json:"display_name,omitempty"`
	Enabled         bool            `json:"enabled"`
	Settings        json.RawMessage `json:"settings,omitempty"` // object; never a secret
	Grant           *Grant          `json:"grant,omitempty"`    // nil means the owner's own collection
	Approved        Approved        `json:"approved_bindings"`
	CollectionSince string          `json:"collection_since,omitempty"`
	LeakCanary      string          `json:"leak_canary,omitempty"`  // enforce (default) or off
	Mode            string          `json:"mode,omitempty"`         // live (default) or test
	ProfileName     string          `json:"profile_name,omitempty"` // of its browser; defaults to the connection's id
	Labels          []string        `json:"labels,omitempty"`       // what a host must have to run it
	// Revision grows by one with every requested change.
	Revision uint64 `json:"revision,omitempty"`
	// Withdrawals counts withdrawn permissions. A run that was planned before the last
	// withdrawal ends.
	Withdrawals uint64          `json:"withdrawals,omitempty"`
	Digest      Digest          `json:"digest"`             // module the owner approved
	Manifest    json.RawMessage `json:"manifest,omitempty"` // the active manifest, pinned
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	// Temporary marks the connection of one run of a conformance connector, which is
	// deleted with the run.
	Temporary bool `json:"temporary,omitempty"`
}

// A Grant is the owner's permission on a connection.
type Grant struct {
	ID         GrantID         `json:"grant_id"`        // "" is the owner's own, in the global namespace
	AccessMode string          `json:"access_mode"`     // continuous or single_use
	Scope      json.RawMessage `json:"scope,omitempty"` // null: everything declared
	ExpiresAt  *time.Time      `json:"expires_at,omitempty"`
	Status     string          `json:"status"` // active, consumed, expired, revoked, invalid
	// Ref identifies the approval to people: gra_ and a ULID. It is not a namespace: state
	// outlives a replaced grant.
	Ref        string    `json:"ref,omitempty"`
	ApprovedBy string    `json:"approved_by,omitempty"`
	ApprovedAt time.Time `json:"approved_at,omitzero"`
}

// Fault returns why a grant cannot be used at a time: grant_consumed, grant_expired,
// grant_revoked, grant_invalid, or "" if it can. A nil grant is the owner's own unbounded
// collection.
func (g *Grant) Fault(at time.Time) string {
	switch {
	case g == nil:
	case g.Status == "consumed", g.Status == "expired", g.Status == "revoked", g.Status == "invalid":
		return "grant_" + g.Status
	case g.Status != "active", g.AccessMode != "continuous" && g.AccessMode != "single_use":
		return "grant_invalid"
	case g.ExpiresAt != nil && !at.Before(*g.ExpiresAt):
		return "grant_expired"
	}
	return ""
}

// Approved is what the owner permits a connection to use.
type Approved struct {
	Hosts   []string `json:"hosts,omitempty"`
	Mounts  []Mount  `json:"mounts,omitempty"`
	Browser bool     `json:"browser,omitempty"`
	// Other are approvals of bindings without a member of their own, by name.
	Other map[string]json.RawMessage `json:"other,omitempty"`
	// NoInteractive forbids the connector to ask its owner.
	NoInteractive bool `json:"no_interactive,omitempty"`
	// Plain are the secrets that the owner permits the connector to see.
	Plain []string `json:"plain_acknowledged,omitempty"`
	// Destinations are where secrets may be sent, by name, for destinations that the
	// manifest leaves to the owner.
	Destinations map[string][]abi.Destination `json:"destinations,omitempty"`
}

// A Mount is an approved directory. Path is a host path that never leaves the host; guests
// see Name.
type Mount struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Writable bool   `json:"writable,omitempty"`
	Device   uint64 `json:"device,omitempty"` // checked at every run
	Inode    uint64 `json:"inode,omitempty"`
}
