package host

import (
	"context"
	"encoding/json"
	"time"
)

// Connectors installs, inspects and removes connectors.
type Connectors interface {
	// InstallConnector reports created false when this digest is installed already.
	InstallConnector(ctx context.Context, q InstallConnector) (c Connector, created bool, err error)
	InspectConnector(ctx context.Context, q InstallConnector) (Inspection, error)
	Connectors(ctx context.Context) ([]Connector, error)
	Connector(ctx context.Context, name string) (Connector, error)
	// UninstallConnector removes all versions, or one. The refusal is connector_in_use, with
	// connectionIds, when a connection needs it.
	UninstallConnector(ctx context.Context, name, version string) error
	// Pins are the publishers' keys that are pinned, of connectors that are not installed too.
	Pins(ctx context.Context) ([]Pin, error)
}

// InstallConnector is a module to install; either Module or Digest.
type InstallConnector struct {
	Module         []byte
	Digest         string // of bytes that the store holds
	Manifest       []byte // nil: the embedded one
	Signature      []byte // minisign, nil for none
	ExpectedDigest string
	// Force installs what would need a second look: an older version, another key.
	Force bool
	// Key is the publisher's public key that the owner names, as minisign writes it: no
	// other will do. "" is the pinned key, or on first use the one in the signature.
	Key string
	// Conformance marks a connector of the conformance suite, under its reserved name.
	Conformance bool
}

// Connector is an installed connector.
type Connector struct {
	ConnectorID  string          `json:"connectorId"`
	Name         string          `json:"connectorName"`
	Version      string          `json:"version"`
	ModuleDigest string          `json:"moduleDigest"`
	DisplayName  string          `json:"displayName"`
	Description  string          `json:"description,omitempty"`
	Manifest     json.RawMessage `json:"manifest"`
	Requested    RequestedByAll  `json:"requested"`
	Words        []string        `json:"words"` // what it asks for, in sentences
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

// Pin is the key with which the modules of a connector must be signed.
type Pin struct {
	ConnectorID string `json:"connectorId"`
	KeyID       string `json:"keyId"`
	PublicKey   string `json:"publicKey"` // as minisign writes it
}

// Warning says what is weak, or why an install needs a second look.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// WarningPolling is the code of a host that is not woken by those that share its store.
const WarningPolling = "notifications"

// ConnectionRef names a connection of a connector.
type ConnectionRef struct {
	ConnectionID string `json:"connectionId"`
	DisplayName  string `json:"displayName"`
	Ready        bool   `json:"ready"`
	Schedule     string `json:"schedule"` // effective mode of its schedule, or none
}

// Inspection is a module that was looked at and not stored.
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
