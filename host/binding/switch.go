package binding

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A Switch implements most of a kind that is either approved or not. The approval is stored
// in Approved.Other and given by a flag with the binding's name. The embedding type opens
// the binding.
type Switch struct {
	Binding string // its name
	Words   string // what a connector wants to do, after "it wants to"
	Able    string // what a connector that imports Module can do
	Module  string // import module
}

// on is the stored form of an approval.
var on = json.RawMessage("true")

func (s Switch) approved(a store.Approved) bool { return string(a.Other[s.Binding]) == string(on) }

func (s Switch) declared(m *abi.Manifest) bool {
	_, declared := m.Bindings[s.Binding]
	return declared
}

func (s Switch) set(all map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(all)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	out[s.Binding] = on
	return out
}

// Name implements Kind.
func (s Switch) Name() string { return s.Binding }

// Request implements Kind.
func (s Switch) Request(_ abi.Binding, r *host.RequestedBinding) {
	r.Other, r.Words = true, []string{"It may " + s.Words + "."}
}

// Imports implements Kind.
func (s Switch) Imports() (prefix, words string) { return s.Module + ".", s.Able }

// Asks implements Kind.
func (s Switch) Asks(_ *abi.Manifest, a store.Approved) []Ask {
	ask := Ask{Wants: []Want{{Kind: "binding", Name: s.Binding, Words: s.Words}}, Words: s.Words, Granted: "granted"}
	if !s.approved(a) {
		ask.Flag = "--" + s.Binding
		ask.Missing, ask.Granted, ask.Lacks = ask.Wants, "only with "+ask.Flag, "its use (give it with "+ask.Flag+")"
	}
	return []Ask{ask}
}

// Granted implements Kind.
func (s Switch) Granted(m *abi.Manifest, a store.Approved) []string {
	if !s.approved(a) || !s.declared(m) {
		return nil
	}
	return []string{s.Words}
}

// AddToStart implements Kind. START does not mention the binding.
func (s Switch) AddToStart(*abi.Manifest, store.Connection, *abi.Bindings) error { return nil }

// Denial implements Kind.
func (s Switch) Denial() (code, message string) {
	return "binding_not_approved", "the binding " + s.Binding + " is not offered to this run"
}

// Approve implements Approver.
func (s Switch) Approve(q Approval, c *store.Connection) error {
	given, ok := q.Bindings.Other[s.Binding]
	switch {
	case !ok || string(given) == "false":
		return nil
	case string(given) != string(on):
		return host.Invalid("other."+s.Binding, "flag_expected", "want true or false")
	case !s.declared(q.Manifest):
		return host.NotRequested("other." + s.Binding)
	}
	c.Approved.Other = s.set(c.Approved.Other)
	return nil
}

// Read implements Approver.
func (s Switch) Read(q host.Bindings, a *store.Approved) {
	if string(q.Other[s.Binding]) == string(on) {
		a.Other = s.set(a.Other)
	}
}

// Show implements Approver.
func (s Switch) Show(c store.Connection, _ bool, q *host.Bindings) {
	if s.approved(c.Approved) {
		q.Other = s.set(q.Other)
	}
}

// Merge implements Approver.
func (s Switch) Merge(a *store.Approved, more store.Approved) {
	if s.approved(more) {
		a.Other = s.set(a.Other)
	}
}

// Withdraw implements Approver.
func (s Switch) Withdraw(a *store.Approved, names []string) (missing []string) {
	if !s.approved(*a) {
		missing = slices.Clone(names)
	}
	a.Other = maps.Clone(a.Other)
	delete(a.Other, s.Binding)
	return missing
}

// Narrower implements Approver.
func (s Switch) Narrower(old, new store.Approved) bool { return s.approved(old) && !s.approved(new) }

// Flag implements Commander.
func (s Switch) Flag() Flag {
	return Flag{Name: s.Binding, Usage: "let the connector " + s.Words, Switch: true, Take: s.Binding,
		TakeUsage: "only the use of the binding " + s.Binding}
}

// ParseFlag implements Commander.
func (s Switch) ParseFlag(v FlagValues) (store.Approved, error) {
	if len(v.Values) == 0 {
		return store.Approved{}, nil
	}
	if !s.declared(v.Manifest) {
		return store.Approved{}, errors.New("--" + s.Binding + ": the connector does not ask for it")
	}
	return store.Approved{Other: s.set(nil)}, nil
}

// Offer implements Commander.
func (s Switch) Offer(m *abi.Manifest, a store.Approved) (words string, more store.Approved) {
	if !s.declared(m) || s.approved(a) {
		return "", more
	}
	return s.Words, store.Approved{Other: s.set(nil)}
}

// Choices implements Commander.
func (s Switch) Choices(*abi.Manifest, store.Approved) []Choice { return nil }
