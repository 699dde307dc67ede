package network

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/store"
)

// Kind is the network binding: servers that an owner permits a connector to reach.
type Kind struct{}

var _ binding.Kind = Kind{}

// The most servers that one approval holds, and the longest name of one in bytes.
const (
	maxHosts = 100
	maxHost  = 1024
)

// flag is the option that approves a server.
const flag = "--allow-host"

// Name implements binding.Kind.
func (Kind) Name() string { return abi.BindingNetwork }

// servers is the want of a manifest that names no servers.
var servers = binding.Want{Kind: "servers", Words: "reach servers that you name, and no others"}

func hostWant(host string) binding.Want {
	return binding.Want{Kind: "host", Name: host, Words: "reach " + abi.Clean(host)}
}

// Imports implements binding.Kind.
func (Kind) Imports() (prefix, words string) {
	return abi.ModuleNetwork + ".", "make web requests through the host"
}

// Asks implements binding.Kind. An owner may always name further servers.
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
		w := hostWant(h)
		ask := binding.Ask{Wants: []binding.Want{w}, Implied: []binding.Want{servers}, Words: w.Words}
		if ask.Granted, ask.Flag = ServerApproval(a, h); ask.Flag != "" {
			ask.Missing = ask.Wants
			ask.Lacks = "host " + h + " (give it with " + ask.Flag + ")"
		}
		out = append(out, ask)
	}
	return out
}

// ServerApproval describes the approval of a server that a manifest asks for, and returns the
// option that approves it, or "" if it is approved. Servers of the owner's own network must
// be typed.
func ServerApproval(a store.Approved, host string) (granted, flagged string) {
	flagged = flag + " " + abi.Clean(host)
	p, err := egress.PolicyOf(a.Hosts)
	if err == nil && len(p.Missing([]string{host})) == 0 {
		return "granted", ""
	}
	if e, bad := egress.ParseEntry(host); err == nil && bad == nil && !egress.Special(e.Host) {
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

// AddToStart implements binding.Kind. Every START has the network binding; without hosts it
// refuses everything.
func (Kind) AddToStart(m *abi.Manifest, c store.Connection, lent *abi.Bindings) error {
	lent.Network = &abi.NetworkBinding{Hosts: append([]string{}, GuestHosts(m, c.Approved.Hosts)...)}
	return nil
}

// Denial implements binding.Kind.
func (Kind) Denial() (code, message string) {
	return "binding_not_approved", "no host is approved for this connection"
}

// Approve implements binding.Kind. It accepts the servers that the manifest asks for, or
// any if the manifest leaves them to the owner. An address or a name of the owner's network
// must be spelled exactly.
func (Kind) Approve(q binding.Approval, c *store.Connection) error {
	if q.Bindings.Network == nil {
		return nil
	}
	hosts := q.Bindings.Network.Hosts
	if len(hosts) > maxHosts {
		return host.Invalid("network.hosts", "too_many", "want at most %d", maxHosts)
	}
	requested, open := egress.NewPolicy(parseEntries(RequestedHosts(q.Manifest))...), namesNoServers(q.Manifest)
	out := []string{}
	for i, text := range hosts {
		path := fmt.Sprintf("network.hosts[%d]", i)
		e, err := egress.ParseEntry(text)
		if err != nil || len(text) > maxHost {
			return host.Invalid(path, "host_invalid",
				"want [http://|https://]HOST[:PORT], where HOST is a name, *.NAME or an address")
		}
		if !open && !requested.Covers(e) {
			return host.NotRequested(path)
		}
		out = binding.Union(out, []string{e.String()})
	}
	c.Approved.Hosts = out
	return nil
}

// namesNoServers reports whether the manifest asks for the network or for pages without naming
// servers, or has a secret for a server that the owner names.
func namesNoServers(m *abi.Manifest) bool {
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

// Withdraw implements binding.Kind; names are servers as they were approved.
func (Kind) Withdraw(a *store.Approved, names []string) (missing []string) {
	a.Hosts, missing = binding.Without(a.Hosts, names)
	return missing
}

// Narrower implements binding.Kind.
func (Kind) Narrower(old, new store.Approved) bool {
	p, err := egress.PolicyOf(new.Hosts)
	return err != nil || len(p.Missing(old.Hosts)) > 0
}

// Answerable returns those of wanted that an owner may approve by answering a question.
// Addresses and names of the owner's own network must be typed instead.
func Answerable(wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(text string) bool {
		e, err := egress.ParseEntry(text)
		return err != nil || egress.Special(e.Host)
	})
}

// RequestedHosts returns the hosts that the connector or, for its tokens, the host is to
// reach.
func RequestedHosts(m *abi.Manifest) []string {
	return binding.Union(m.Bindings[abi.BindingNetwork].Hosts, tokenHosts(m))
}

// tokenHosts returns the servers from which the host fetches the connector's tokens, as
// policy entries.
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

// TokenHosts returns the servers from which the host obtains a secret; none for a secret
// without OAuth.
func TokenHosts(o *abi.OAuth) []string {
	var out []string
	if o == nil {
		return nil
	}
	for _, u := range o.Endpoints() {
		scheme, rest, _ := strings.Cut(u, "://")
		host, _, _ := strings.Cut(rest, "/")
		if e, err := egress.ParseEntry(scheme + "://" + host); err == nil {
			out = binding.Union(out, []string{e.String()})
		}
	}
	return out
}

// GuestHosts returns the approved hosts that the connector itself may reach. Token servers
// are excluded unless the manifest asks for them or sends secrets to them: otherwise a
// connector could begin its own authorization there and ask the owner to complete it.
func GuestHosts(m *abi.Manifest, approved []string) []string {
	asked := slices.Clone(m.Bindings[abi.BindingNetwork].Hosts)
	if m.Sluice != nil {
		for _, f := range m.Sluice.Secrets {
			for _, d := range f.Destinations {
				asked = append(asked, strings.TrimSuffix(d.Origin, "/"))
			}
		}
	}
	policy, tokens := egress.NewPolicy(parseEntries(asked)...), tokenHosts(m)
	return slices.DeleteFunc(slices.Clone(approved), func(text string) bool {
		e, err := egress.ParseEntry(text)
		return err == nil && slices.Contains(tokens, e.String()) && !policy.Covers(e)
	})
}

// parseEntries returns the valid entries among texts.
func parseEntries(texts []string) []egress.Entry {
	var out []egress.Entry
	for _, text := range texts {
		if e, err := egress.ParseEntry(text); err == nil {
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

// ParseFlag implements binding.Commander.
func (Kind) ParseFlag(v binding.FlagValues) (store.Approved, error) {
	for _, text := range v.Values {
		if _, err := egress.ParseEntry(text); err != nil {
			return store.Approved{}, fmt.Errorf("%s: %w", flag, err)
		}
	}
	return store.Approved{Hosts: v.Values}, nil
}

// Offer implements binding.Commander. Addresses and names of the owner's own network must
// be typed.
func (Kind) Offer(m *abi.Manifest, a store.Approved) (words string, more store.Approved) {
	p, err := egress.PolicyOf(a.Hosts)
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

// Binding is the network binding of one run.
type Binding struct{ *Session }

var _ interface {
	binding.Binding
	binding.Sealer
	binding.Keeper
	binding.StreamTaker
	binding.Requester
} = Binding{}

// Takes implements binding.Binding. It takes all handles that no other binding has.
func (Binding) Takes(call abi.Call, _ []byte) bool {
	switch call {
	case abi.CallNetworkRequest, abi.CallNetworkExchange, abi.CallRead, abi.CallClose:
		return true
	}
	return false
}

// Close implements binding.Binding.
func (l Binding) Close(context.Context) error { return l.Session.Close() }
