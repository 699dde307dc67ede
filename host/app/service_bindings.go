package app

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// The most that one approval holds, and the longest name and path in it, in bytes.
const (
	maxHosts    = 100
	maxHost     = 1024
	maxMounts   = 16
	maxHostPath = 4096
	maxPlain    = 64
	maxPlaces   = 32
)

// narrows reports whether something of old is not in new.
func narrows(old, new store.Approved) bool {
	if p, err := policyOf(new.Hosts); err != nil || len(missingHosts(p, old.Hosts)) > 0 {
		return true
	}
	for _, m := range old.Mounts {
		if !slices.ContainsFunc(new.Mounts, func(n store.Mount) bool { return n == m || !m.Writable && n.Writable && sameRoot(n, m) }) {
			return true
		}
	}
	for _, p := range old.Plain {
		if !slices.Contains(new.Plain, p) {
			return true
		}
	}
	for name, to := range old.Destinations {
		for _, d := range to {
			if !slices.ContainsFunc(new.Destinations[name], func(n abi.Destination) bool { return sameDestination(n, d) }) {
				return true
			}
		}
	}
	return new.NoInteractive && !old.NoInteractive || old.Browser && !new.Browser
}

func sameRoot(a, b store.Mount) bool {
	return a.Name == b.Name && a.Path == b.Path && a.Device == b.Device && a.Inode == b.Inode
}

// approval checks what an owner approves against what the manifest asks for:
// more than that is binding_not_requested.
func (h *bindings) approval(m *abi.Manifest, q host.Bindings) (store.Approved, error) {
	var out store.Approved
	var err error
	if q.Network != nil {
		if out.Hosts, err = approvedHosts(m, q.Network.Hosts); err != nil {
			return out, err
		}
	}
	if q.Filesystem != nil {
		if out.Mounts, err = h.approvedMounts(m, q.Filesystem.Mounts); err != nil {
			return out, err
		}
	}
	if q.Interactive != nil {
		if _, asks := m.Bindings[abi.BindingInteractive]; *q.Interactive && !asks && len(m.HumanKinds) == 0 {
			return out, notRequested("interactive")
		}
		out.NoInteractive = !*q.Interactive
	}
	if q.Browser != nil {
		if _, asks := m.Bindings[abi.BindingBrowser]; !asks {
			return out, notRequested("browser")
		}
		if p := q.Browser.Profile; p != "" && !abi.IsProfileName(p) {
			return out, invalid("browser.profile", "profile_name_invalid", "want ^[A-Za-z0-9_-]{1,64}$").With("code", "profile_name_invalid")
		}
		out.Browser = true
	}
	if out.Destinations, err = approvedDestinations(m, q.Destinations); err != nil {
		return out, err
	}
	out.Plain, err = approvedPlain(m, q.PlainAcknowledged)
	return out, err
}

func notRequested(path string) *host.Refusal {
	return host.Refuse("binding_not_requested", "%s: the connector does not ask for this", path).With("fields", []memberFault{{path, "binding_not_requested"}})
}

// approvedHosts takes the servers that the manifest asks for; where it leaves them to the
// owner, any. An address or a name of the owner's own network is taken as it is spelled here,
// never by a pattern.
func approvedHosts(m *abi.Manifest, hosts []string) ([]string, error) {
	if len(hosts) > maxHosts {
		return nil, invalid("network.hosts", "too_many", "want at most %d", maxHosts)
	}
	var asked []network.Entry
	for _, text := range requestedHosts(m) {
		if e, err := network.ParseEntry(text); err == nil {
			asked = append(asked, e)
		}
	}
	requested, open := network.NewPolicy(asked...), hostsLeftToOwner(m)
	out := []string{}
	for i, text := range hosts {
		path := fmt.Sprintf("network.hosts[%d]", i)
		e, err := network.ParseEntry(text)
		if err != nil || len(text) > maxHost {
			return nil, invalid(path, "host_invalid", "want [http://|https://]HOST[:PORT], where HOST is a name, *.NAME or an address")
		}
		if !open && !requested.Covers(e) {
			return nil, notRequested(path)
		}
		out = union(out, []string{e.String()})
	}
	return out, nil
}

// hostsLeftToOwner: the manifest asks for the network or for pages and cannot know which
// servers, or has a secret that goes to a server of the owner's.
func hostsLeftToOwner(m *abi.Manifest) bool {
	b, declared := m.Bindings[abi.BindingNetwork]
	_, pages := m.Bindings[abi.BindingBrowser]
	return (declared || pages) && (len(b.Hosts) == 0 || slices.ContainsFunc(run.SecretFields(m), func(f abi.SecretField) bool { return leftToOwner(m, f.Name) }))
}

// leftToOwner: only the owner knows where a secret is to go.
func leftToOwner(m *abi.Manifest, secret string) bool {
	return slices.ContainsFunc(run.SecretFields(m), func(f abi.SecretField) bool {
		return f.Name == secret && slices.ContainsFunc(f.Destinations, func(d abi.Destination) bool { return d.Origin == abi.OwnerOrigin })
	})
}

// asksToSee: the connector would be handed a secret as it is.
func asksToSee(m *abi.Manifest, secret string) bool {
	return slices.ContainsFunc(run.SecretFields(m), func(f abi.SecretField) bool { return f.Name == secret && !run.Sealed(m, f) })
}

// approvedMounts checks directories. The path is the whole, plain one of an existing
// directory: nothing that this process happens to stand in, and no dots, decides what it
// means.
func (h *bindings) approvedMounts(m *abi.Manifest, mounts []host.Mount) ([]store.Mount, error) {
	if len(mounts) > maxMounts {
		return nil, invalid("filesystem.mounts", "too_many", "want at most %d", maxMounts)
	}
	asked := m.Bindings[abi.BindingFilesystem].Mounts
	var out []store.Mount
	for n, w := range mounts {
		path := fmt.Sprintf("filesystem.mounts[%d]", n)
		i := slices.IndexFunc(asked, func(r abi.MountRequest) bool { return r.Name == w.Name })
		p := Home(w.HostPath)
		switch {
		case i < 0:
			return nil, notRequested(path + ".name")
		case slices.ContainsFunc(out, func(o store.Mount) bool { return o.Name == w.Name }):
			return nil, invalid(path+".name", "duplicate", "each directory once")
		case w.Mode != "" && w.Mode != "ro" && w.Mode != "rw":
			return nil, invalid(path+".mode", "value_unknown", "want ro or rw")
		case w.Mode == "rw" && !asked[i].Writable:
			return nil, notRequested(path + ".mode")
		case len(p) > maxHostPath || !filepath.IsAbs(p) || filepath.Clean(w.HostPath) != w.HostPath || strings.ContainsRune(p, 0) || !utf8.ValidString(p):
			return nil, invalid(path+".hostPath", "path", "want the absolute path of a directory, or one that begins with ~/, without dots and doubled slashes")
		}
		a, err := h.ApproveMount(w.Name, p, w.Mode == "rw")
		if errors.Is(err, filesystem.ErrRefused) {
			return nil, invalid(path+".hostPath", "directory_refused", "no connector may see this directory; approve one that holds only what it may see")
		}
		if err != nil {
			return nil, invalid(path+".hostPath", "directory_missing", "want a directory that exists and can be reached")
		}
		out = append(out, a)
	}
	return out, nil
}

// approvedPlain takes the secrets that the connector asks to see.
func approvedPlain(m *abi.Manifest, names []string) ([]string, error) {
	if len(names) > maxPlain {
		return nil, invalid("plainAcknowledged", "too_many", "want at most %d", maxPlain)
	}
	var out []string
	for i, name := range names {
		if !asksToSee(m, name) {
			return nil, notRequested(fmt.Sprintf("plainAcknowledged[%d]", i))
		}
		out = union(out, []string{name})
	}
	return out, nil
}

// approvedDestinations takes where the manifest has secrets sent, and servers that it leaves
// to the owner. What an owner names keeps path and placements of the manifest's.
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
			return nil, notRequested("destinations")
		}
		path := "destinations." + name // a name of the manifest's
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
	origin, err := network.SealedOrigin(d.Origin)
	if err != nil || len(d.Origin) > maxHost {
		return d, invalid(path+".origin", "origin_invalid", "want https://HOST[:PORT], or http:// for this machine")
	}
	for _, asked := range f.Destinations {
		own := asked.Origin
		if own != abi.OwnerOrigin {
			if own, err = network.SealedOrigin(asked.Origin); err != nil {
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
	return d, notRequested(path)
}
