package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// grantStore gives connections what their owner approves, takes it back, and writes both
// down. What is taken back ends the connection's run.
type grantStore struct {
	*directory
	connections *connectionStore
	publishers  *publishers
	active      *activeRuns
}

// A GrantRequest is what an owner gives a connection.
type GrantRequest struct {
	Connector  *Loaded
	Connection store.ConnectionID // "" is the connector's name
	// Terms replace those of the grant; nil keeps them, unless the grant cannot be
	// used any more: then the new one has none.
	Terms *host.GrantTerms
	// Approved is added to what is approved.
	Approved store.Approved
	// Accepted says that the owner knows what Doubts returns and goes on.
	Accepted bool
}

// Grant stores what an owner gives, and that this version of the connector is
// the one they looked at. It applies to the next run.
func (gs *grantStore) Grant(ctx context.Context, q GrantRequest) (store.Connection, error) {
	if err := gs.checkSpace(); err != nil {
		return store.Connection{}, err
	}
	who := RunRequest{Connector: q.Connector, Connection: q.Connection, Accepted: q.Accepted}
	if err := gs.publishers.checkDoubts(ctx, who); err != nil {
		return store.Connection{}, err
	}
	c, err := gs.connections.find(ctx, who)
	if err != nil {
		return c, err
	}
	now := store.Now(gs.Store)
	if q.Terms != nil {
		if err := checkTerms(ctx, *q.Terms, gs.Store, c.ID, q.Connector.Manifest, now); err != nil {
			return c, err
		}
	}
	if _, err := policyOf(q.Approved.Hosts); err != nil {
		return c, err
	}
	if c, err = gs.connections.findOrMake(ctx, who); err != nil {
		return c, err
	}
	return gs.give(ctx, c.ID, q.Connector.Connector.Digest, func(c *store.Connection) error {
		if q.Terms != nil {
			c.Grant = &store.Grant{
				AccessMode: cmp.Or(q.Terms.AccessMode, "continuous"), Scope: q.Terms.Scope, ExpiresAt: q.Terms.ExpiresAt,
				Status: "active", Ref: newGrantRef(now), ApprovedBy: host.Who(ctx).ID, ApprovedAt: now,
			}
		} else if c.Grant.Fault(now) != "" {
			c.Grant = nil
		}
		c.Approved = merge(c.Approved, q.Approved)
		c.Manifest, c.Digest = q.Connector.Manifest.Raw, q.Connector.Connector.Digest
		return nil
	})
}

// give changes what a connection is granted and writes that to the audit log.
func (gs *grantStore) give(ctx context.Context, id store.ConnectionID, d store.Digest, change func(*store.Connection) error) (c store.Connection, err error) {
	err = gs.audited(by(ctx, grantEvent(audit.GrantApproved, id, d)), func() (err error) {
		c, err = gs.connections.change(ctx, id, change)
		return err
	})
	return c, err
}

// takeBack takes something back from a connection and cancels its run. It takes effect even
// when the audit log cannot be written; the error says so.
func (gs *grantStore) takeBack(ctx context.Context, id store.ConnectionID, change func(*store.Connection) error) (store.Connection, error) {
	c, err := gs.connections.change(ctx, id, func(c *store.Connection) error {
		c.Withdrawals++
		return change(c)
	})
	if err != nil {
		return c, err
	}
	gs.active.cancel(id, revocation(ctx)) // a run that began since then looks for itself
	if err := gs.Audit(by(ctx, grantEvent(audit.GrantRevoked, id, c.Digest))); err != nil {
		return c, fmt.Errorf("%s of %s was done, but not written down: %w", audit.GrantRevoked, id, err)
	}
	return c, nil
}

// revoked cancels a run whose grant was taken back, where nobody knows by whom.
var revoked = run.CancelRequest{Cause: "grant_revoked", By: "owner"}

// revocation is revoked with the principal of the context.
func revocation(ctx context.Context) run.CancelRequest {
	c := revoked
	if who := host.Who(ctx).ID; who != "" {
		c.By = who
	}
	return c
}

func grantEvent(a audit.Action, id store.ConnectionID, d store.Digest) audit.Event {
	return audit.Event{Action: a, Target: string(id), Outcome: audit.Done, Details: []audit.Detail{audit.Digest(string(d))}}
}

func checkTerms(
	ctx context.Context, t host.GrantTerms, st store.Store, id store.ConnectionID, m *abi.Manifest, now time.Time,
) error {
	if t.ExpiresAt != nil && !t.ExpiresAt.After(now) {
		return refusal("grant_invalid", fmt.Errorf("a grant until %s would have expired already", store.Time(*t.ExpiresAt)))
	}
	s, err := scope.Normalise(scope.Request{Manifest: m, Explicit: t.Scope})
	var bad *scope.Error
	if errors.As(err, &bad) {
		return refusal(bad.Code, fmt.Errorf("%s: %s", bad.Member, bad.Want))
	}
	if err != nil || t.Narrow {
		return err
	}
	losses, err := run.Losses(ctx, st, id, s)
	if err != nil || len(losses) == 0 {
		return err
	}
	return run.NarrowRefusal(losses[0])
}

// newGrantRef makes the name of an approval.
func newGrantRef(now time.Time) string {
	return "gra_" + strings.TrimPrefix(string(run.NewRunID(now)), "run_")
}

// Revoke takes back everything an owner gave a connection, and ends its run. What it collected
// stays, and so do its cursors and secrets.
func (gs *grantStore) Revoke(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	gs.active.cancel(id, revocation(ctx)) // before the store refuses what the run collected
	return gs.takeBack(ctx, id, func(c *store.Connection) error {
		takeAll(c)
		return nil
	})
}

func takeAll(c *store.Connection) {
	if c.Grant == nil {
		c.Grant = &store.Grant{AccessMode: "continuous"}
	}
	c.Grant.Status, c.Approved = "revoked", store.Approved{}
}

// ErrNotApproved: nothing of that name is approved.
var ErrNotApproved = errors.New("not approved")

// Added is what a manifest asks for beyond the one that the owner of a connection
// approved, which is empty where there is none, within the scope that was granted.
func Added(approved, scope json.RawMessage, asked *abi.Manifest) []grant.Want {
	if len(approved) == 0 {
		return nil
	}
	before, err := abi.ReadManifest(approved)
	if err != nil { // it was valid when it was approved, by other rules
		return Wants(asked)
	}
	added := grant.Added(Kinds, before, asked)
	if len(scope) > 0 {
		added = append(added, looser(scope, before, asked)...)
	}
	return added
}

// added is Added for a connection as it is stored.
func added(c store.Connection, asked *abi.Manifest) []grant.Want {
	if c.Grant == nil {
		return Added(c.Manifest, nil, asked)
	}
	return Added(c.Manifest, c.Grant.Scope, asked)
}

// looser is what a grant's scope would let through under another manifest: the fields that are
// always collected, and what time and resources are measured by, are the manifest's to say.
func looser(granted json.RawMessage, approved, asked *abi.Manifest) (out []grant.Want) {
	before, err := scope.Normalise(scope.Request{Manifest: approved, Grant: granted})
	after, err2 := scope.Normalise(scope.Request{Manifest: asked, Grant: granted})
	if err != nil || err2 != nil {
		return nil // no run starts with it
	}
	for i, s := range after.Streams { // both follow the grant
		for _, f := range s.Fields {
			if !slices.Contains(before.Streams[i].Fields, f) {
				out = append(out, grant.Of(grant.Stream, s.Name, "with its field "+f))
			}
		}
		was, now := approved.Stream(s.Name), asked.Stream(s.Name)
		if s.TimeRange != nil && now.ConsentTimeField != was.ConsentTimeField {
			out = append(out, grant.Of(grant.Stream, s.Name, "by another time than "+was.ConsentTimeField))
		}
		if len(s.Resources) > 0 && now.ResourceField != was.ResourceField {
			out = append(out, grant.Of(grant.Stream, s.Name, "by other resources than "+was.ResourceField))
		}
	}
	return out
}

// pin records that the connection uses this version of its connector. A version that asks for
// more than the approved one is refused unless the owner accepted that.
func (gs *grantStore) pin(ctx context.Context, c store.Connection, l *Loaded, accepted bool) (store.Connection, error) {
	if c.Grant.Fault(store.Now(gs.Store)) != "" || c.Digest == l.Connector.Digest && string(c.Manifest) == string(l.Manifest.Raw) {
		return c, nil // a grant that cannot be used refuses the start before anything else does
	}
	adopt := func(c *store.Connection) error {
		if added := added(*c, l.Manifest); len(added) > 0 && !accepted {
			return asksMore(c.ID, l, added)
		}
		c.Manifest, c.Digest = l.Manifest.Raw, l.Connector.Digest
		return nil
	}
	if accepted {
		return gs.give(ctx, c.ID, l.Connector.Digest, adopt)
	}
	return gs.connections.change(ctx, c.ID, adopt)
}

func asksMore(id store.ConnectionID, l *Loaded, added []grant.Want) error {
	var words []string
	for _, w := range added {
		words = append(words, w.String())
	}
	command := "sluice grant " + l.Manifest.Name()
	if string(id) != l.Manifest.Name() {
		command += " --connection " + string(id)
	}
	r := refusal("binding_not_approved", fmt.Errorf("this version of %s asks for more than connection %s was granted: to %s; %s gives it",
		l.Manifest.Name(), id, abi.Cut(strings.Join(words, ", to "), 1000), command))
	r.Details = map[string]any{"connection_id": id, "added": added}
	return r
}
