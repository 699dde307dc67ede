package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// authorizer obtains tokens: once when an owner authorizes a connector, and then for each run.
type authorizer struct {
	*directory
	connections *connectionStore
	grants      *grantStore
	secrets     *secretStore
	bindings    *bindings
}

// ErrNotAuthorized is returned for a secret that is not obtained by an owner's authorization.
var ErrNotAuthorized = errors.New("nothing to authorize")

// Authorizable returns the OAuth declaration of a secret that owners authorize. The error is ErrNotAuthorized,
// with what to do instead.
func Authorizable(m *abi.Manifest, name string) (*abi.OAuth, error) {
	var names []string
	for _, f := range run.SecretFields(m) {
		switch {
		case f.OAuth == nil:
		case f.OAuth.Grant == abi.OAuthRefresh && f.Name == name:
			return f.OAuth, nil
		case f.OAuth.Grant == abi.OAuthRefresh:
			names = append(names, f.Name)
		case f.Name == name:
			return nil, fmt.Errorf("%w: %s is obtained with the secret %s, which is stored with sluice secret set",
				ErrNotAuthorized, name, f.OAuth.ClientSecret)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("%w: no secret of %s is authorized this way; sluice inspect shows what it asks for",
			ErrNotAuthorized, m.Name())
	}
	return nil, fmt.Errorf("%w: %s is no such secret; these are: %s", ErrNotAuthorized, abi.Cut(abi.Clean(name), 80),
		strings.Join(names, ", "))
}

// WantedTokenHosts returns the servers from which a secret is obtained and which approved does not cover.
// Servers of the owner's own network are left out of asked, since an answer cannot approve them.
func WantedTokenHosts(o *abi.OAuth, approved []string) (asked []string, err error) {
	policy, err := policyOf(approved)
	if err != nil {
		return nil, err
	}
	return network.Answerable(policy.Missing(network.TokenHosts(o))), nil
}

// begin approves the hosts of a request for its connection and returns the client that authorizes the secret.
// The client sends its requests through via, which the caller closes.
func (az *authorizer) begin(ctx context.Context, who RunRequest, o *abi.OAuth,
	secret string) (c *oauth.Client, via *egress.Client, err error) {
	m := who.Connector.Manifest
	if az.DataDir == "" {
		return nil, nil, host.Refuse("unavailable", "a store in memory keeps no secrets")
	}
	conn, err := az.connections.find(ctx, who)
	if err != nil {
		return nil, nil, err
	}
	if code := conn.Grant.Fault(store.Now(az.Store)); code != "" {
		return nil, nil, unusable(conn.ID, code, m)
	}
	if conn, err = az.grants.pin(ctx, conn, who.Connector, false); err != nil {
		return nil, nil, err
	}
	all := binding.Union(conn.Approved.Hosts, who.Approved.Hosts)
	policy, err := tokenPolicy(o, conn.ID, all)
	if err != nil {
		return nil, nil, err
	}
	now := conn
	if who.Config != nil {
		if err := knownSettings(m, who.Config); err != nil {
			return nil, nil, err
		}
		now.Settings = who.Config
	}
	if c, via, err = az.client(m, o, now, secret, policy); err != nil {
		return nil, nil, err
	}
	if conn, err = az.connections.findOrMake(ctx, who); err == nil && len(all) > len(conn.Approved.Hosts) {
		_, err = az.grants.give(ctx, conn.ID, conn.Digest, func(c *store.Connection) error {
			if code := c.Grant.Fault(store.Now(az.Store)); code != "" {
				return unusable(c.ID, code, m)
			}
			c.Approved.Hosts = binding.Union(c.Approved.Hosts, who.Approved.Hosts)
			return nil
		})
	}
	if err != nil {
		via.Close()
	}
	return c, via, err
}

// tokenPolicy returns the policy for approved hosts, or a binding_not_approved refusal if it misses a server of the
// secret.
func tokenPolicy(o *abi.OAuth, id store.ConnectionID, approved []string) (*egress.Policy, error) {
	policy, err := policyOf(approved)
	if err != nil {
		return nil, err
	}
	if missing := policy.Missing(network.TokenHosts(o)); len(missing) > 0 {
		return nil, &run.Refusal{Code: "binding_not_approved",
			Message: fmt.Sprintf("host %s (give it with --allow-host %s) is not approved for connection %s",
				missing[0], missing[0], id),
			Details: map[string]any{"binding": abi.BindingNetwork}}
	}
	return policy, nil
}

func unusable(id store.ConnectionID, code string, m *abi.Manifest) error {
	return refusal(code, fmt.Errorf("the grant of connection %s is %s; sluice grant %s gives a new one", id,
		strings.TrimPrefix(code, "grant_"), m.Name()))
}

// client returns the client that authorizes a secret, and the network client that it uses.
func (az *authorizer) client(m *abi.Manifest, o *abi.OAuth, conn store.Connection, name string,
	p *egress.Policy) (*oauth.Client, *egress.Client, error) {
	secrets, err := az.secrets.ofRun(m, conn.ID, nil)
	if err != nil {
		return nil, nil, err
	}
	via, err := az.bindings.client(egress.Options{Policy: p}, &requestLogger{dir: az.directory, connection: conn.ID})
	if err != nil {
		return nil, nil, err
	}
	c, err := authClient(o, conn, secrets, via)
	if err == nil && c == nil {
		err = &run.Refusal{Code: "secret_missing",
			Message: fmt.Sprintf("secret %s is required to authorize %s; store it with sluice secret set %s %s", o.ClientSecret,
				name, conn.ID, o.ClientSecret),
			Details: map[string]any{"secret": o.ClientSecret}}
	}
	if err != nil {
		via.Close()
	}
	return c, via, err
}

// storeToken stores the tokens of an authorization, unless its connection was deleted or lost its grant or a needed
// host meanwhile.
func (az *authorizer) storeToken(ctx context.Context, m *abi.Manifest, o *abi.OAuth, id store.ConnectionID, name string,
	s oauth.Stored) error {
	conn, err := az.connections.permanent(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return refusal("connection_not_found", fmt.Errorf("connection %s was deleted meanwhile; nothing is stored", id))
	}
	if err != nil {
		return err
	}
	if code := conn.Grant.Fault(store.Now(az.Store)); code != "" {
		return unusable(id, code, m)
	}
	if _, err := tokenPolicy(o, id, conn.Approved.Hosts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return az.secrets.change(by(ctx,
		audit.Event{Action: audit.SecretSet, Target: string(id) + "/" + name, Outcome: audit.Done}),
		func(v vault.Keeper) error { return putAuthorization(v, id, name, s) })
}

// IsAuthorization reports whether a stored secret is the result of an authorization. It is false for one that
// cannot be opened.
func IsAuthorization(v vault.Keeper, e vault.Entry) bool {
	s, err := v.Get(e.Connection, e.Name)
	if err != nil {
		return false
	}
	defer s.Wipe()
	is := false
	s.Use(func(b []byte) { is = isAuthorization(b) })
	return is
}

func isAuthorization(value []byte) bool {
	s, err := oauth.ReadStored(value)
	return err == nil && s.Version > 0
}
