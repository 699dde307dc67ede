// Package grant compares two documents: what a manifest asks for, and what its owner
// approved. What is asked of a binding its kind says. The package is pure.
package grant

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// A Want is one thing that a manifest asks for.
type Want = binding.Want

// Kinds of wants that belong to no binding.
const (
	Stream = "stream" // collect it
	Secret = "secret" // use it
	Send   = "send"   // have a secret or an answer sent somewhere: origin, path and placement
	See    = "see"    // receive a secret or an answer in plain text
	Obtain = "obtain" // have a secret obtained from a server, and with what parameters
)

// Of returns a want of one of these kinds. to says where, from where or how.
func Of(kind, name, to string) Want {
	w := Want{Kind: kind, Name: name, To: to}
	switch kind {
	case Stream:
		w.Words = strings.TrimSpace("collect " + name + " " + to)
	case Secret:
		w.Words = strings.TrimSpace("use the secret " + name + " " + to)
	case Send:
		if rest, left := strings.CutPrefix(to, abi.OwnerOrigin); left {
			to = "the server that you name" + rest
		}
		w.Words = "have " + name + " sent to " + to
	case Obtain:
		w.Words = "have " + name + " obtained " + to
	case See:
		w.Words = "see " + name + " itself"
	}
	return w
}

// Wants returns what a manifest asks for, without duplicates.
func Wants(ks binding.Kinds, m *abi.Manifest) []Want {
	var l list
	for _, s := range m.Streams {
		l.add(Stream, s.Name, "")
	}
	for _, name := range sorted(m.Bindings) {
		l.binding(ks, m, name)
	}
	if m.Sluice == nil {
		for _, f := range m.CaptureFields {
			if f.Secret {
				l.add(Secret, f.Name, "")
				l.add(See, f.Name, "") // it does not use handles
			}
		}
		l.add(See, "every answer of yours", "")
		return l.wants
	}
	for _, f := range m.Sluice.Secrets {
		l.add(Secret, f.Name, "")
		l.delivery(f.Name, f.FieldDelivery)
		if f.OAuth != nil {
			l.obtain(f.Name, f.OAuth)
		}
	}
	for _, name := range sorted(m.Sluice.InteractionFields) {
		l.delivery(name, m.Sluice.InteractionFields[name])
	}
	for _, t := range m.Sluice.SessionTokens {
		l.delivery(t.Name, abi.FieldDelivery{Destinations: []abi.Destination{{Origin: t.Origin, Placements: t.Placements}}})
	}
	return l.wants
}

// Added returns what asked asks for and approved did not. Asking for less, or requiring what was
// optional, adds nothing.
func Added(ks binding.Kinds, approved, asked *abi.Manifest) []Want {
	known := map[Want]bool{}
	for _, w := range Wants(ks, approved) {
		known[w] = true
	}
	for _, a := range ks.Asks(approved, store.Approved{}) {
		for _, w := range a.Implied {
			known[w] = true
		}
	}
	return slices.DeleteFunc(append(Wants(ks, asked), unsaid(approved, asked)...), func(w Want) bool { return known[w] })
}

// unsaid returns what asked gains by declaring less: answers that approved has sealed and that now
// depend on how the connector asks, and the secrets themselves where approved only obtains others
// with them.
func unsaid(approved, asked *abi.Manifest) []Want {
	var l list
	if approved.Sluice == nil {
		return nil
	}
	obtained := func(m *abi.Manifest, name string) bool {
		return m.Sluice != nil &&
			slices.ContainsFunc(m.Sluice.Secrets, func(f abi.SecretField) bool { return f.Name == name && f.OAuth != nil })
	}
	for _, f := range asked.SecretFields() {
		if obtained(approved, f.Name) && !obtained(asked, f.Name) {
			l.add(Secret, f.Name, "itself, not what is obtained with it")
		}
	}
	for _, t := range approved.Sluice.SessionTokens {
		if asked.Sluice == nil || !slices.ContainsFunc(asked.Sluice.SessionTokens, t.Same) {
			l.add(See, t.Name, "")
		}
	}
	if asked.Sluice == nil {
		return l.wants // it sees all answers
	}
	for _, name := range sorted(approved.Sluice.InteractionFields) {
		if approved.Sluice.InteractionFields[name].Delivery == "sealed" &&
			asked.Sluice.InteractionFields[name].Delivery == "" {
			l.add(See, name, "")
		}
	}
	return l.wants
}

// A list collects wants without duplicates.
type list struct {
	wants []Want
	seen  map[Want]bool
}

func (l *list) add(kind, name, to string) { l.append(Of(kind, name, to)) }

func (l *list) append(wants ...Want) {
	for _, w := range wants {
		if l.seen[w] {
			continue
		}
		if l.seen == nil {
			l.seen = map[Want]bool{}
		}
		l.seen[w] = true
		l.wants = append(l.wants, w)
	}
}

// binding adds what a manifest asks of a binding. The owner decides about each question separately.
func (l *list) binding(ks binding.Kinds, m *abi.Manifest, name string) {
	k, known := ks.Of(name)
	switch {
	case known:
		for _, a := range k.Asks(m, store.Approved{}) {
			l.append(a.Wants...)
		}
	case name != abi.BindingInteractive:
		l.append(Want{Kind: "binding", Name: name, Words: "use the binding " + name})
	}
}

func (l *list) delivery(name string, d abi.FieldDelivery) {
	if d.Delivery == "plain" {
		l.add(See, name, "")
	}
	for _, to := range d.Destinations {
		for _, p := range to.Placements {
			l.add(Send, name, to.Origin+to.PathPrefix+" ("+p+")")
		}
	}
}

// obtain adds what is sent where for an access token. Another server, client, scope or parameter is
// a different want.
func (l *list) obtain(name string, o *abi.OAuth) {
	from := "from " + o.TokenURL
	l.add(Obtain, name, from)
	client := o.ClientID
	if o.ClientIDFrom != "" {
		client = "that the setting " + o.ClientIDFrom + " names"
	}
	l.add(Obtain, name, from+" as the client "+client)
	for _, flow := range o.Authorize {
		if flow == abi.OAuthDevice {
			l.add(Obtain, name, "by a code that you enter where "+o.DeviceURL+" says")
		} else {
			l.add(Obtain, name, "by your consent at "+o.AuthorizeURL)
		}
	}
	for _, s := range o.Scopes {
		l.add(Obtain, name, from+" for the scope "+s)
	}
	if o.Audience != "" {
		l.add(Obtain, name, from+" for the audience "+o.Audience)
	}
	for _, p := range sorted(o.Params) {
		l.add(Obtain, name, from+" with "+p+"="+o.Params[p])
	}
	if o.ClientSecret != "" {
		l.add(Send, o.ClientSecret, o.TokenURL+" ("+o.ClientAuth+")")
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
