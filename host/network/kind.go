package network

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// Kind is the network among the kinds of bindings: servers that an owner lets a
// connector reach.
type Kind struct{}

var _ binding.Kind = Kind{}

// The most servers that one approval holds, and the longest name of one in bytes.
const (
	maxHosts = 100
	maxHost  = 1024
)

// flag gives a server on the command line.
const flag = "--allow-host"

// Name implements binding.Kind.
func (Kind) Name() string { return abi.BindingNetwork }

// servers is what a manifest wants that names no servers.
var servers = binding.Want{Kind: "servers", Words: "reach servers that you name, and no others"}

func reach(host string) binding.Want {
	return binding.Want{Kind: "host", Name: host, Words: "reach " + abi.Clean(host)}
}

// Imports implements binding.Kind.
func (Kind) Imports() (prefix, words string) {
	return abi.ModuleNetwork + ".", "make web requests through the host"
}

// Asks implements binding.Kind. An owner may name servers whatever a manifest asked for.
func (Kind) Asks(m *abi.Manifest, a store.Approved) []binding.Ask {
	hosts := m.Bindings[abi.BindingNetwork].Hosts
	if len(hosts) == 0 {
		ask := binding.Ask{Wants: []binding.Want{servers}, Words: servers.Words}
		if len(a.Hosts) > 0 {
			ask.Granted = "granted: " + abi.Clean(strings.Join(a.Hosts, ", "))
		} else {
			ask.Missing, ask.Flag = ask.Wants, flag+" HOST"
			ask.Granted = "only those of " + ask.Flag
		}
		return []binding.Ask{ask}
	}
	var out []binding.Ask
	for _, h := range hosts {
		w := reach(h)
		ask := binding.Ask{Wants: []binding.Want{w}, Implied: []binding.Want{servers}, Words: w.Words}
		if ask.Granted, ask.Flag = Standing(a, h); ask.Flag != "" {
			ask.Missing = ask.Wants
			ask.Lacks = "host " + h + " (give it with " + ask.Flag + ")"
		}
		out = append(out, ask)
	}
	return out
}

// Standing says what becomes of a server that a manifest asks for, and which flag gives
// it, "" when it is given. Those of the owner's own network are only ever typed.
func Standing(a store.Approved, host string) (granted, flagged string) {
	flagged = flag + " " + abi.Clean(host)
	p, err := PolicyOf(a.Hosts)
	if err == nil && len(p.Missing([]string{host})) == 0 {
		return "granted", ""
	}
	if e, bad := ParseEntry(host); err == nil && bad == nil && !Special(e.Host) {
		return "with --yes, or " + flagged, flagged
	}
	return "only with " + flagged, flagged
}

// Request implements binding.Kind.
func (Kind) Request(b abi.Binding, r *host.RequestedBinding) {
	r.Hosts = b.Hosts
}

// Granted implements binding.Kind.
func (Kind) Granted(_ *abi.Manifest, a store.Approved) []string {
	var out []string
	for _, h := range a.Hosts {
		out = append(out, "reach "+h)
	}
	return out
}

// Lend implements binding.Kind. It is in every START: no hosts refuse everything.
func (Kind) Lend(m *abi.Manifest, c store.Connection, lent *abi.Bindings) error {
	lent.Network = &abi.NetworkBinding{Hosts: append([]string{}, GuestHosts(m, c.Approved.Hosts)...)}
	return nil
}

// Denial implements binding.Kind.
func (Kind) Denial() (code, message string) {
	return "binding_not_approved", "no host is approved for this connection"
}

// Approve implements binding.Kind. It takes the servers that the manifest asks for;
// where that leaves them to the owner, any. An address or a name of the owner's own
// network is taken as it is spelled here, never by a pattern.
func (Kind) Approve(q binding.Approval, c *store.Connection) error {
	if q.Bindings.Network == nil {
		return nil
	}
	hosts := q.Bindings.Network.Hosts
	if len(hosts) > maxHosts {
		return host.Invalid("network.hosts", "too_many", "want at most %d", maxHosts)
	}
	requested, open := NewPolicy(parsed(RequestedHosts(q.Manifest))...), leftToOwner(q.Manifest)
	out := []string{}
	for i, text := range hosts {
		path := fmt.Sprintf("network.hosts[%d]", i)
		e, err := ParseEntry(text)
		if err != nil || len(text) > maxHost {
			return host.Invalid(path, "host_invalid", "want [http://|https://]HOST[:PORT], where HOST is a name, *.NAME or an address")
		}
		if !open && !requested.Covers(e) {
			return host.NotRequested(path)
		}
		out = binding.Union(out, []string{e.String()})
	}
	c.Approved.Hosts = out
	return nil
}

// leftToOwner: the manifest asks for the network or for pages and cannot know which
// servers, or has a secret that goes to a server of the owner's.
func leftToOwner(m *abi.Manifest) bool {
	b, declared := m.Bindings[abi.BindingNetwork]
	_, pages := m.Bindings[abi.BindingBrowser]
	return (declared || pages) && (len(b.Hosts) == 0 || slices.ContainsFunc(m.SecretFields(), abi.SecretField.LeftToOwner))
}

// Read implements binding.Kind.
func (Kind) Read(q host.Bindings, a *store.Approved) {
	if q.Network != nil {
		a.Hosts = q.Network.Hosts
	}
}

// Show implements binding.Kind.
func (Kind) Show(c store.Connection, asked bool, q *host.Bindings) {
	if len(c.Approved.Hosts) > 0 || asked {
		q.Network = &host.NetworkBinding{Hosts: append([]string{}, c.Approved.Hosts...)}
	}
}

// Merge implements binding.Kind.
func (Kind) Merge(a *store.Approved, more store.Approved) {
	a.Hosts = binding.Union(a.Hosts, more.Hosts)
}

// Withdraw implements binding.Kind: names are servers as they were approved.
func (Kind) Withdraw(a *store.Approved, names []string) (missing []string) {
	a.Hosts, missing = binding.Without(a.Hosts, names)
	return missing
}

// Narrower implements binding.Kind.
func (Kind) Narrower(old, new store.Approved) bool {
	p, err := PolicyOf(new.Hosts)
	return err != nil || len(p.Missing(old.Hosts)) > 0
}

// PolicyOf makes a policy of what an owner approved. Exactly spelled addresses and
// special names lead wherever the owner sent them. The error is ErrEntry.
func PolicyOf(approved []string) (*Policy, error) {
	var entries []Entry
	for _, text := range approved {
		e, err := ParseEntry(text)
		if err != nil {
			return nil, fmt.Errorf("approved host: %w", err)
		}
		e.Private = !e.Wildcard && Special(e.Host)
		entries = append(entries, e)
	}
	return NewPolicy(entries...), nil
}

// Missing are the hosts of a manifest that the policy does not cover.
func (p *Policy) Missing(wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(text string) bool {
		e, err := ParseEntry(text)
		return err == nil && p.Covers(e)
	})
}

// Answerable are those of wanted that may be approved by answering a question: an
// address or a name of the owner's own network must be typed.
func Answerable(wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(text string) bool {
		e, err := ParseEntry(text)
		return err != nil || Special(e.Host)
	})
}

// RequestedHosts are those of a manifest that the connector or, for its tokens, the host
// is to reach.
func RequestedHosts(m *abi.Manifest) []string {
	return binding.Union(m.Bindings[abi.BindingNetwork].Hosts, tokenHosts(m))
}

// tokenHosts are the servers from which the host fetches the tokens of a connector, as
// entries of a policy.
func tokenHosts(m *abi.Manifest) []string {
	var out []string
	if m.Sluice == nil {
		return nil
	}
	for _, f := range m.Sluice.Secrets {
		out = binding.Union(out, TokenHosts(f.OAuth))
	}
	return out
}

// TokenHosts are the servers from which the host obtains a secret; none for one that it
// does not obtain.
func TokenHosts(o *abi.OAuth) []string {
	var out []string
	if o == nil {
		return nil
	}
	for _, u := range o.Endpoints() {
		scheme, rest, _ := strings.Cut(u, "://")
		host, _, _ := strings.Cut(rest, "/")
		if e, err := ParseEntry(scheme + "://" + host); err == nil {
			out = binding.Union(out, []string{e.String()})
		}
	}
	return out
}

// GuestHosts are those approved hosts that the connector itself may reach. One that is
// there for its tokens is left out, unless the manifest asks to reach it or has secrets
// sent to it: a connector could begin an authorization of its own there, and ask the
// owner to complete it.
func GuestHosts(m *abi.Manifest, approved []string) []string {
	asked := slices.Clone(m.Bindings[abi.BindingNetwork].Hosts)
	if m.Sluice != nil {
		for _, f := range m.Sluice.Secrets {
			for _, d := range f.Destinations {
				asked = append(asked, strings.TrimSuffix(d.Origin, "/"))
			}
		}
	}
	policy, tokens := NewPolicy(parsed(asked)...), tokenHosts(m)
	return slices.DeleteFunc(slices.Clone(approved), func(text string) bool {
		e, err := ParseEntry(text)
		return err == nil && slices.Contains(tokens, e.String()) && !policy.Covers(e)
	})
}

// parsed are the entries among texts.
func parsed(texts []string) []Entry {
	var out []Entry
	for _, text := range texts {
		if e, err := ParseEntry(text); err == nil {
			out = append(out, e)
		}
	}
	return out
}

// Flag implements binding.Commander.
func (Kind) Flag() binding.Flag {
	return binding.Flag{
		Name: "allow-host", Usage: "let the connector reach a server, `[http://]HOST[:PORT]`; repeatable",
		Take: "host", TakeUsage: "only the server `HOST`, as it was approved; repeatable",
	}
}

// Given implements binding.Commander.
func (Kind) Given(g binding.Given) (store.Approved, error) {
	for _, text := range g.Values {
		if _, err := ParseEntry(text); err != nil {
			return store.Approved{}, fmt.Errorf("%s: %w", flag, err)
		}
	}
	return store.Approved{Hosts: g.Values}, nil
}

// Offer implements binding.Commander. Addresses and names of the owner's own network are
// only ever typed.
func (Kind) Offer(m *abi.Manifest, a store.Approved) (words string, more store.Approved) {
	p, err := PolicyOf(a.Hosts)
	if err != nil {
		return "", more
	}
	more.Hosts = Answerable(p.Missing(RequestedHosts(m)))
	if len(more.Hosts) == 0 {
		return "", more
	}
	return "reach " + abi.Clean(strings.Join(more.Hosts, ", ")), more
}

// Choices implements binding.Commander.
func (Kind) Choices(*abi.Manifest, store.Approved) []binding.Choice { return nil }

// Lent is the network of one run as its binding.
type Lent struct{ *Session }

var _ interface {
	binding.Binding
	binding.Sealer
	binding.Keeper
	binding.Giver
	binding.Requester
} = Lent{}

// Takes implements binding.Binding: whatever handle is nobody else's.
func (Lent) Takes(call abi.Call, _ []byte) bool {
	switch call {
	case abi.CallNetworkRequest, abi.CallNetworkExchange, abi.CallRead, abi.CallClose:
		return true
	}
	return false
}

// Close implements binding.Binding.
func (l Lent) Close(context.Context) error { return l.Session.Close() }
