package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// NotReady lists every pre-start code of runtime.md §6.1 that would refuse a
// start of a connection now, in the order of that table; empty when it is ready
// (A193). No secret but authorizations is opened for it. store.ErrNotFound.
func (h *Host) NotReady(ctx context.Context, id store.ConnectionID) ([]string, error) {
	c, err := h.lasting(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := h.survey(ctx)
	if err != nil {
		return nil, err
	}
	return v.notReady(ctx, c), nil
}

// A survey is what one answer is made from: everything is read once.
type survey struct {
	host       *Host
	connectors []store.Connector
	leases     map[store.ConnectionID]store.Lease
	set        map[store.ConnectionID]map[string]time.Time // secrets, and since when
	full       bool                                        // there is no room for a start
	absent     map[string]string                           // bindings that there are none of to lend, and why

	manifests map[installedAs]*abi.Manifest // nil for one that cannot be read
}

// An installedAs is what the store tells connectors apart by.
type installedAs struct {
	id      store.ConnectorID
	bundled bool
}

func (h *Host) survey(ctx context.Context) (*survey, error) {
	v := &survey{host: h, leases: map[store.ConnectionID]store.Lease{}, manifests: map[installedAs]*abi.Manifest{}, full: h.room() != nil, absent: h.absent(ctx)}
	var err error
	if v.connectors, err = h.Store.Connectors(ctx); err != nil {
		return nil, err
	}
	leases, err := h.Store.Leases(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		v.leases[l.ConnectionID] = l
	}
	if v.set, err = h.secretsSet(); errors.Is(err, vault.ErrUnsafe) {
		err = nil // as good as empty: a start is refused with the remedy, and Info warns
	}
	return v, err
}

// named finds a connector as R17 does: installed before bundled.
func (v *survey) named(name string) (store.Connector, bool) {
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

// of finds the connector of a connection as LoadFor does: the module that was
// approved, or else the one that is installed.
func (v *survey) of(c store.Connection) (store.Connector, bool) {
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

// manifest is nil for one that is not valid any more.
func (v *survey) manifest(k store.Connector) *abi.Manifest {
	key := installedAs{k.ID, k.Bundled}
	m, ok := v.manifests[key]
	if !ok {
		m, _ = abi.ReadManifest(k.Manifest)
		v.manifests[key] = m
	}
	return m
}

func (v *survey) notReady(ctx context.Context, c store.Connection) []string {
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
	add(c.Grant.Fault(time.Now()))
	k, listed := v.of(c)
	var m *abi.Manifest
	switch {
	case !listed || v.host.moduleMissing(k):
		add("connector_not_runnable")
	default:
		if m = v.manifest(k); m == nil {
			add("connector_invalid")
		}
	}
	if m != nil {
		if !sameJSON(c.Manifest, k.Manifest) && len(Added(c, &Loaded{Manifest: m})) > 0 {
			add("binding_not_approved")
		}
		for _, r := range run.Faults(ctx, v.host.Store, v.input(c, k, m)) {
			add(r.Code)
		}
	}
	if v.full {
		add("store_no_space")
	}
	return codes
}

// moduleMissing: its file is not where it was kept, or not as long. Whether it is
// what was installed shows when it is opened (S138).
func (h *Host) moduleMissing(k store.Connector) bool {
	if !isDigest(string(k.Digest)) {
		return true
	}
	fi, err := os.Stat(h.modulePath(k.Digest))
	return errors.Is(err, fs.ErrNotExist) || err == nil && k.Size > 0 && fi.Size() != k.Size
}

// input is a start as far as it can be known without opening secrets: those that
// are set have a stand-in.
func (v *survey) input(c store.Connection, k store.Connector, m *abi.Manifest) run.Input {
	in := run.Input{
		Connector: k, Connection: c, Manifest: m, Interactive: !c.Approved.NoInteractive,
		Secrets: map[string]string{}, Tokens: map[string]run.Token{}, Kinds: Kinds, Absent: v.absent,
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

// obtainable: the host has what it takes to ask for a token.
func (v *survey) obtainable(c store.Connection, f abi.SecretField) bool {
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
	value, ok, err := v.host.stored(c.ID, f.Name)
	if err != nil || !ok {
		return false
	}
	have, err := oauth.ReadStored([]byte(value))
	return err == nil && have.For(f.OAuth, client.ID) == nil
}

// secretsSet says which secrets are set, by connection and name.
func (h *Host) secretsSet() (map[store.ConnectionID]map[string]time.Time, error) {
	out := map[store.ConnectionID]map[string]time.Time{}
	if h.DataDir == "" {
		return out, nil
	}
	v, err := vault.Open(h.DataDir)
	if err != nil {
		return nil, err
	}
	all, err := v.List()
	for _, e := range all {
		id := store.ConnectionID(e.Connection)
		if out[id] == nil {
			out[id] = map[string]time.Time{}
		}
		out[id][e.Name] = e.Set
	}
	return out, err
}
