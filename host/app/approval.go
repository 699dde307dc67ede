package app

import (
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Limits of one approval: secrets or secret fields, destinations of a field, and bytes of an origin.
const (
	maxPlain  = 64
	maxPlaces = 32
	maxOrigin = 1024
)

// approval checks what an owner approves against what the manifest requests; more than that is refused with
// binding_not_requested. The returned connection holds what was approved and nothing else.
func (h *bindings) approval(m *abi.Manifest, q host.Bindings) (store.Connection, error) {
	var c store.Connection
	if err := Kinds.Approve(binding.Approval{Manifest: m, Bindings: q, DataDir: h.DataDir}, &c); err != nil {
		return c, err
	}
	if q.Interactive != nil {
		if _, asks := m.Bindings[abi.BindingInteractive]; *q.Interactive && !asks && len(m.HumanKinds) == 0 {
			return c, host.NotRequested("interactive")
		}
		c.Approved.NoInteractive = !*q.Interactive
	}
	var err error
	if c.Approved.Destinations, err = approvedDestinations(m, q.Destinations); err != nil {
		return c, err
	}
	c.Approved.Plain, err = approvedPlain(m, q.PlainAcknowledged)
	return c, err
}

// leftToOwner reports whether the manifest leaves it to the owner where a secret is sent.
func leftToOwner(m *abi.Manifest, secret string) bool {
	return slices.ContainsFunc(m.SecretFields(),
		func(f abi.SecretField) bool { return f.Name == secret && f.LeftToOwner() })
}

// asksToSee reports whether the connector would be handed a secret in plain text.
func asksToSee(m *abi.Manifest, secret string) bool {
	return slices.ContainsFunc(run.SecretFields(m),
		func(f abi.SecretField) bool { return f.Name == secret && !run.Sealed(m, f) })
}

// approvedPlain checks the secrets that the connector may see in plain text.
func approvedPlain(m *abi.Manifest, names []string) ([]string, error) {
	if len(names) > maxPlain {
		return nil, invalid("plainAcknowledged", "too_many", "want at most %d", maxPlain)
	}
	var out []string
	for i, name := range names {
		if !asksToSee(m, name) {
			return nil, host.NotRequested(fmt.Sprintf("plainAcknowledged[%d]", i))
		}
		out = binding.Union(out, []string{name})
	}
	return out, nil
}

// approvedDestinations checks the destinations of secrets: those that the manifest names, and servers that it
// leaves to the owner. A destination that the owner names keeps the path prefix of the manifest and may only
// narrow its placements.
func approvedDestinations(m *abi.Manifest, fields map[string][]abi.Destination) (map[string][]abi.Destination, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	if len(fields) > maxPlain {
		return nil, invalid("destinations", "too_many", "want at most %d fields", maxPlain)
	}
	out := map[string][]abi.Destination{}
	for name, to := range fields {
		i := slices.IndexFunc(run.SecretFields(m), func(f abi.SecretField) bool { return f.Name == name })
		if i < 0 {
			return nil, host.NotRequested("destinations")
		}
		path := "destinations." + name // a name from the manifest
		if len(to) > maxPlaces {
			return nil, invalid(path, "too_many", "want at most %d", maxPlaces)
		}
		for n, d := range to {
			approved, err := approvedDestination(run.SecretFields(m)[i], d, fmt.Sprintf("%s[%d]", path, n))
			if err != nil {
				return nil, err
			}
			out[name] = append(out[name], approved)
		}
	}
	return out, nil
}

func approvedDestination(f abi.SecretField, d abi.Destination, path string) (abi.Destination, error) {
	origin, err := egress.SealedOrigin(d.Origin)
	if err != nil || len(d.Origin) > maxOrigin {
		return d, invalid(path+".origin", "origin_invalid", "want https://HOST[:PORT], or http:// for this machine")
	}
	for _, asked := range f.Destinations {
		own := asked.Origin
		if own != abi.OwnerOrigin {
			if own, err = egress.SealedOrigin(asked.Origin); err != nil {
				continue
			}
		}
		if own != abi.OwnerOrigin && own != origin || d.PathPrefix != "" && d.PathPrefix != asked.PathPrefix {
			continue
		}
		placements := asked.Placements
		if len(d.Placements) > 0 {
			placements = d.Placements
		}
		if !slices.ContainsFunc(placements, func(p string) bool { return !slices.Contains(asked.Placements, p) }) {
			return abi.Destination{Origin: origin, PathPrefix: asked.PathPrefix, Placements: slices.Clone(placements)}, nil
		}
	}
	return d, host.NotRequested(path)
}
