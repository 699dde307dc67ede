package app

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Kinds are the bindings of this build, one line each.
var Kinds = binding.Kinds{
	filesystem.Kind{},
	network.Kind{},
	browser.Kind{}, // behind the network, whose servers are its own
}

// merge adds approvals.
func merge(have, more store.Approved) store.Approved {
	out := have
	Kinds.Merge(&out, more)
	out.Plain, out.Destinations = binding.Union(have.Plain, more.Plain), mergeDestinations(have.Destinations, more.Destinations)
	return out
}

// narrows reports whether something of old is not in new.
func narrows(old, new store.Approved) bool {
	if Kinds.Narrower(old, new) {
		return true
	}
	if _, missing := binding.Without(new.Plain, old.Plain); len(missing) > 0 {
		return true
	}
	for name, to := range old.Destinations {
		for _, d := range to {
			if !slices.ContainsFunc(new.Destinations[name], func(n abi.Destination) bool { return sameDestination(n, d) }) {
				return true
			}
		}
	}
	return new.NoInteractive && !old.NoInteractive
}

// Wants lists what a manifest asks for, without repeats.
func Wants(m *abi.Manifest) []binding.Want { return grant.Wants(Kinds, m) }

// ApprovedBy is what a document of the API approves, unchecked.
func ApprovedBy(q host.Bindings) store.Approved {
	out := store.Approved{Destinations: q.Destinations, Plain: q.PlainAcknowledged, NoInteractive: q.Interactive != nil && !*q.Interactive}
	Kinds.Read(q, &out)
	return out
}

// openKinds opens, for a run, the bindings that their kinds open by themselves.
func openKinds(plan *run.Plan) ([]binding.Binding, error) {
	var out []binding.Binding
	for _, k := range Kinds {
		o, ok := k.(binding.Opener)
		if _, declared := plan.Manifest.Bindings[k.Name()]; !ok || !declared {
			continue
		}
		b, err := o.Open(plan.Manifest, plan.Connection)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open binding %s: %w", k.Name(), err), unused(out...))
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out, nil
}
