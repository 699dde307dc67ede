package abi

import (
	"encoding/json"
	"slices"
)

// A Manifest says what a connector is, collects and asks for (§3.1). It is
// written by the connector's author: everything in it is a claim or a request,
// nothing a right.
type Manifest struct {
	ProtocolVersion string
	ConnectorID     string
	ConnectorKey    string
	Version         string
	DisplayName     string
	Bindings        map[string]Binding // requested, by name
	HumanKinds      []string           // announced interaction kinds
	RefreshPolicy   json.RawMessage
	CaptureFields   []SecretField // setup.credential_capture, R156
	ReasonMessages  map[string]string
	Streams         []StreamSpec
	Sluice          *SluiceBlock // nil: the manifest knows nothing of Sluice
	// Raw is the manifest as it was read, unknown members included (R14).
	Raw json.RawMessage

	byName map[string]int
}

// A Binding is a facility that the manifest asks for.
type Binding struct {
	Required bool            `json:"required"`
	Hosts    []string        `json:"hosts,omitempty"`   // network
	Rate     Rate            `json:"rate,omitzero"`     // network
	Mounts   []MountRequest  `json:"mounts,omitempty"`  // filesystem
	Browser  *BrowserRequest `json:"browser,omitempty"` // browser, there never nil
}

// A Rate is the pace that a connector declares for its requests to each origin;
// zero members are the host's. It is only ever slower than the host's (S77).
type Rate struct {
	PerSecond float64 `json:"requests_per_second,omitempty"`
	Burst     int64   `json:"burst,omitempty"`
}

// A MountRequest names a directory the connector wants to see.
type MountRequest struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable,omitempty"`
	Purpose  string `json:"purpose,omitempty"`
}

// The bindings of version 1.
const (
	BindingNetwork     = "network"
	BindingFilesystem  = "filesystem"
	BindingInteractive = "interactive"
	BindingBrowser     = "browser"
)

// A StreamSpec declares one stream.
type StreamSpec struct {
	Name             string
	Properties       map[string]Property
	Open             bool // the schema says that there may be members beyond Properties
	Required         []string
	PrimaryKey       []string
	Semantics        string // append_only or mutable_state
	CursorField      string
	ConsentTimeField string
	ResourceField    string // selection.resource_field
	Incremental      bool
	Availability     string // "" is supported
	CoverageStrategy string
	StateStream      string
	ParentStreams    []string
	CheckSchema      bool // reject records that do not match the schema (R78)
	Schema           json.RawMessage
}

// A Property is a member of a stream's records as far as the host looks at it.
type Property struct {
	Types  []string // JSON Schema types; empty is any
	Format string
}

// Availabilities of a stream.
const (
	Supported         = "supported"
	UnsupportedInMode = "unsupported_in_mode"
)

// Coverage strategies that bear on checkpoints (§3.2).
const (
	CheckpointWindow       = "checkpoint_window"
	ParentDetailAccounting = "parent_detail_accounting"
)

// A SluiceBlock holds what only Sluice reads; its presence makes a manifest
// Sluice-aware.
type SluiceBlock struct {
	Settings          *Settings
	NodeID            string // default "collect"
	Secrets           []SecretField
	SessionTokens     []SessionToken
	InteractionFields map[string]FieldDelivery // "<kind>.<field>"
	Budgets           map[string]int64         // may only lower §19.1
}

// A SecretField is a secret the owner is asked for.
type SecretField struct {
	Name     string
	Label    string
	Required bool
	Secret   bool
	Env      []string
	OAuth    *OAuth // nil: the owner gives the value itself
	FieldDelivery
}

// A FieldDelivery says how a value reaches the guest and where it may go (§18).
type FieldDelivery struct {
	Delivery     string // sealed, plain, or "" for the default
	Destinations []Destination
}

// A Destination is where a sealed value may be put (R160).
type Destination struct {
	Origin     string   `json:"origin"`
	PathPrefix string   `json:"path_prefix,omitempty"`
	Placements []string `json:"placements"`
}

// OwnerOrigin is the origin of a destination that the manifest leaves to the
// owner, who alone knows where the server is. It leads nowhere until the owner
// names one (R157).
const OwnerOrigin = "owner"

// DefaultNode is the name of a connector's one node.
const DefaultNode = "collect"

// Stream returns the declaration of a stream; the zero value for an unknown
// one.
func (m *Manifest) Stream(name string) StreamSpec {
	if m == nil {
		return StreamSpec{}
	}
	if i, ok := m.byName[name]; ok {
		return m.Streams[i]
	}
	return StreamSpec{}
}

// Declares reports whether the manifest has a stream of that name.
func (m *Manifest) Declares(name string) bool {
	_, ok := m.byName[name]
	return ok
}

// Parents lists the streams whose checkpoints govern a stream: its declared
// parents, or none when it is self-mapped (§3.2).
func (m *Manifest) Parents(name string) []string {
	s := m.Stream(name)
	if s.StateStream != "" {
		return []string{s.StateStream}
	}
	return s.ParentStreams
}

// DependsOn reports whether a stream declares a parent, so that it has no
// cursor of its own.
func (m *Manifest) DependsOn(name string) bool { return len(m.Parents(name)) > 0 }

// Children lists the streams that declare name as a parent, in manifest order.
func (m *Manifest) Children(name string) []string {
	var out []string
	for _, s := range m.Streams {
		if s.StateStream == name || slices.Contains(s.ParentStreams, name) {
			out = append(out, s.Name)
		}
	}
	return out
}

// Node is the name of the connector's one node.
func (m *Manifest) Node() string {
	if m.Sluice != nil && m.Sluice.NodeID != "" {
		return m.Sluice.NodeID
	}
	return DefaultNode
}

// Name is the connector name (R2): the key, or the slug of the id.
func (m *Manifest) Name() string {
	if m.ConnectorKey != "" {
		return m.ConnectorKey
	}
	return SlugOf(m.ConnectorID)
}
