package host

import (
	"context"
	"encoding/json"
	"time"
)

// Connectors installs, inspects and removes connectors.
type Connectors interface {
	// InstallConnector reports created false if this digest is installed already.
	InstallConnector(ctx context.Context, q InstallConnector) (c Connector, created bool, err error)
	InspectConnector(ctx context.Context, q InstallConnector) (Inspection, error)
	Connectors(ctx context.Context) ([]Connector, error)
	Connector(ctx context.Context, name string) (Connector, error)
	// UninstallConnector removes one version, or all of them. It refuses with
	// connector_in_use and connectionIds if a connection needs it.
	UninstallConnector(ctx context.Context, name, version string) error
	// Pins returns the pinned keys of publishers, including those of connectors that are no
	// longer installed.
	Pins(ctx context.Context) ([]Pin, error)
}

// InstallConnector is a module to install, by either Module or Digest.
type InstallConnector struct {
	Module         []byte
	Digest         string // of a module that the store holds
	Manifest       []byte // nil: the embedded one
	Signature      []byte // minisign, nil for none
	ExpectedDigest string
	// Force installs what is refused otherwise: an older version, or one signed with
	// another key.
	Force bool
	// Key is the only public key that the owner accepts, in minisign's format. "" is the
	// pinned key or, on first use, the one in the signature.
	Key string
	// Conformance marks a connector of the conformance suite, which has a reserved name.
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

// RequestedByAll is all that a manifest asks for.
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

// Pin is the key that must sign a connector's modules.
type Pin struct {
	ConnectorID string `json:"connectorId"`
	KeyID       string `json:"keyId"`
	PublicKey   string `json:"publicKey"` // in minisign's format
}

// Warning names a weakness, or why an install needs confirmation.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// WarningPolling is the code for a host that polls the shared store because it gets no
// notifications.
const WarningPolling = "notifications"

// ConnectionRef names a connection of a connector.
type ConnectionRef struct {
	ConnectionID string `json:"connectionId"`
	DisplayName  string `json:"displayName"`
	Ready        bool   `json:"ready"`
	Schedule     string `json:"schedule"` // effective mode of its schedule, or none
}

// Inspection describes a module without storing it.
type Inspection struct {
	Manifest  json.RawMessage `json:"manifest"`
	Requested RequestedByAll  `json:"requested"`
	Imports   []string        `json:"imports"`
	Findings  []Warning       `json:"findings"`
	Signature Signature       `json:"signature"`
	Pinned    string          `json:"pinned,omitempty"` // key that must sign this connector's modules
	Digest    string          `json:"digest"`
	Size      int64           `json:"size"`
	// Words say in sentences what it asks for.
	Words []string `json:"words"`
}
