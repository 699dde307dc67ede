package browser

import (
	"errors"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// Kind is the browser kind of binding. An owner either lets a connector use a browser or does not;
// servers are granted with the network binding.
type Kind struct{}

var _ binding.Kind = Kind{}

// flag is the flag that grants a browser.
const flag = "--browser"

// Name implements binding.Kind.
func (Kind) Name() string { return abi.BindingBrowser }

// Imports implements binding.Kind.
func (Kind) Imports() (prefix, words string) {
	return abi.ModuleBrowser + ".", "act in a browser through the host"
}

// Asks implements binding.Kind.
func (Kind) Asks(m *abi.Manifest, a store.Approved) []binding.Ask {
	var out []binding.Ask
	for _, w := range wants(m.Bindings[abi.BindingBrowser].Browser) {
		ask := binding.Ask{Wants: []binding.Want{w}, Words: w.Words, Granted: "granted"}
		if !a.Browser {
			ask.Missing, ask.Granted, ask.Flag = ask.Wants, "only with "+flag, flag
			ask.Lacks = "acting in a browser (give it with " + flag + ")"
		}
		out = append(out, ask)
	}
	return out
}

// wants lists what a manifest asks of a browser. Profile, rate and pop-ups need no consent.
func wants(b *abi.BrowserRequest) []binding.Want {
	out := []binding.Want{{Kind: "binding", Name: abi.BindingBrowser,
		Words: "act in a browser of this machine, as you would: open pages of the servers it may reach, read them, click and type"}}
	add := func(what, to string) {
		w := binding.Want{Kind: "browse", Name: what, To: to, Words: what}
		if to != "" {
			w.Words += " " + abi.Clean(to)
		}
		out = append(out, w)
	}
	if b == nil {
		return out
	}
	if b.Uploads {
		add("send files of its own to pages", "")
	}
	if b.Downloads {
		add("take files that pages offer", "")
	}
	for _, h := range b.CookieHandoff {
		add("make requests of its own as the one who is signed in at", h)
	}
	for _, a := range b.Actions {
		what := a.Name + " (" + a.Verb + ")"
		if a.ActionType == "local_state" {
			add("have an action count as changing nothing but the page:", what)
		}
		if a.Idempotent != nil && *a.Idempotent {
			add("have an action done twice where once seemed to fail:", what)
		}
	}
	return out
}

// Request implements binding.Kind.
func (Kind) Request(b abi.Binding, r *host.RequestedBinding) {
	r.Browser, r.Words = b.Browser, permits(b.Browser)
}

// permits describes what a connector may do once the browser is granted.
func permits(w *abi.BrowserRequest) []string {
	out := []string{"It opens pages of the servers above in a browser of this machine, reads them, clicks and types. You can watch it and take over."}
	if w == nil {
		return out
	}
	if w.Uploads {
		out = append(out, "It may send files of its own to pages.")
	}
	if w.Downloads {
		out = append(out, "It may take files that pages offer.")
	}
	if len(w.CookieHandoff) > 0 {
		out = append(out, "It may make requests of its own as the one who is signed in at "+
			strings.Join(w.CookieHandoff, ", ")+". It never sees the cookies.")
	}
	profile := "What the browser remembers, such as being signed in, is kept for this connection alone"
	if w.Profile != "" {
		profile += ", as " + w.Profile
	}
	return append(out, profile+". Deleting the connection deletes it.")
}

// Granted implements binding.Kind.
func (Kind) Granted(m *abi.Manifest, a store.Approved) []string {
	b, asked := m.Bindings[abi.BindingBrowser]
	if !a.Browser || !asked {
		return nil
	}
	var out []string
	for _, w := range wants(b.Browser) {
		out = append(out, w.Words)
	}
	return out
}

// AddToStart implements binding.Kind. A browser is advertised if the manifest asks for one and the owner
// approved it.
func (Kind) AddToStart(m *abi.Manifest, c store.Connection, lent *abi.Bindings) error {
	b, declared := m.Bindings[abi.BindingBrowser]
	if !declared || !c.Approved.Browser {
		return nil
	}
	profile := ProfileOf(c, b)
	if !abi.IsProfileName(profile) {
		return host.Refuse("profile_name_invalid", "profile name required, must be [A-Za-z0-9_-]+")
	}
	lent.Browser = &abi.BrowserBinding{Profile: profile, Hosts: lent.Network.Hosts}
	return nil
}

// ProfileOf returns the default profile of a run, if its connector names none: the owner's choice,
// otherwise the manifest's, otherwise the connection's id.
func ProfileOf(c store.Connection, b abi.Binding) string {
	switch {
	case c.ProfileName != "":
		return c.ProfileName
	case b.Browser != nil && b.Browser.Profile != "":
		return b.Browser.Profile
	}
	return string(c.ID)
}

// Denial implements binding.Kind.
func (Kind) Denial() (code, message string) {
	return "browser_not_granted", "the browser binding is not offered to this run"
}

// Approve implements binding.Kind.
func (Kind) Approve(q binding.Approval, c *store.Connection) error {
	if q.Bindings.Browser == nil {
		return nil
	}
	if _, asks := q.Manifest.Bindings[abi.BindingBrowser]; !asks {
		return host.NotRequested("browser")
	}
	if p := q.Bindings.Browser.Profile; p != "" {
		if !abi.IsProfileName(p) {
			return host.Invalid("browser.profile", "profile_name_invalid", "want ^[A-Za-z0-9_-]{1,64}$").With("code",
				"profile_name_invalid")
		}
		c.ProfileName = p
	}
	c.Approved.Browser = true
	return nil
}

// Read implements binding.Kind.
func (Kind) Read(q host.Bindings, a *store.Approved) { a.Browser = q.Browser != nil }

// Show implements binding.Kind.
func (Kind) Show(c store.Connection, _ bool, q *host.Bindings) {
	if c.Approved.Browser && q.Browser == nil {
		q.Browser = &host.BrowserBinding{Profile: c.ProfileName}
	}
}

// Merge implements binding.Kind.
func (Kind) Merge(a *store.Approved, more store.Approved) { a.Browser = a.Browser || more.Browser }

// Withdraw implements binding.Kind.
func (Kind) Withdraw(a *store.Approved, names []string) (missing []string) {
	if !a.Browser {
		missing = names
	}
	a.Browser = false
	return missing
}

// Narrower implements binding.Kind.
func (Kind) Narrower(old, new store.Approved) bool { return old.Browser && !new.Browser }

// Flag implements binding.Commander.
func (Kind) Flag() binding.Flag {
	return binding.Flag{
		Name: "browser", Usage: "let the connector act in a browser of the host's, at the servers that it may reach",
		Switch: true,
		Take:   "browser", TakeUsage: "only the use of a browser",
	}
}

// ParseFlag implements binding.Commander.
func (Kind) ParseFlag(v binding.FlagValues) (store.Approved, error) {
	if _, asks := v.Manifest.Bindings[abi.BindingBrowser]; !asks && len(v.Values) > 0 {
		return store.Approved{}, errors.New(flag + ": the connector asks for no browser")
	}
	return store.Approved{Browser: len(v.Values) > 0}, nil
}

// Offer implements binding.Commander.
func (Kind) Offer(m *abi.Manifest, a store.Approved) (words string, more store.Approved) {
	b, asks := m.Bindings[abi.BindingBrowser]
	if !asks || a.Browser {
		return "", more
	}
	var all []string
	for _, w := range wants(b.Browser) {
		all = append(all, w.String())
	}
	return strings.Join(all, "; to "), store.Approved{Browser: true}
}

// Choices implements binding.Commander.
func (Kind) Choices(*abi.Manifest, store.Approved) []binding.Choice { return nil }
