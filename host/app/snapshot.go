package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// snapshots reads connectors, leases and secrets once for a response about many connections.
type snapshots struct {
	*directory
	modules  *modules
	secrets  *secretStore
	bindings *bindings
}

// A snapshot is the state from which one response is made. It determines which connections are ready to run.
type snapshot struct {
	from       *snapshots
	connectors []store.Connector
	leases     map[store.ConnectionID]store.Lease
	set        map[store.ConnectionID]map[string]time.Time // when each secret was set
	full       bool                                        // there is not enough disk space for a start
	labels     [][]string                                  // of the hosts that may start the run
	// absent returns which bindings that a manifest requests this host cannot lend, and why.
	absent func(*abi.Manifest) map[string]string

	manifests map[installedAs]*abi.Manifest // nil for one that cannot be read
}

// An installedAs is the key of a connector in the store.
type installedAs struct {
	id      store.ConnectorID
	bundled bool
}

func (sn *snapshots) take(ctx context.Context) (*snapshot, error) {
	v := &snapshot{from: sn, leases: map[store.ConnectionID]store.Lease{}, manifests: map[installedAs]*abi.Manifest{},
		full:   sn.checkSpace() != nil,
		absent: func(m *abi.Manifest) map[string]string { return sn.bindings.absentFor(ctx, m, false) }}
	var err error
	if v.connectors, err = sn.Store.Connectors(ctx); err != nil {
		return nil, err
	}
	leases, err := sn.Store.Leases(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		v.leases[l.ConnectionID] = l
	}
	if v.labels, err = sn.startsWith(ctx); err != nil {
		return nil, err
	}
	if v.set, err = sn.secrets.set(); errors.Is(err, vault.ErrUnsafe) || closed(err) {
		err = nil // treat it as empty: a start is refused with the remedy, and Info warns
	}
	return v, err
}

// startsWith returns the labels of this host and of each other host that starts runs.
func (d *directory) startsWith(ctx context.Context) (labels [][]string, err error) {
	labels = append(labels, d.Options.Labels)
	shared := store.MembersOf(d.Store)
	if shared == nil {
		return labels, nil
	}
	all, err := shared.Members(ctx)
	for _, m := range all {
		if !m.Draining && m.Capacity > 0 {
			labels = append(labels, m.Labels)
		}
	}
	return labels, err
}

// named finds a connector by its id or name. An installed one is preferred to a bundled one.
func (v *snapshot) named(name string) (store.Connector, bool) {
	for _, key := range []string{name, abi.SlugOf(name)} {
		for _, bundled := range []bool{false, true} {
			for _, k := range v.connectors {
				if k.Bundled == bundled && (string(k.ID) == key || k.Name == key) {
					return k, true
				}
			}
		}
	}
	return store.Connector{}, false
}

// connectorOf finds the connector of a connection like LoadFor: the approved module, otherwise the installed
// one.
func (v *snapshot) connectorOf(c store.Connection) (store.Connector, bool) {
	for _, fits := range []func(store.Connector) bool{
		func(k store.Connector) bool { return k.Digest == c.Digest },
		func(k store.Connector) bool { return !k.Bundled },
		func(store.Connector) bool { return true },
	} {
		for _, k := range v.connectors {
			if k.ID == c.ConnectorID && fits(k) {
				return k, true
			}
		}
	}
	return store.Connector{}, false
}

// manifest returns the manifest of a connector, nil if it is not valid any more.
func (v *snapshot) manifest(k store.Connector) *abi.Manifest {
	key := installedAs{k.ID, k.Bundled}
	m, ok := v.manifests[key]
	if !ok {
		m, _ = abi.ReadManifest(k.Manifest)
		v.manifests[key] = m
	}
	return m
}

func (v *snapshot) notReady(ctx context.Context, c store.Connection) []string {
	codes := []string{}
	add := func(code string) {
		if code != "" && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	if !c.Enabled {
		add("connection_disabled")
	}
	if _, active := v.leases[c.ID]; active {
		add("run_already_active")
	}
	if !slices.ContainsFunc(v.labels, func(has []string) bool { return len(lacking(has, c.Labels)) == 0 }) {
		add(noLabel)
	}
	add(c.Grant.Fault(store.Now(v.from.Store)))
	k, listed := v.connectorOf(c)
	var m *abi.Manifest
	switch {
	case !listed || v.from.modules.moduleMissing(k):
		add("connector_not_runnable")
	default:
		if m = v.manifest(k); m == nil {
			add("connector_invalid")
		}
	}
	if m != nil {
		if !sameJSON(c.Manifest, k.Manifest) && len(added(c, m)) > 0 {
			add("binding_not_approved")
		}
		for _, r := range run.Faults(ctx, v.from.Store, v.input(c, k, m)) {
			add(r.Code)
		}
	}
	if v.full {
		add("store_no_space")
	}
	return codes
}

// input describes a start without opening secrets. A secret that is set has a placeholder.
func (v *snapshot) input(c store.Connection, k store.Connector, m *abi.Manifest) run.Input {
	in := run.Input{
		Connector: k, Connection: c, Manifest: m, Interactive: !c.Approved.NoInteractive,
		Secrets: map[string]string{}, Tokens: map[string]run.Token{}, Kinds: Kinds, Absent: v.absent(m),
	}
	for name := range v.set[c.ID] {
		in.Secrets[name] = "set"
	}
	for _, f := range run.SecretFields(m) {
		if f.OAuth == nil {
			continue
		}
		delete(in.Secrets, f.Name)
		if v.obtainable(c, f) {
			in.Tokens[f.Name] = replayedToken("")
		}
	}
	return in
}

// obtainable reports whether the host has what it needs to obtain a token.
func (v *snapshot) obtainable(c store.Connection, f abi.SecretField) bool {
	secrets := map[string]string{}
	if _, set := v.set[c.ID][f.OAuth.ClientSecret]; set {
		secrets[f.OAuth.ClientSecret] = "set"
	}
	client, err := authClient(f.OAuth, c, secrets, nil)
	if err != nil || client == nil {
		return false
	}
	if f.OAuth.Grant == abi.OAuthClient {
		return true
	}
	value, ok, err := v.from.secrets.stored(c.ID, f.Name)
	if err != nil || !ok {
		return false
	}
	have, err := oauth.ReadStored([]byte(value))
	return err == nil && have.For(f.OAuth, client.ID) == nil
}
