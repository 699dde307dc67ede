package host

import "encoding/json"

// Overrides take the place of stored configuration for one run. A connection that does not exist is
// created.
type Overrides struct {
	// Module runs in place of the installed connector; nil for the installed one. Signature
	// is its minisign signature, or nil.
	Module    []byte `json:"-"`
	Signature []byte `json:"-"`
	// Replay is a recording that answers the connector in place of network and stored
	// secrets; nil for none.
	Replay []byte `json:"-"`

	Connection string            `json:"connection,omitempty"` // "" is the connector's name
	Manifest   json.RawMessage   `json:"manifest,omitempty"`   // overrides the module's own
	Settings   json.RawMessage   `json:"settings,omitempty"`
	State      json.RawMessage   `json:"state,omitempty"` // cursors to start from
	ResetState bool              `json:"resetState,omitempty"`
	Bindings   Bindings          `json:"bindings"` // in addition to the approved ones
	Secrets    map[string]string `json:"secrets,omitempty"`
	// the owner has seen what this version asks for and who signed it
	Accepted       bool `json:"accepted,omitempty"`
	NotInteractive bool `json:"notInteractive,omitempty"`
	TimeOuts       bool `json:"timeOuts,omitempty"` // an answer may be timeout, to test how the connector handles it
	Strict         bool `json:"strict,omitempty"`   // check all records against the manifest's schemas
	Record         bool `json:"record,omitempty"`   // record the connector's exchanges for Runs.Recording
}

// Empty reports whether g overrides nothing.
func (g *Overrides) Empty() bool {
	return len(g.Module)+len(g.Replay)+len(g.Manifest)+len(g.Settings)+len(g.State)+len(g.Secrets) == 0 &&
		g.Bindings.Empty() &&
		!g.ResetState && !g.Accepted && !g.NotInteractive && !g.TimeOuts && !g.Strict && !g.Record
}

// ConnectorGrant is an approval for a connection whose connector need not be installed.
type ConnectorGrant struct {
	Connector string `json:"connector"` // the installed one, unless Overrides has a module
	// Overrides names the connection, the module and the bindings to approve. Members that
	// concern a run are ignored.
	Overrides *Overrides `json:"given"`
	// Terms replace those of the grant. Nil keeps them; a grant that is no longer usable is
	// then replaced by one without terms.
	Terms *GrantTerms `json:"terms,omitempty"`
}

// A Recording holds the exchanges of a run with Overrides.Record, with secrets scrubbed.
type Recording struct {
	Text      string         `json:"text"` // content of the recording file
	Exchanges int            `json:"exchanges"`
	Origins   map[string]int `json:"origins"`  // requests, by origin
	Scrubbed  []string       `json:"scrubbed"` // what was removed, one line each
}
