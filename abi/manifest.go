package abi

import (
	"encoding/json"
	"slices"
)

// A Manifest says what a connector is, collects and asks for. The connector's author writes
// it, so it holds claims and requests, never rights.
type Manifest struct {
	ProtocolVersion string
	ConnectorID     string
	ConnectorKey    string
	Version         string
	DisplayName     string
	Bindings        map[string]Binding // requested, by name
	HumanKinds      []string           // interaction kinds that it announces
	RefreshPolicy   json.RawMessage
	CaptureFields   []SecretField // setup.credential_capture
	ReasonMessages  map[string]string
	Streams         []StreamSpec
	Sluice          *SluiceBlock // nil for a manifest without a sluice block
	// Raw is the manifest's source, unknown members included.
	Raw json.RawMessage

	byName map[string]int
}

// A Binding is a facility that the manifest asks for.
type Binding struct {
	Required bool            `json:"required"`
	Hosts    []string        `json:"hosts,omitempty"`   // network
	Rate     Rate            `json:"rate,omitzero"`     // network
	Mounts   []MountRequest  `json:"mounts,omitempty"`  // filesystem
	Browser  *BrowserRequest `json:"browser,omitempty"` // never nil for browser
	Members  json.RawMessage `json:"-"`                 // source of a binding that this package does not read
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
	Open             bool // additionalProperties permits members beyond Properties
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
	CheckSchema      bool // reject records that do not match the schema
	Schema           json.RawMessage
}

// A Property is a member of a stream's records, as far as the host needs to know it.
type Property struct {
	Types  []string // JSON Schema types; empty means any
	Format string
}

// Availabilities of a stream.
const (
	Supported         = "supported"
	UnsupportedInMode = "unsupported_in_mode"
)

// Coverage strategies that affect checkpoints.
const (
	CheckpointWindow       = "checkpoint_window"
	ParentDetailAccounting = "parent_detail_accounting"
)

// A SluiceBlock is the manifest's part for Sluice; a manifest that has one is Sluice-aware.
type SluiceBlock struct {
	Settings          *Settings
	NodeID            string // default "collect"
	Secrets           []SecretField
	SessionTokens     []SessionToken
	InteractionFields map[string]FieldDelivery // "<kind>.<field>"
	Budgets           map[string]int64         // by name; may only lower the host's
	Resumable         bool                     // the next host continues a run that outlived its host
}

// A SecretField is a secret that the owner is asked for.
type SecretField struct {
	Name     string
	Label    string
	Required bool
	Secret   bool
	Env      []string
	OAuth    *OAuth // nil if the owner enters the value
	FieldDelivery
}

// LeftToOwner reports whether the owner has to name the secret's destination.
func (f SecretField) LeftToOwner() bool {
	return slices.ContainsFunc(f.Destinations, func(d Destination) bool { return d.Origin == OwnerOrigin })
}

// SecretFields lists the secrets that the manifest declares, in its sluice block or else in
// setup.credential_capture.
func (m *Manifest) SecretFields() []SecretField {
	if m.Sluice != nil {
		return m.Sluice.Secrets
	}
	return slices.DeleteFunc(slices.Clone(m.CaptureFields), func(f SecretField) bool { return !f.Secret })
}

// A FieldDelivery says how a value reaches the guest and where it may be sent.
type FieldDelivery struct {
	Delivery     string // sealed, plain, or "" for the default
	Destinations []Destination
}

// A Destination is where a sealed value may be sent.
type Destination struct {
	Origin     string   `json:"origin"`
	PathPrefix string   `json:"path_prefix,omitempty"`
	Placements []string `json:"placements"`
}

// OwnerOrigin is the origin of a destination that the owner has to name, because only the
// owner knows the server. Until then the value can be sent nowhere.
const OwnerOrigin = "owner"

// DefaultNode is the default name of a connector's only node.
const DefaultNode = "collect"

// Stream returns the declaration of a stream, or the zero value for an unknown one.
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

// Parents lists the streams whose checkpoints govern a stream: its declared parents.
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

// Node returns the name of the connector's only node.
func (m *Manifest) Node() string {
	if m.Sluice != nil && m.Sluice.NodeID != "" {
		return m.Sluice.NodeID
	}
	return DefaultNode
}

// Name returns the connector's name: the key, or the slug of the id.
func (m *Manifest) Name() string {
	if m.ConnectorKey != "" {
		return m.ConnectorKey
	}
	return SlugOf(m.ConnectorID)
}

func (r *manifestReader) sluice(m *Manifest, a at) {
	if !r.object(a, false) {
		return
	}
	b := &SluiceBlock{InteractionFields: map[string]FieldDelivery{}, Budgets: map[string]int64{}}
	if s := a.member("settings"); r.object(s, false) {
		b.Settings = r.settings(s)
	}
	if id := a.member("node_id"); !id.Absent() {
		if b.NodeID = r.text(id, 64, true); !IsSlug(b.NodeID) {
			r.fail(id, "node_id_invalid", "a slug: ^[a-z0-9][a-z0-9_-]{0,63}$")
		}
	}
	b.Secrets = r.secrets(a.member("secrets"), false)
	r.oauthSecrets(b, a.member("secrets"))
	r.sessionTokens(b, a.member("session_tokens"))
	if fields := a.member("interaction_fields"); r.object(fields, false) {
		for name := range fields.Members() {
			f := fields.member(name)
			if r.object(f, true) {
				b.InteractionFields[name] = r.delivery(f)
			}
		}
	}
	if budgets := a.member("budgets"); r.object(budgets, false) {
		for name := range budgets.Members() {
			n, ok := budgets.member(name).SafeInteger()
			if !ok || n <= 0 {
				r.fail(budgets.member(name), "budget_invalid", "a whole number of milliseconds above 0")
			}
			b.Budgets[name] = n
		}
	}
	b.Resumable = r.flag(a.member("resumable"))
	m.Sluice = b
}

// secrets reads secret declarations. Capture fields count as secrets only if they are
// marked secret; the others are settings of an unmodified connector.
func (r *manifestReader) secrets(a at, capture bool) []SecretField {
	var out []SecretField
	r.list(a, 64, func(i at) {
		if !r.object(i, true) {
			return
		}
		f := SecretField{
			Name: r.text(i.member("name"), 64, true), Label: r.text(i.member("label"), 200, false),
			Required: r.flag(i.member("required")), Secret: true,
			Env: r.env(i.member("env")), FieldDelivery: r.delivery(i),
		}
		if !isFieldName(f.Name) {
			r.fail(i.member("name"), "secret_name_invalid", "^[A-Za-z0-9_.-]{1,64}$")
		}
		if capture {
			f.Secret = r.flag(i.member("secret"))
		} else {
			f.OAuth = r.oauth(i.member("oauth"))
		}
		out = append(out, f)
	})
	return out
}

// delivery reads how a value is delivered and where it may be sent.
func (r *manifestReader) delivery(a at) FieldDelivery {
	d := FieldDelivery{Delivery: r.oneOf(a.member("delivery"), false, "sealed", "plain")}
	r.list(a.member("destinations"), 32, func(i at) {
		if r.object(i, true) {
			d.Destinations = append(d.Destinations, Destination{
				Origin:     r.text(i.member("origin"), 512, true),
				PathPrefix: r.text(i.member("path_prefix"), 512, false),
				Placements: r.texts(i.member("placements"), 16),
			})
		}
	})
	return d
}

// env reads names of environment variables.
func (r *manifestReader) env(a at) []string {
	names := r.texts(a, 8)
	for _, n := range names {
		if !isEnvName(n) {
			r.fail(a, "env_name_invalid", "names of the form ^[A-Z_][A-Z0-9_]*$, TZ excepted")
		}
	}
	return names
}

func isEnvName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && s != "TZ"
}

func isFieldName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
