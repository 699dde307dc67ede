package app

import (
	"cmp"
	"context"
	"errors"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/store"
)

// grants implements host.Grants.
type grants struct {
	*directory
	connections *connectionStore
	grants      *grantStore
	overviews   *overviews
	bindings    *bindings
	schedules   *schedules
	workflows   *workflows
}

var (
	_ host.Grants  = (*grants)(nil)
	_ host.Folders = (*grants)(nil)
)

// Folder implements host.Folders.
func (gs *grants) Folder(_ context.Context, path string) (host.Folder, error) {
	f, err := filesystem.Folder(path, gs.DataDir)
	switch {
	case errors.Is(err, filesystem.ErrRefused):
		return f, invalid("at", "directory_refused", "no connector may see this directory, nor anything in it")
	case err != nil:
		return f, invalid("at", "directory_missing", "want the absolute path of a directory that exists and can be read")
	}
	return f, nil
}

// GrantConnection implements host.Grants. It also records the installed version of the connector as approved.
func (gs *grants) GrantConnection(ctx context.Context, id store.ConnectionID, q host.GrantTerms) (host.Grant, error) {
	who := host.Who(ctx)
	if err := gs.checkSpace(); err != nil {
		return host.Grant{}, asRefusal(err)
	}
	_, k, m, err := gs.overviews.configured(ctx, id)
	if err != nil {
		return host.Grant{}, asRefusal(err)
	}
	now := store.Now(gs.Store)
	g := &store.Grant{AccessMode: cmp.Or(q.AccessMode, "continuous"), Status: "active", Ref: newGrantRef(now),
		ApprovedBy: who.ID, ApprovedAt: now}
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
	terms := host.GrantTerms{Scope: g.Scope, Narrow: q.Narrow}
	if err := checkTerms(ctx, terms, gs.Store, id, m, now); err != nil {
		return host.Grant{}, asRefusal(err)
	}
	c, err := gs.grants.give(ctx, id, k.Digest, func(c *store.Connection) error {
		if c.Grant != nil {
			g.ID = c.Grant.ID // it is the namespace of the connection's state
		}
		c.Grant, c.Manifest, c.Digest = g, k.Manifest, k.Digest
		return nil
	})
	if err == nil {
		err = gs.schedules.clock.Restarted(ctx, id)
	}
	if err != nil {
		return host.Grant{}, asRefusal(err)
	}
	return *shownGrant(c, store.Now(gs.Store)), nil
}

// errGrantReplaced is returned when the grant to revoke is not the current one.
var errGrantReplaced = errors.New("another grant took its place")

// GrantConnector implements host.Grants.
func (gs *grants) GrantConnector(ctx context.Context, q host.ConnectorGrant) (host.Connection, error) {
	w, err := gs.workflows.withOverrides(ctx, q.Connector, q.Overrides)
	if err != nil {
		return host.Connection{}, asRefusal(err)
	}
	give := GrantRequest{Connector: w.loaded, Connection: w.connection, Accepted: q.Overrides.Accepted}
	given, err := gs.bindings.approval(w.loaded.Manifest, q.Overrides.Bindings)
	if err != nil {
		return host.Connection{}, err
	}
	give.Approved = given.Approved
	if give.Terms = q.Terms; q.Terms != nil {
		if q.Terms.AccessMode != "continuous" && q.Terms.AccessMode != "single_use" {
			return host.Connection{}, invalid("terms.accessMode", "value_unknown", "want continuous or single_use")
		}
		if string(q.Terms.Scope) == "null" {
			q.Terms.Scope = nil
		}
	}
	c, err := gs.grants.Grant(ctx, give)
	if err == nil {
		err = gs.schedules.clock.Restarted(ctx, c.ID) // the schedule begins anew under the new grant
	}
	if err != nil {
		return host.Connection{}, asRefusal(err)
	}
	return gs.overviews.connection(ctx, c.ID)
}

// RevokeGrant implements host.Grants.
func (gs *grants) RevokeGrant(ctx context.Context, id store.ConnectionID, ref string) error {
	c, err := gs.connections.permanent(ctx, id)
	if err != nil {
		return asRefusal(err)
	}
	gone := func(g *store.Grant) bool {
		return ref != "" && ref != grantRef(g) || g != nil && g.Status == "revoked" || unapproved(g)
	}
	if gone(c.Grant) {
		return nil
	}
	gs.grants.active.cancel(id, revocation(ctx)) // before the store refuses what the run collected
	_, err = gs.grants.revoke(ctx, id, func(c *store.Connection) error {
		if gone(c.Grant) {
			return errGrantReplaced
		}
		takeAll(c)
		return nil
	})
	if errors.Is(err, errGrantReplaced) {
		return nil
	}
	return asRefusal(err)
}

// errNarrower is returned for an approval that revokes something.
var errNarrower = errors.New("takes something back")

// ApproveBindings implements host.Grants. The new approval replaces the old one; if it revokes something, the
// connection's run is cancelled.
func (gs *grants) ApproveBindings(ctx context.Context, id store.ConnectionID, q host.Bindings) (host.Bindings, error) {
	_, k, m, err := gs.overviews.configured(ctx, id)
	if err != nil {
		return host.Bindings{}, asRefusal(err)
	}
	given, err := gs.bindings.approval(m, q)
	if err != nil {
		return host.Bindings{}, err
	}
	if given.ProfileName != "" {
		if err := gs.overviews.freeProfile(ctx, id, "browser.profile", given.ProfileName); err != nil {
			return host.Bindings{}, err
		}
	}
	replace := func(narrower bool) func(c *store.Connection) error {
		return func(c *store.Connection) error {
			if !narrower && narrows(c.Approved, given.Approved) {
				return errNarrower
			}
			c.Approved, c.ProfileName = given.Approved, cmp.Or(given.ProfileName, c.ProfileName)
			return nil
		}
	}
	c, err := gs.grants.give(ctx, id, k.Digest, replace(false))
	if errors.Is(err, errNarrower) {
		c, err = gs.grants.revoke(ctx, id, replace(true))
	}
	if err != nil {
		return host.Bindings{}, asRefusal(err)
	}
	return shownBindings(c, m), nil
}
