package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// Terms bound a grant (§2.2).
type Terms struct {
	Scope     json.RawMessage // nil: everything declared
	SingleUse bool
	Expires   *time.Time
}

// A GrantRequest is what an owner gives a connection.
type GrantRequest struct {
	Connector  *Loaded
	Connection store.ConnectionID // "" is the connector's name
	// Terms replace those of the grant; nil keeps them, unless the grant cannot be
	// used any more: then the new one has none.
	Terms *Terms
	// Approved is added to what is approved.
	Approved store.Approved
	// Accepted says that the owner looked at what Doubts says.
	Accepted bool
}

// Grant stores what an owner gives, and that this version of the connector is
// the one they looked at. It applies to the next run.
func (h *Host) Grant(ctx context.Context, q GrantRequest) (store.Connection, error) {
	if err := h.room(); err != nil {
		return store.Connection{}, err
	}
	who := RunRequest{Connector: q.Connector, Connection: q.Connection, Accepted: q.Accepted}
	if err := h.vouched(ctx, who); err != nil {
		return store.Connection{}, err
	}
	c, err := h.connection(ctx, who)
	if err != nil {
		return c, err
	}
	now := time.Now()
	if q.Terms != nil {
		if err := q.Terms.check(q.Connector.Manifest, now); err != nil {
			return c, err
		}
		c.Grant = q.Terms.grant()
	} else if c.Grant.Fault(now) != "" {
		c.Grant = nil
	}
	if c.Approved = merge(c.Approved, q.Approved); len(c.Approved.Hosts) > 0 {
		if _, err := policyOf(c.Approved.Hosts); err != nil {
			return c, err
		}
	}
	c.Manifest, c.Digest, c.UpdatedAt = q.Connector.Manifest.Raw, q.Connector.Connector.Digest, now
	return c, h.keep(ctx, audit.GrantApproved, c)
}

// keep stores a connection whose grant changed, and writes that down.
func (h *Host) keep(ctx context.Context, a audit.Action, c store.Connection) error {
	e := audit.Event{Action: a, Target: string(c.ID), Outcome: audit.Done, Details: []audit.Detail{audit.Digest(string(c.Digest))}}
	return h.audited(e, func() error { return h.Store.PutConnection(ctx, c) })
}

func (t *Terms) check(m *abi.Manifest, now time.Time) error {
	if t.Expires != nil && !t.Expires.After(now) {
		return refusal("grant_invalid", fmt.Errorf("a grant until %s would have expired already", store.Time(*t.Expires)))
	}
	_, err := scope.Normalise(scope.Request{Manifest: m, Explicit: t.Scope})
	var bad *scope.Error
	if errors.As(err, &bad) {
		return refusal(bad.Code, fmt.Errorf("%s: %s", bad.Member, bad.Want))
	}
	return err
}

func (t *Terms) grant() *store.Grant {
	g := &store.Grant{AccessMode: "continuous", Scope: t.Scope, ExpiresAt: t.Expires, Status: "active"}
	if t.SingleUse {
		g.AccessMode = "single_use"
	}
	return g
}

// merge adds approvals. An approval of a directory replaces one of that name.
func merge(have, more store.Approved) store.Approved {
	return store.Approved{
		Hosts: union(have.Hosts, more.Hosts), Mounts: mergeMounts(have.Mounts, more.Mounts),
		Browser: have.Browser || more.Browser, Plain: union(have.Plain, more.Plain),
		Destinations: mergeDestinations(have.Destinations, more.Destinations),
	}
}

func union(have, more []string) []string {
	out := slices.Clone(have)
	for _, m := range more {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// Revoke takes back everything an owner gave a connection, and ends its run
// (R8). What it collected stays, and so do its cursors and secrets.
func (h *Host) Revoke(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	c, err := h.Store.Connection(ctx, id)
	if err != nil {
		return c, err
	}
	g := store.Grant{AccessMode: "continuous"}
	if c.Grant != nil {
		g = *c.Grant
	}
	g.Status = "revoked"
	c.Grant, c.Approved, c.UpdatedAt = &g, store.Approved{}, time.Now()
	h.active.cancel(id, run.CancelRequest{Cause: "grant_revoked", By: "owner"})
	return c, h.keep(ctx, audit.GrantRevoked, c)
}

// Narrow takes back single approvals, and ends the connection's run. What is
// not approved is ErrNotApproved.
func (h *Host) Narrow(ctx context.Context, id store.ConnectionID, hosts, mounts, plain []string) (store.Connection, error) {
	c, err := h.Store.Connection(ctx, id)
	if err != nil {
		return c, err
	}
	var missing []string
	for _, name := range mounts {
		n := len(c.Approved.Mounts)
		c.Approved.Mounts = slices.DeleteFunc(c.Approved.Mounts, func(m store.Mount) bool { return m.Name == name })
		if len(c.Approved.Mounts) == n {
			missing = append(missing, name)
		}
	}
	var gone []string
	c.Approved.Hosts, gone = without(c.Approved.Hosts, hosts)
	missing = append(missing, gone...)
	c.Approved.Plain, gone = without(c.Approved.Plain, plain)
	if missing = append(missing, gone...); len(missing) > 0 {
		return c, fmt.Errorf("%w for connection %s: %s", ErrNotApproved, id, abi.Clean(strings.Join(missing, ", ")))
	}
	c.UpdatedAt = time.Now()
	h.active.cancel(id, run.CancelRequest{Cause: "grant_revoked", By: "owner"})
	return c, h.keep(ctx, audit.GrantRevoked, c)
}

// ErrNotApproved: nothing of that name is approved.
var ErrNotApproved = errors.New("not approved")

// without takes away names; those that were not there are missing.
func without(have, names []string) (left, missing []string) {
	left = slices.DeleteFunc(slices.Clone(have), func(h string) bool { return slices.Contains(names, h) })
	for _, n := range names {
		if !slices.Contains(have, n) {
			missing = append(missing, n)
		}
	}
	return left, missing
}

// Added is what a version of a connector asks for beyond the one that the owner
// of a connection approved (S3, A180).
func Added(c store.Connection, l *Loaded) []grant.Want {
	if len(c.Manifest) == 0 {
		return nil
	}
	approved, err := abi.ReadManifest(c.Manifest)
	if err != nil { // it was valid when it was approved, by other rules
		return grant.Wants(l.Manifest)
	}
	return grant.Added(approved, l.Manifest)
}

// pin makes this version of the connector the connection's. One that asks for
// more is refused unless the owner accepted that.
func (h *Host) pin(ctx context.Context, c store.Connection, l *Loaded, accepted bool) (store.Connection, error) {
	if c.Grant.Fault(time.Now()) != "" || c.Digest == l.Connector.Digest && string(c.Manifest) == string(l.Manifest.Raw) {
		return c, nil // a grant that cannot be used refuses the start before anything else does
	}
	if added := Added(c, l); len(added) > 0 && !accepted {
		var words []string
		for _, w := range added {
			words = append(words, w.String())
		}
		command := "sluice grant " + l.Manifest.Name()
		if string(c.ID) != l.Manifest.Name() {
			command += " --connection " + string(c.ID)
		}
		r := refusal("binding_not_approved", fmt.Errorf("this version of %s asks for more than connection %s was granted: to %s; %s gives it",
			l.Manifest.Name(), c.ID, abi.Cut(strings.Join(words, ", to "), 1000), command))
		r.Details = map[string]any{"connection_id": c.ID, "added": added}
		return c, r
	}
	c.Manifest, c.Digest, c.UpdatedAt = l.Manifest.Raw, l.Connector.Digest, time.Now()
	if accepted {
		return c, h.keep(ctx, audit.GrantApproved, c)
	}
	return c, h.Store.PutConnection(ctx, c)
}
