package host

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/store"
)

// ApproveHost checks a host that the owner named for a run, and returns it in
// the spelling that is stored: [http://|https://]HOST[:PORT].
func ApproveHost(text string) (string, error) {
	e, err := network.ParseEntry(text)
	if err != nil {
		return "", err
	}
	return e.String(), nil
}

// OnlyByName reports whether a manifest cannot get an entry approved, but only
// an owner who types it: addresses and names of the owner's own network (S64).
func OnlyByName(entry string) bool {
	e, err := network.ParseEntry(entry)
	return err != nil || network.Special(e.Host)
}

// approvedHosts makes a policy of what an owner approved. Exactly spelled
// addresses and special names lead wherever the owner sent them.
func approvedHosts(approved []string) (*network.Policy, []string, error) {
	var entries []network.Entry
	hosts := []string{}
	for _, text := range approved {
		e, err := network.ParseEntry(text)
		if err != nil {
			return nil, nil, refusal("invalid_request", fmt.Errorf("approved host: %w", err))
		}
		hosts = append(hosts, e.String())
		e.Private = !e.Wildcard && network.Special(e.Host)
		entries = append(entries, e)
	}
	return network.NewPolicy(entries...), hosts, nil
}

// missingHosts are the hosts of a manifest that the policy does not cover.
func missingHosts(p *network.Policy, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(text string) bool {
		e, err := network.ParseEntry(text)
		return err == nil && p.Covers(e)
	})
}

// session is the network of one run.
func (h *Host) session(p *network.Policy, id store.ConnectionID) (*network.Session, error) {
	c, err := network.NewClient(network.Options{Policy: p, Governor: h.pace, Audit: func(hop network.Hop) {
		h.Options.Log.Info("network_request", "connection", id, "method", hop.Method, "origin", hop.Origin, "path", hop.Path,
			"status", hop.Status, "refused", hop.Refused, "sent", hop.Sent, "took", hop.Took)
	}})
	if err != nil {
		return nil, fmt.Errorf("open network: %w", err)
	}
	return network.NewSession(c), nil
}
