package host

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
)

// RequestedBinding is a facility that a manifest asks for.
type RequestedBinding struct {
	Required bool             `json:"required"`
	Hosts    []string         `json:"hosts,omitempty"`  // network
	Mounts   []RequestedMount `json:"mounts,omitempty"` // filesystem
	// Browser is what is asked of a browser.
	Browser *abi.BrowserRequest `json:"browser,omitempty"`
	// Other says that it is approved under Bindings.Other.
	Other bool `json:"other,omitempty"`
	// Words say in sentences what a connector may do once it is approved; none where
	// the other members say all.
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
	Network           *NetworkBinding              `json:"network,omitempty"`
	Filesystem        *FilesystemBinding           `json:"filesystem,omitempty"`
	Interactive       *bool                        `json:"interactive,omitempty"`
	Browser           *BrowserBinding              `json:"browser,omitempty"` // nil: not approved
	Other             map[string]json.RawMessage   `json:"other,omitempty"`   // bindings that have no member here, by name
	Destinations      map[string][]abi.Destination `json:"destinations,omitempty"`
	PlainAcknowledged []string                     `json:"plainAcknowledged,omitempty"`
}

// Empty reports whether nothing is approved, nor taken away.
func (b Bindings) Empty() bool {
	return b.Network == nil && b.Filesystem == nil && b.Browser == nil && b.Interactive == nil &&
		len(b.Other)+len(b.Destinations)+len(b.PlainAcknowledged) == 0
}

type NetworkBinding struct {
	Hosts []string `json:"hosts"`
}

// BrowserBinding approves a browser. Its hosts are those of the network; Profile is the
// connection's profile name, "" for the one it has.
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
