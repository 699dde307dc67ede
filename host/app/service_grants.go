package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/store"
)

// Requested implements host.Connections (A186).
func (s *Service) Requested(ctx context.Context, id store.ConnectionID) (host.Requested, error) {
	v, err := s.view(ctx)
	if err != nil {
		return host.Requested{}, err
	}
	c, err := v.connectionOf(id)
	if err != nil {
		return host.Requested{}, err
	}
	out := host.Requested{Streams: []host.RequestedStream{}, Bindings: map[string]host.RequestedBinding{}, Secrets: []host.Secret{}, Words: []string{}, Missing: []string{}}
	k, ok := v.of(c)
	m := v.manifest(k)
	if !ok || m == nil {
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
		Name: st.Name, Fields: []string{}, Views: []string{}, TimeRange: st.ConsentTimeField != "", Resources: st.ResourceField != "",
		Required: len(m.Children(st.Name)) > 0, // the cursors of others are its own
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

// missing are the wants of a manifest that the connection was not given.
func (v *survey) missing(c store.Connection, m *abi.Manifest) []grant.Want {
	added := Added(c, &Loaded{Manifest: m})
	usable := c.Grant.Fault(time.Now()) == ""
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
			return usable && grants(c.Grant, m, w.Name)
		case grant.Secret:
			_, set := in.Secrets[w.Name]
			return set || in.Tokens[w.Name] != nil
		case grant.Send:
			return usable && (!leftToOwner(m, w.Name) || len(c.Approved.Destinations[w.Name]) > 0)
		case grant.See:
			return usable && (!asksToSee(m, w.Name) || slices.Contains(c.Approved.Plain, w.Name))
		}
		return usable && w.Kind == grant.Obtain // this host has no other binding
	}
	out := slices.DeleteFunc(Wants(m), given)
	for _, w := range added {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// grants reports whether a usable grant has a stream.
func grants(g *store.Grant, m *abi.Manifest, stream string) bool {
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

// GrantConnection implements host.Connections (A187, A195). It says as well
// that the installed version of the connector is the one that was looked at.
func (s *Service) GrantConnection(ctx context.Context, id store.ConnectionID, q host.GrantTerms) (host.Grant, error) {
	who := host.Who(ctx)
	if err := s.host.room(); err != nil {
		return host.Grant{}, asked(err)
	}
	_, k, m, err := s.configured(ctx, id)
	if err != nil {
		return host.Grant{}, asked(err)
	}
	now := time.Now()
	g := &store.Grant{AccessMode: orElse(q.AccessMode, "continuous"), Status: "active", Ref: newGrantRef(now), ApprovedBy: who.ID, ApprovedAt: now}
	if g.AccessMode != "continuous" && g.AccessMode != "single_use" {
		return host.Grant{}, invalid("accessMode", "value_unknown", "want continuous or single_use")
	}
	if q.ExpiresAt != nil {
		if !q.ExpiresAt.After(now) {
			return host.Grant{}, invalid("expiresAt", "past", "want a time that is still to come")
		}
		until := q.ExpiresAt.UTC()
		g.ExpiresAt = &until
	}
	if g.Scope, err = freeze(m, q.Scope); err != nil {
		return host.Grant{}, err
	}
	terms := Terms{Scope: g.Scope, Narrow: q.Narrow}
	if err := terms.check(ctx, s.host.Store, id, m, now); err != nil {
		return host.Grant{}, asked(err)
	}
	c, err := s.host.give(ctx, id, k.Digest, func(c *store.Connection) error {
		if c.Grant != nil {
			g.ID = c.Grant.ID // the namespace of its state
		}
		c.Grant, c.Manifest, c.Digest = g, k.Manifest, k.Digest
		return nil
	})
	if err == nil {
		err = s.schedules.Restarted(ctx, id) // R205
	}
	if err != nil {
		return host.Grant{}, asked(err)
	}
	return *shownGrant(c), nil
}

// errOtherGrant: the grant that is to be revoked is not the current one.
var errOtherGrant = errors.New("another grant took its place")

// RevokeGrant implements host.Connections (A188, R8).
func (s *Service) RevokeGrant(ctx context.Context, id store.ConnectionID, ref string) error {
	h := s.host
	c, err := h.lasting(ctx, id)
	if err != nil {
		return asked(err)
	}
	gone := func(g *store.Grant) bool {
		return ref != "" && ref != grantRef(g) || g != nil && g.Status == "revoked" || unapproved(g)
	}
	if gone(c.Grant) {
		return nil
	}
	h.active.cancel(id, revocation(ctx)) // before the store refuses what the run collected
	_, err = h.takeBack(ctx, id, func(c *store.Connection) error {
		if gone(c.Grant) {
			return errOtherGrant
		}
		takeAll(c)
		return nil
	})
	if errors.Is(err, errOtherGrant) {
		return nil
	}
	return asked(err)
}
