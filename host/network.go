package host

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/store"
)

// CheckHost checks a host that the owner named for a run: it must read
// [http://|https://]HOST[:PORT].
func CheckHost(text string) error {
	_, err := network.ParseEntry(text)
	return err
}

// WantedHosts are the hosts of a manifest that may be approved by answering a
// question: those that nothing approved covers, without addresses and names of
// the owner's own network, which an owner must type (S64).
func WantedHosts(m *abi.Manifest, approved []string) ([]string, error) {
	policy, err := policyOf(approved)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(missingHosts(policy, requestedHosts(m)), func(text string) bool {
		e, err := network.ParseEntry(text)
		return err != nil || network.Special(e.Host)
	}), nil
}

// MissingHosts are the hosts of a manifest that nothing approved covers.
func MissingHosts(m *abi.Manifest, approved []string) ([]string, error) {
	policy, err := policyOf(approved)
	if err != nil {
		return nil, err
	}
	return missingHosts(policy, requestedHosts(m)), nil
}

// policyOf makes a policy of what an owner approved. Exactly spelled addresses
// and special names lead wherever the owner sent them.
func policyOf(approved []string) (*network.Policy, error) {
	var entries []network.Entry
	for _, text := range approved {
		e, err := network.ParseEntry(text)
		if err != nil {
			return nil, refusal("invalid_request", fmt.Errorf("approved host: %w", err))
		}
		e.Private = !e.Wildcard && network.Special(e.Host)
		entries = append(entries, e)
	}
	return network.NewPolicy(entries...), nil
}

// missingHosts are the hosts of a manifest that the policy does not cover.
func missingHosts(p *network.Policy, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(text string) bool {
		e, err := network.ParseEntry(text)
		return err == nil && p.Covers(e)
	})
}

// requestedHosts are those of a manifest that the connector or, for its tokens,
// the host is to reach.
func requestedHosts(m *abi.Manifest) []string {
	return union(m.Bindings[abi.BindingNetwork].Hosts, tokenHosts(m))
}

// session is the network of one run. reserved is what only the host reaches.
func (h *Host) session(p, reserved *network.Policy, id store.ConnectionID, r abi.Rate) (*network.Session, error) {
	var own *network.Governor
	if r != (abi.Rate{}) {
		own = network.NewGovernor(h.Options.Pace.Declared(r))
	}
	c, err := h.client(network.Options{Policy: p, Reserved: reserved, Own: own}, id)
	if err != nil {
		return nil, err
	}
	return network.NewSession(c), nil
}

// client is a client of this host.
func (h *Host) client(o network.Options, id store.ConnectionID) (*network.Client, error) {
	o.Governor = h.pace
	o.Audit = func(hop network.Hop) {
		h.Options.Log.Info("network_request", "connection", id, "method", hop.Method, "origin", hop.Origin, "path", hop.Path,
			"status", hop.Status, "refused", hop.Refused, "sent", hop.Sent, "took", hop.Took)
	}
	c, err := network.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("open network: %w", err)
	}
	return c, nil
}
