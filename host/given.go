package host

import "encoding/json"

// Given is what its owner starts a run with beyond what is stored, for this run
// alone. A connection that there is not is made.
type Given struct {
	// Module runs in place of the installed connector; nil for that. Signature is its
	// minisign signature, nil for none.
	Module    []byte `json:"-"`
	Signature []byte `json:"-"`
	// Replay is a recording to answer the connector from, without network and stored
	// secrets; nil for none.
	Replay []byte `json:"-"`

	Connection     string            `json:"connection,omitempty"` // "" is the connector's name
	Manifest       json.RawMessage   `json:"manifest,omitempty"`   // wins over the module's own
	Settings       json.RawMessage   `json:"settings,omitempty"`
	State          json.RawMessage   `json:"state,omitempty"` // cursors to start from
	ResetState     bool              `json:"resetState,omitempty"`
	Bindings       Bindings          `json:"bindings"` // beside what is approved
	Secrets        map[string]string `json:"secrets,omitempty"`
	Accepted       bool              `json:"accepted,omitempty"` // the owner looked at what this version asks for and who signed it
	NotInteractive bool              `json:"notInteractive,omitempty"`
	TimeOuts       bool              `json:"timeOuts,omitempty"` // an answer may be timeout, to try what the connector makes of it
	Strict         bool              `json:"strict,omitempty"`   // all records are checked against the schemas of the manifest
	Record         bool              `json:"record,omitempty"`   // keep what the connector asks for and gets; Recording has it
}

// Empty reports whether a run is given nothing.
func (g *Given) Empty() bool {
	return len(g.Module)+len(g.Replay)+len(g.Manifest)+len(g.Settings)+len(g.State)+len(g.Secrets) == 0 && g.Bindings.Empty() &&
		!g.ResetState && !g.Accepted && !g.NotInteractive && !g.TimeOuts && !g.Strict && !g.Record
}

// GivenGrant is what an owner gives a connection of a connector that need not be
// installed.
type GivenGrant struct {
	Connector string `json:"connector"` // the installed one, unless Given has a module
	// Given names the connection and the module, and what is approved. Nothing of it
	// that is for a run is looked at.
	Given *Given `json:"given"`
	// Terms replace those of the grant; nil keeps them, unless the grant cannot be used
	// any more: then the new one has none.
	Terms *GrantTerms `json:"terms,omitempty"`
}

// A Recording is what a run with Given.Record asked of servers and got, secrets
// scrubbed.
type Recording struct {
	Text      string         `json:"text"` // the file
	Exchanges int            `json:"exchanges"`
	Origins   map[string]int `json:"origins"`  // requests, by origin
	Scrubbed  []string       `json:"scrubbed"` // what was, as lines for people
}
