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

// grantStore grants and revokes what owners approve for connections, and records both in the audit log. Revoking
// cancels the connection's run.
type grantStore struct {
	*directory
	connections *connectionStore
	publishers  *publishers
	active      *activeRuns
}

// A GrantRequest is what an owner grants a connection.
type GrantRequest struct {
	Connector  *Loaded
	Connection store.ConnectionID // by default the connector's name
	// Terms replace those of the grant. Nil keeps them, or removes a grant that is not usable any more.
	Terms *host.GrantTerms
	// Approved is added to what is approved already.
	Approved store.Approved
	// Accepted reports that the owner knows the result of Doubts and continues.
	Accepted bool
}

// Grant stores what an owner grants, and records this version of the connector as approved. It applies from the
// next run on.
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

// give changes what a connection is granted and records that in the audit log.
func (gs *grantStore) give(ctx context.Context, id store.ConnectionID, d store.Digest,
	change func(*store.Connection) error) (c store.Connection, err error) {
	err = gs.audited(by(ctx, grantEvent(audit.GrantApproved, id, d)), func() (err error) {
		c, err = gs.connections.change(ctx, id, change)
		return err
	})
	return c, err
}

// revoke revokes something from a connection and cancels its run. It takes effect even if the audit log cannot
// be written, which is returned as an error.
func (gs *grantStore) revoke(ctx context.Context, id store.ConnectionID,
	change func(*store.Connection) error) (store.Connection, error) {
	c, err := gs.connections.change(ctx, id, func(c *store.Connection) error {
		c.Withdrawals++
		return change(c)
	})
	if err != nil {
		return c, err
	}
	gs.active.cancel(id, revocation(ctx)) // a run that began since then checks by itself
	if err := gs.Audit(by(ctx, grantEvent(audit.GrantRevoked, id, c.Digest))); err != nil {
		return c, fmt.Errorf("%s of %s was done, but not written down: %w", audit.GrantRevoked, id, err)
	}
	return c, nil
}

// revoked cancels a run whose grant was revoked by an unknown principal.
var revoked = run.CancelRequest{Cause: "grant_revoked", By: "owner"}

// revocation returns revoked with the principal of the context.
func revocation(ctx context.Context) run.CancelRequest {
	c := revoked
	if who := host.Who(ctx).ID; who != "" {
		c.By = who
	}
	return c
}

func grantEvent(a audit.Action, id store.ConnectionID, d store.Digest) audit.Event {
	return audit.Event{Action: a, Target: string(id), Outcome: audit.Done,
		Details: []audit.Detail{audit.Digest(string(d))}}
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

// newGrantRef returns a new id of an approval.
func newGrantRef(now time.Time) string {
	return "gra_" + strings.TrimPrefix(string(run.NewRunID(now)), "run_")
}

// Revoke revokes everything that an owner granted a connection, and cancels its run. Collected data, cursors and
// secrets are kept.
func (gs *grantStore) Revoke(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	gs.active.cancel(id, revocation(ctx)) // before the store refuses what the run collected
	return gs.revoke(ctx, id, func(c *store.Connection) error {
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

// ErrNotApproved is returned for something that is not approved.
var ErrNotApproved = errors.New("not approved")

// Added returns what a manifest requests within the granted scope beyond the approved manifest. It is empty
// without an approved manifest.
func Added(approved, scope json.RawMessage, asked *abi.Manifest) []grant.Want {
	if len(approved) == 0 {
		return nil
	}
	before, err := abi.ReadManifest(approved)
	if err != nil { // it was approved under other rules
		return Wants(asked)
	}
	added := grant.Added(Kinds, before, asked)
	if len(scope) > 0 {
		added = append(added, widened(scope, before, asked)...)
	}
	return added
}

// added is Added for a stored connection.
func added(c store.Connection, asked *abi.Manifest) []grant.Want {
	if c.Grant == nil {
		return Added(c.Manifest, nil, asked)
	}
	return Added(c.Manifest, c.Grant.Scope, asked)
}

// widened returns what a grant's scope would additionally allow under another manifest, since the manifest
// determines the fields that are always collected and the fields that hold time and resource.
func widened(granted json.RawMessage, approved, asked *abi.Manifest) (out []grant.Want) {
	before, err := scope.Normalise(scope.Request{Manifest: approved, Grant: granted})
	after, err2 := scope.Normalise(scope.Request{Manifest: asked, Grant: granted})
	if err != nil || err2 != nil {
		return nil // no run starts with such a scope
	}
	for i, s := range after.Streams { // both are in the order of the grant
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

// pin records that the connection uses this version of its connector. A version that requests more than the
// approved one is refused unless the owner accepted that.
func (gs *grantStore) pin(ctx context.Context, c store.Connection, l *Loaded, accepted bool) (store.Connection, error) {
	if c.Grant.Fault(store.Now(gs.Store)) != "" || c.Digest == l.Connector.Digest &&
		string(c.Manifest) == string(l.Manifest.Raw) {
		return c, nil // a start refuses an unusable grant by itself
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
	r := refusal("binding_not_approved",
		fmt.Errorf("this version of %s asks for more than connection %s was granted: to %s; %s gives it",
			l.Manifest.Name(), id, abi.Cut(strings.Join(words, ", to "), 1000), command))
	r.Details = map[string]any{"connection_id": id, "added": added}
	return r
}
