// Package grant compares two documents: what a manifest asks for, and what its
// owner approved (S3, A180). It is pure.
package grant

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// A Kind says what sort of thing a manifest asks for.
type Kind string

// The kinds, in the order in which they are told.
const (
	Stream    Kind = "stream"    // to collect it
	Host      Kind = "host"      // to reach it
	Servers   Kind = "servers"   // to reach those that the owner names, since the manifest names none
	Directory Kind = "directory" // to read it
	Change    Kind = "change"    // to change files in a directory
	Binding   Kind = "binding"   // any other
	Secret    Kind = "secret"    // to use it
	Send      Kind = "send"      // to have a secret or an answer sent somewhere
	See       Kind = "see"       // to be handed a secret or an answer as it is
	Obtain    Kind = "obtain"    // to have a secret obtained from a server, and what is asked of it
	Browse    Kind = "browse"    // to do something in a browser beyond looking and clicking
)

// A Want is one thing that a manifest asks for. Wants are equal when they ask
// for the same.
type Want struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	To   string `json:"to,omitempty"` // of Send: origin, path and placement; of Obtain: from where, or with what; of others: how
}

// String is the want in plain words, free of control characters.
func (w Want) String() string {
	name := abi.Clean(w.Name)
	switch w.Kind {
	case Stream:
		return strings.TrimSpace("collect " + name + " " + abi.Clean(w.To))
	case Host:
		return "reach " + name
	case Servers:
		return "reach servers that you name, and no others"
	case Directory:
		return "read the directory " + name
	case Change:
		return "change files in the directory " + name
	case Secret:
		return strings.TrimSpace("use the secret " + name + " " + abi.Clean(w.To))
	case Send:
		return "have " + name + " sent to " + abi.Clean(w.To)
	case Obtain:
		return "have " + name + " obtained " + abi.Clean(w.To)
	case Browse:
		return strings.TrimSpace(name + " " + abi.Clean(w.To))
	case See:
		return "see " + name + " itself"
	}
	if w.Kind == Binding && name == abi.BindingBrowser {
		return "act in a browser of this machine, as you would: open pages of the servers it may reach, read them, click and type"
	}
	return "use the binding " + name
}

// Wants lists what a manifest asks for, without repeats.
func Wants(m *abi.Manifest) []Want {
	var l list
	for _, s := range m.Streams {
		l.add(Stream, s.Name, "")
	}
	for _, name := range sorted(m.Bindings) {
		l.binding(name, m.Bindings[name])
	}
	if m.Sluice == nil {
		for _, f := range m.CaptureFields {
			if f.Secret {
				l.add(Secret, f.Name, "")
				l.add(See, f.Name, "") // it knows no handles (R156)
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

// Added lists what asked asks for and approved did not. Asking for less, or
// requiring what was optional, adds nothing.
func Added(approved, asked *abi.Manifest) []Want {
	known := map[Want]bool{}
	for _, w := range Wants(approved) {
		known[w] = true
	}
	if _, reached := approved.Bindings[abi.BindingNetwork]; reached { // an owner may name servers whatever it asked for
		known[Want{Kind: Servers}] = true
	}
	return slices.DeleteFunc(append(Wants(asked), unsaid(approved, asked)...), func(w Want) bool { return known[w] })
}

// unsaid is what asked gains by saying less: answers that approved has sealed,
// which is then up to how the connector asks (R155), and secrets themselves where
// approved has others obtained with them.
func unsaid(approved, asked *abi.Manifest) []Want {
	var l list
	if approved.Sluice == nil {
		return nil
	}
	obtained := func(m *abi.Manifest, name string) bool {
		return m.Sluice != nil && slices.ContainsFunc(m.Sluice.Secrets, func(f abi.SecretField) bool { return f.Name == name && f.OAuth != nil })
	}
	for _, w := range Wants(asked) {
		if w.Kind == Secret && obtained(approved, w.Name) && !obtained(asked, w.Name) {
			l.add(Secret, w.Name, "itself, not what is obtained with it")
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
		if approved.Sluice.InteractionFields[name].Delivery == "sealed" && asked.Sluice.InteractionFields[name].Delivery == "" {
			l.add(See, name, "")
		}
	}
	return l.wants
}

// A list collects wants without repeats.
type list struct {
	wants []Want
	seen  map[Want]bool
}

func (l *list) add(kind Kind, name, to string) {
	w := Want{kind, name, to}
	if l.seen[w] {
		return
	}
	if l.seen == nil {
		l.seen = map[Want]bool{}
	}
	l.seen[w] = true
	l.wants = append(l.wants, w)
}

func (l *list) binding(name string, b abi.Binding) {
	switch name {
	case abi.BindingNetwork:
		if len(b.Hosts) == 0 {
			l.add(Servers, "", "")
		}
	case abi.BindingFilesystem:
		for _, m := range b.Mounts {
			l.add(Directory, m.Name, "")
			if m.Writable {
				l.add(Change, m.Name, "")
			}
		}
	case abi.BindingInteractive: // the owner decides each question
	case abi.BindingBrowser:
		l.add(Binding, name, "")
		l.browser(b.Browser)
	default:
		l.add(Binding, name, "")
	}
	for _, h := range b.Hosts {
		l.add(Host, h, "")
	}
}

// browser lists what a manifest asks of a browser (browser.md B8, B9). A profile,
// a pace and pop-ups take nothing from the owner.
func (l *list) browser(b *abi.BrowserRequest) {
	if b == nil {
		return
	}
	if b.Uploads {
		l.add(Browse, "send files of its own to pages", "")
	}
	if b.Downloads {
		l.add(Browse, "take files that pages offer", "")
	}
	for _, h := range b.CookieHandoff {
		l.add(Browse, "make requests of its own as the one who is signed in at", h)
	}
	for _, a := range b.Actions {
		what := a.Name + " (" + a.Verb + ")"
		if a.ActionType == "local_state" {
			l.add(Browse, "have an action count as changing nothing but the page:", what)
		}
		if a.Idempotent != nil && *a.Idempotent {
			l.add(Browse, "have an action done twice where once seemed to fail:", what)
		}
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

// obtain lists what is sent where for an access token. Another server, client,
// scope or parameter is something else.
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
