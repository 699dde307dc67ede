package host

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
)

// RequestedBinding is a facility that a manifest asks for.
type RequestedBinding struct {
	Required bool                `json:"required"`
	Hosts    []string            `json:"hosts,omitempty"`  // network
	Mounts   []RequestedMount    `json:"mounts,omitempty"` // filesystem
	Browser  *abi.BrowserRequest `json:"browser,omitempty"`
	// Other says that the binding is approved under Bindings.Other.
	Other bool `json:"other,omitempty"`
	// Words say in sentences what an approval permits; empty where the other members say it
	// all.
	Words []string `json:"words,omitempty"`
}

// RequestedMount is a directory that a connector wants to see.
type RequestedMount struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable"`
	Purpose  string `json:"purpose,omitempty"`
}

// Bindings are approved bindings.
type Bindings struct {
	Network     *NetworkBinding    `json:"network,omitempty"`
	Filesystem  *FilesystemBinding `json:"filesystem,omitempty"`
	Interactive *bool              `json:"interactive,omitempty"`
	Browser     *BrowserBinding    `json:"browser,omitempty"` // nil: not approved
	// bindings without a member of their own, by name
	Other             map[string]json.RawMessage   `json:"other,omitempty"`
	Destinations      map[string][]abi.Destination `json:"destinations,omitempty"`
	PlainAcknowledged []string                     `json:"plainAcknowledged,omitempty"`
}

// Empty reports whether b neither approves nor withdraws anything.
func (b Bindings) Empty() bool {
	return b.Network == nil && b.Filesystem == nil && b.Browser == nil && b.Interactive == nil &&
		len(b.Other)+len(b.Destinations)+len(b.PlainAcknowledged) == 0
}

type NetworkBinding struct {
	Hosts []string `json:"hosts"`
}

// BrowserBinding approves a browser. The network binding has its hosts. Profile is the
// browser profile's name; "" keeps the connection's.
type BrowserBinding struct {
	Profile string `json:"profile,omitempty"`
}

type FilesystemBinding struct {
	Mounts []Mount `json:"mounts"`
}

// Mount is an approved directory.
type Mount struct {
	Name     string `json:"name"`
	HostPath string `json:"hostPath"`
	Mode     string `json:"mode"` // ro or rw
}
