package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// requestedBy returns what a manifest requests, by kind.
func requestedBy(m *abi.Manifest) host.RequestedByAll {
	out := host.RequestedByAll{Bindings: bindingsOf(m), Secrets: []string{}, Streams: []string{},
		InteractionKinds: append([]string{}, m.HumanKinds...)}
	for _, f := range run.SecretFields(m) {
		out.Secrets = append(out.Secrets, f.Name)
	}
	for _, st := range m.Streams {
		out.Streams = append(out.Streams, st.Name)
	}
	return out
}

// bindingsOf returns the bindings that a manifest requests.
func bindingsOf(m *abi.Manifest) map[string]host.RequestedBinding {
	out := map[string]host.RequestedBinding{}
	for name, b := range m.Bindings {
		r := host.RequestedBinding{Required: b.Required}
		if k, known := Kinds.Of(name); known {
			k.Request(b, &r)
		}
		out[name] = r
	}
	return out
}

func warnings(k store.Connector) []host.Warning {
	out := []host.Warning{}
	for _, w := range k.Warnings {
		out = append(out, host.Warning{Code: w.Code, Message: w.Message})
	}
	return out
}

// abiOf returns the ABI of a connector.
func abiOf(k store.Connector) host.ABI {
	if k.Transport == "stdio" {
		return host.ABI{Family: "stdio", Version: "0.1.0"}
	}
	return host.ABI{Family: "sluice", Version: fmt.Sprintf("%d.%d", abi.Major, abi.Minor)}
}

func words(wants []grant.Want) []string {
	out := []string{}
	for _, w := range wants {
		out = append(out, w.String())
	}
	return out
}

// Requested implements host.Grants.
func (gs *grants) Requested(ctx context.Context, id store.ConnectionID) (host.Requested, error) {
	v, err := gs.overviews.take(ctx)
	if err != nil {
		return host.Requested{}, err
	}
	c, err := v.connectionOf(id)
	if err != nil {
		return host.Requested{}, err
	}
	out := host.Requested{Streams: []host.RequestedStream{}, Bindings: map[string]host.RequestedBinding{},
		Secrets: []host.Secret{}, Words: []string{}, Missing: []string{}}
	m := v.manifestOf(c) // the approved one, for a connector that is not installed
	if k, ok := v.connectorOf(c); ok {
		m = v.manifest(k)
	}
	if m == nil {
		return out, nil
	}
	out.Bindings, out.Secrets, out.Words = bindingsOf(m), v.secrets(c, m, true), words(Wants(m))
	for _, st := range m.Streams {
		out.Streams = append(out.Streams, requestedStream(m, st))
	}
	out.Missing = words(v.missing(c, m))
	return out, nil
}

func requestedStream(m *abi.Manifest, st abi.StreamSpec) host.RequestedStream {
	out := host.RequestedStream{
		Name: st.Name, Fields: []string{}, Views: []string{}, TimeRange: st.ConsentTimeField != "",
		Resources: st.ResourceField != "",
		Required:  len(m.Children(st.Name)) > 0, // the cursors of its child streams depend on it
	}
	for name := range st.Properties {
		out.Fields = append(out.Fields, name)
	}
	slices.Sort(out.Fields)
	for _, v := range viewsOf(m, st.Name) {
		out.Views = append(out.Views, v.id)
	}
	return out
}

// missing returns the wants of a manifest that are not granted to the connection.
func (v *snapshot) missing(c store.Connection, m *abi.Manifest) []grant.Want {
	added := added(c, m)
	usable := c.Grant.Fault(store.Now(v.from.Store)) == ""
	lacking := map[grant.Want]bool{}
	for _, a := range Kinds.Asks(m, c.Approved) {
		for _, w := range a.Wants {
			lacking[w] = slices.Contains(a.Missing, w)
		}
	}
	in := v.input(c, store.Connector{}, m)
	given := func(w grant.Want) bool {
		if lacks, of := lacking[w]; of {
			return !lacks
		}
		switch w.Kind {
		case grant.Stream:
			return usable && grantsStream(c.Grant, m, w.Name)
		case grant.Secret:
			_, set := in.Secrets[w.Name]
			return set || in.Tokens[w.Name] != nil
		case grant.Send:
			return usable && (!leftToOwner(m, w.Name) || len(c.Approved.Destinations[w.Name]) > 0)
		case grant.See:
			return usable && (!asksToSee(m, w.Name) || slices.Contains(c.Approved.Plain, w.Name))
		}
		return usable && w.Kind == grant.Obtain // this host knows no other kind of want
	}
	out := slices.DeleteFunc(Wants(m), given)
	for _, w := range added {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// grantsStream reports whether a usable grant includes a stream.
func grantsStream(g *store.Grant, m *abi.Manifest, stream string) bool {
	if g == nil || len(g.Scope) == 0 {
		return m.Stream(stream).Availability != abi.UnsupportedInMode
	}
	root, err := strictjson.Parse(g.Scope, strictjson.ParseOptions{})
	if err != nil {
		return false
	}
	list, _ := root.Member("streams")
	for item := range list.Items() {
		if name, _ := item.Member("name"); name.Equal(stream) {
			return true
		}
	}
	return false
}
