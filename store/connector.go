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
	// Conformance marks a connector that tests the API: its runs have connections of
	// their own.
	Conformance bool `json:"conformance,omitempty"`
	// Revision grows by one whenever another module takes its place.
	Revision uint64 `json:"revision,omitempty"`
}

// A Warning says that a module and its manifest do not fit.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A Signer is the key that signed a module.
type Signer struct {
	KeyID string `json:"key_id"`     // for people; anyone can make a key with the same id
	Key   string `json:"public_key"` // as minisign writes it
}

// A Pin is the publisher's key of a connector: modules under its id must be
// signed with it. It outlives the connector, so that uninstalling and
// installing again is no way around it.
type Pin struct {
	ConnectorID ConnectorID `json:"connector_id"`
	Name        string      `json:"connector_name"`
	Signer      Signer      `json:"signer"`
	PinnedAt    time.Time   `json:"pinned_at"`
}

// A Connection is a named instance of a connector: the unit that runs.
type Connection struct {
	ID              ConnectionID    `json:"connection_id"`
	ConnectorID     ConnectorID     `json:"connector_id"`
	DisplayName     string          `json:"display_name,omitempty"`
	Enabled         bool            `json:"enabled"`
	Settings        json.RawMessage `json:"settings,omitempty"` // object; never a secret
	Grant           *Grant          `json:"grant,omitempty"`    // nil is the owner's own collection
	Approved        Approved        `json:"approved_bindings"`
	CollectionSince string          `json:"collection_since,omitempty"`
	LeakCanary      string          `json:"leak_canary,omitempty"`  // enforce (default) or off
	Mode            string          `json:"mode,omitempty"`         // live (default) or test
	ProfileName     string          `json:"profile_name,omitempty"` // of its browser; the connection's id unless named
	Labels          []string        `json:"labels,omitempty"`       // that a host must have to run it
	// Revision grows by one with every change that is asked for.
	Revision uint64 `json:"revision,omitempty"`
	// Withdrawals counts how often something that was given was taken back: a run
	// that was planned before the last one ends.
	Withdrawals uint64          `json:"withdrawals,omitempty"`
	Digest      Digest          `json:"digest"`             // module the owner approved
	Manifest    json.RawMessage `json:"manifest,omitempty"` // the active manifest, pinned
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	// Temporary marks the connection of one run of a conformance connector, which
	// goes when the run does.
	Temporary bool `json:"temporary,omitempty"`
}

// A Grant is the owner's permission on a connection.
type Grant struct {
	ID         GrantID         `json:"grant_id"`        // "" is the owner's own, in the global namespace
	AccessMode string          `json:"access_mode"`     // continuous or single_use
	Scope      json.RawMessage `json:"scope,omitempty"` // null: everything declared
	ExpiresAt  *time.Time      `json:"expires_at,omitempty"`
	Status     string          `json:"status"` // active, consumed, expired, revoked, invalid
	// Ref names the approval to people: gra_ and a ULID. It is no namespace: state
	// outlives a grant that is replaced.
	Ref        string    `json:"ref,omitempty"`
	ApprovedBy string    `json:"approved_by,omitempty"`
	ApprovedAt time.Time `json:"approved_at,omitzero"`
}

// Fault says why a grant cannot be used at a time: grant_consumed,
// grant_expired, grant_revoked, grant_invalid, or "" when it can. A nil
// grant is the owner's own collection without bounds.
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

// Approved is what the owner let a connection reach.
type Approved struct {
	Hosts   []string `json:"hosts,omitempty"`
	Mounts  []Mount  `json:"mounts,omitempty"`
	Browser bool     `json:"browser,omitempty"`
	// Other are approvals of bindings that have no member here, by their names.
	Other map[string]json.RawMessage `json:"other,omitempty"`
	// NoInteractive: the connector may not ask its owner.
	NoInteractive bool `json:"no_interactive,omitempty"`
	// Plain are the secrets that the owner agreed to have the connector see.
	Plain []string `json:"plain_acknowledged,omitempty"`
	// Destinations are where secrets may go, by their names, at servers that the
	// manifest leaves to the owner.
	Destinations map[string][]abi.Destination `json:"destinations,omitempty"`
}

// A Mount is an approved directory. Path is a host path and never leaves the
// host; guests see Name.
type Mount struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Writable bool   `json:"writable,omitempty"`
	Device   uint64 `json:"device,omitempty"` // checked at every run
	Inode    uint64 `json:"inode,omitempty"`
}
