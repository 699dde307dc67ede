package host

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
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
	return slices.DeleteFunc(missingHosts(policy, m.Bindings[abi.BindingNetwork].Hosts), func(text string) bool {
		e, err := network.ParseEntry(text)
		return err != nil || network.Special(e.Host)
	}), nil
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

// network is the network of one run, nil when the module cannot use any.
func (h *Host) network(q RunRequest, plan *run.Plan, p *network.Policy) (run.Network, error) {
	switch {
	case q.Replay != nil:
		return network.NewReplay(q.Replay.recording), nil
	case q.Record == nil && !q.Connector.Module.Uses(abi.ModuleNetwork):
		return nil, nil
	}
	id := plan.Connection.ID
	c, err := network.NewClient(network.Options{Policy: p, Governor: h.pace, Audit: func(hop network.Hop) {
		h.Options.Log.Info("network_request", "connection", id, "method", hop.Method, "origin", hop.Origin, "path", hop.Path,
			"status", hop.Status, "refused", hop.Refused, "sent", hop.Sent, "took", hop.Took)
	}})
	if err != nil {
		return nil, fmt.Errorf("open network: %w", err)
	}
	if q.Record != nil {
		return q.Record.begin(c, q, plan)
	}
	return network.NewSession(c), nil
}
