package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// overviews makes the API's documents of connectors and connections.
type overviews struct {
	*directory
	snapshots *snapshots
	schedules *schedules
	attention attention
}

// An overview makes the documents of one API response from one snapshot.
type overview struct {
	*snapshot
	connections []store.Connection
	schedules   map[store.ConnectionID]*host.Schedule
	attention   attention
}

func (ov *overviews) take(ctx context.Context) (*overview, error) {
	v := &overview{attention: ov.attention, schedules: map[store.ConnectionID]*host.Schedule{}}
	var err error
	if v.snapshot, err = ov.snapshots.take(ctx); err != nil {
		return nil, err
	}
	if v.connections, err = ov.Store.Connections(ctx); err != nil {
		return nil, err
	}
	v.connections = slices.DeleteFunc(v.connections, func(c store.Connection) bool { return c.Temporary })
	slices.SortStableFunc(v.connectors, func(a, b store.Connector) int { return strings.Compare(a.Name, b.Name) })
	list, err := ov.schedules.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	for _, sc := range list {
		v.schedules[store.ConnectionID(sc.ConnectionID)] = &sc
	}
	return v, nil
}

// connectionOf finds a connection by its id.
func (v *overview) connectionOf(id store.ConnectionID) (store.Connection, error) {
	for _, c := range v.connections {
		if c.ID == id {
			return c, nil
		}
	}
	return store.Connection{}, notFound("connection")
}

// connector returns the API's document of a connector with its connections.
func (v *overview) connector(ctx context.Context, k store.Connector) (host.Connector, error) {
	out := host.Connector{
		ConnectorID: string(k.ID), Name: k.Name, Version: k.Version, ModuleDigest: string(k.Digest),
		DisplayName: k.DisplayName, Manifest: k.Manifest, ABI: abiOf(k), Source: host.Source{Type: k.Source},
		Signature: host.Signature{Status: "unsigned"}, Size: k.Size, InstalledAt: k.InstalledAt, InstalledBy: k.InstalledBy,
		IsDefault: true, Revision: max(k.Revision, 1), Warnings: warnings(k), Conformance: k.Conformance,
		Connections: []host.ConnectionRef{}, Words: []string{},
		Requested: host.RequestedByAll{Bindings: map[string]host.RequestedBinding{}, Secrets: []string{}, Streams: []string{},
			InteractionKinds: []string{}},
	}
	if k.Source == "" {
		out.Source.Type = "file"
		if k.Bundled {
			out.Source.Type = "bundled"
		}
	}
	if k.InstalledBy == "" {
		out.InstalledBy = "owner"
	}
	if k.Signer != nil {
		out.Signature = host.Signature{Status: "verified", Signer: k.Signer.Key}
	}
	if m := v.manifest(k); m != nil {
		out.Requested, out.Description, out.Words = requestedBy(m), described(m), words(Wants(m))
	}
	for _, c := range v.connections {
		if of, ok := v.connectorOf(c); !ok || of.ID != k.ID || of.Bundled != k.Bundled {
			continue
		}
		ref := host.ConnectionRef{ConnectionID: string(c.ID), DisplayName: shownAs(c, k),
			Ready: len(v.notReady(ctx, c)) == 0, Schedule: "none"}
		if sc := v.schedules[c.ID]; sc != nil {
			ref.Schedule = sc.EffectiveMode
		}
		out.Connections = append(out.Connections, ref)
	}
	return out, nil
}

// described returns the description in the manifest, "" for none.
func described(m *abi.Manifest) string {
	root, err := strictjson.Parse(m.Raw, strictjson.ParseOptions{})
	if err != nil {
		return ""
	}
	d, _ := root.Member("description")
	text, _ := d.Text()
	return abi.Cut(abi.Clean(text), 2000)
}

// shownAs returns the display name of a connection.
func shownAs(c store.Connection, k store.Connector) string {
	switch {
	case c.DisplayName != "":
		return c.DisplayName
	case string(c.ID) == k.Name && k.DisplayName != "":
		return k.DisplayName
	}
	return string(c.ID)
}

// connection returns the API's document of a connection.
func (v *overview) connection(ctx context.Context, c store.Connection) (host.Connection, error) {
	k, _ := v.connectorOf(c)
	m := v.manifestOf(c)
	out := host.Connection{
		ConnectionID: string(c.ID), DisplayName: shownAs(c, k), ConnectorID: string(c.ConnectorID), ConnectorName: k.Name,
		Version: k.Version, ModuleDigest: string(c.Digest), Mode: cmp.Or(c.Mode, "live"), Enabled: c.Enabled,
		NotReady: v.notReady(ctx, c), Settings: c.Settings, Secrets: v.secrets(c, m, false),
		Grant: shownGrant(c, store.Now(v.from.Store)), Bindings: shownBindings(c, m), ProfileName: cmp.Or(c.ProfileName, string(c.ID)), CollectionSince: c.CollectionSince,
		LeakCanary: cmp.Or(c.LeakCanary, "enforce"), Labels: listed(c.Labels), Schedule: v.schedules[c.ID],
		CreatedAt: c.CreatedAt, Revision: max(c.Revision, 1),
	}
	if c.Digest != k.Digest {
		out.Manifest = c.Manifest
	}
	out.Ready = len(out.NotReady) == 0
	if len(c.Settings) == 0 {
		out.Settings = json.RawMessage("{}")
	}
	if k.Name == "" { // uninstalled
		out.ConnectorName = abi.SlugOf(string(c.ConnectorID))
	}
	if m != nil && c.Digest != k.Digest {
		out.Version = m.Version
	}
	needs, err := v.attention.NeedsAttention(ctx, c.ID)
	if err != nil {
		return out, err
	}
	out.NeedsAttention = needs
	if l, active := v.leases[c.ID]; active {
		out.ActiveRunID = string(l.RunID)
	}
	out.LastRun, err = v.lastRun(ctx, c.ID)
	return out, err
}

// manifestOf returns the manifest with which the connection was approved, or the installed one if it has none.
// It is nil if the manifest cannot be read.
func (v *overview) manifestOf(c store.Connection) *abi.Manifest {
	if k, ok := v.connectorOf(c); ok && (k.Digest == c.Digest || len(c.Manifest) == 0) {
		return v.manifest(k)
	}
	m, err := abi.ReadManifest(c.Manifest)
	if err != nil {
		return nil
	}
	return m
}

// configured returns a connection, its connector, and the installed manifest, against which new settings and
// approvals are checked.
func (ov *overviews) configured(ctx context.Context,
	id store.ConnectionID) (c store.Connection, k store.Connector, m *abi.Manifest, err error) {
	v, err := ov.take(ctx)
	if err != nil {
		return c, k, nil, err
	}
	if c, err = v.connectionOf(id); err != nil {
		return c, k, nil, err
	}
	k, ok := v.connectorOf(c)
	if m = v.manifest(k); !ok || m == nil {
		return c, k, nil, host.Refuse("connector_not_runnable",
			"the connector of this connection is not installed; install it first")
	}
	return c, k, m, nil
}

func (ov *overviews) freeProfile(ctx context.Context, id store.ConnectionID, path, name string) error {
	v, err := ov.take(ctx)
	if err != nil {
		return err
	}
	return v.freeProfile(id, path, name)
}
