package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// authorizer obtains tokens: once from an owner who authorizes a connector, and then for
// each run.
type authorizer struct {
	*directory
	connections *connectionStore
	grants      *grantStore
	secrets     *secretStore
	bindings    *bindings
}

// An AuthorizationRequest names a secret that an owner is about to authorize.
type AuthorizationRequest struct {
	Connector  *Loaded
	Connection store.ConnectionID // "" is the connector's name
	Secret     string
	Config     json.RawMessage // nil keeps the connection's settings
	Hosts      []string        // to be approved for the connection
}

// An Authorization is one that can be made. It needs the host's store no more,
// so that runs may go on while the owner is in the browser.
type Authorization struct {
	Connection store.ConnectionID
	Secret     string
	client     *oauth.Client
	via        *network.Client
	vault      *AuditedVault
}

// A DeviceCode is what an owner enters, and where.
type DeviceCode = oauth.DeviceCode

// ErrNotAuthorized: the secret of that name is not one that owners authorize.
var ErrNotAuthorized = errors.New("nothing to authorize")

// Authorizable returns what a manifest says of a secret that owners authorize.
// The error is ErrNotAuthorized, with what to do instead.
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
			return nil, fmt.Errorf("%w: %s is obtained with the secret %s, which is stored with sluice secret set", ErrNotAuthorized, name, f.OAuth.ClientSecret)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("%w: no secret of %s is authorized this way; sluice inspect shows what it asks for", ErrNotAuthorized, m.Name())
	}
	return nil, fmt.Errorf("%w: %s is no such secret; these are: %s", ErrNotAuthorized, abi.Cut(abi.Clean(name), 80), strings.Join(names, ", "))
}

// WantedTokenHosts are the servers from which a secret is obtained and that nothing approved
// covers. Those of the owner's own network are left out of asked, which an answer may approve.
func WantedTokenHosts(o *abi.OAuth, approved []string) (asked []string, err error) {
	policy, err := policyOf(approved)
	if err != nil {
		return nil, err
	}
	return network.Answerable(policy.Missing(network.TokenHosts(o))), nil
}

// Authorize approves the hosts of the request for the connection, and returns
// the authorization that can be made then. The error is a *run.Refusal,
// ErrNotAuthorized or ErrNoVault.
func (az *authorizer) Authorize(ctx context.Context, q AuthorizationRequest) (*Authorization, error) {
	m := q.Connector.Manifest
	o, err := Authorizable(m, q.Secret)
	if err != nil {
		return nil, err
	}
	if az.DataDir == "" {
		return nil, ErrNoVault
	}
	who := RunRequest{Connector: q.Connector, Connection: q.Connection, Config: q.Config}
	conn, err := az.connections.find(ctx, who)
	if err != nil {
		return nil, err
	}
	if code := conn.Grant.Fault(time.Now()); code != "" {
		return nil, unusable(conn.ID, code, m)
	}
	if conn, err = az.grants.pin(ctx, conn, q.Connector, false); err != nil {
		return nil, err
	}
	all := binding.Union(conn.Approved.Hosts, q.Hosts)
	policy, err := policyOf(all)
	if err != nil {
		return nil, err
	}
	if missing := policy.Missing(network.TokenHosts(o)); len(missing) > 0 {
		return nil, &run.Refusal{Code: "binding_not_approved", Message: fmt.Sprintf("host %s (give it with --allow-host %s) is not approved for connection %s", missing[0], missing[0], conn.ID),
			Details: map[string]any{"binding": abi.BindingNetwork}}
	}
	now := conn
	if q.Config != nil {
		if err := knownSettings(m, q.Config); err != nil {
			return nil, err
		}
		now.Settings = q.Config
	}
	a, err := az.authorization(m, o, now, q.Secret, policy)
	if err == nil {
		conn, err = az.connections.findOrMake(ctx, who)
	}
	if err != nil || len(all) == len(conn.Approved.Hosts) {
		return a, err
	}
	_, err = az.grants.give(ctx, conn.ID, conn.Digest, func(c *store.Connection) error {
		if code := c.Grant.Fault(time.Now()); code != "" {
			return unusable(c.ID, code, m)
		}
		c.Approved.Hosts = binding.Union(c.Approved.Hosts, q.Hosts)
		return nil
	})
	return a, err
}

func unusable(id store.ConnectionID, code string, m *abi.Manifest) error {
	return refusal(code, fmt.Errorf("the grant of connection %s is %s; sluice grant %s gives a new one", id, strings.TrimPrefix(code, "grant_"), m.Name()))
}

func (az *authorizer) authorization(m *abi.Manifest, o *abi.OAuth, conn store.Connection, name string, p *network.Policy) (*Authorization, error) {
	secrets, err := az.secrets.ofRun(m, conn.ID, nil)
	if err != nil {
		return nil, err
	}
	via, err := az.bindings.client(network.Options{Policy: p}, &requestLogger{dir: az.directory, connection: conn.ID})
	if err != nil {
		return nil, err
	}
	c, err := authClient(o, conn, secrets, via)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, &run.Refusal{Code: "secret_missing", Message: fmt.Sprintf("secret %s is required to authorize %s; store it with sluice secret set %s %s", o.ClientSecret, name, conn.ID, o.ClientSecret),
			Details: map[string]any{"secret": o.ClientSecret}}
	}
	v, err := OpenVault("badger:" + az.DataDir)
	if err != nil {
		return nil, err
	}
	return &Authorization{Connection: conn.ID, Secret: name, client: c, via: via, vault: v}, nil
}

// ClientID is who the server is told that asks.
func (a *Authorization) ClientID() string { return a.client.ID }

// Device makes it with a code that the owner enters elsewhere; show is called
// once. What it ends with is stored.
func (a *Authorization) Device(ctx context.Context, show func(DeviceCode)) error {
	return a.keep(a.client.Device(ctx, show))
}

// Browser makes it in the owner's browser, on this machine; show is called once
// with the URL to open. What it ends with is stored.
func (a *Authorization) Browser(ctx context.Context, show func(url string)) error {
	return a.keep(a.client.Browser(ctx, show))
}

func (a *Authorization) keep(s oauth.Stored, err error) error {
	var denied *network.Error
	var e *oauth.Error
	switch {
	case err == nil:
		return putAuthorization(a.vault, a.Connection, a.Secret, s)
	case errors.As(err, &denied) && denied.Errno == abi.EDENIED:
		return refusal(denied.Code, errors.New(denied.Message))
	case errors.As(err, &e):
		return refusal(e.Code, fmt.Errorf("%s; nothing is stored", e.Message))
	}
	return err
}

// Close ends the connections that it opened.
func (a *Authorization) Close() { a.via.Close() }

// IsAuthorization reports whether a stored secret came of an authorization. One
// that cannot be opened did not.
func IsAuthorization(v *vault.Vault, e vault.Entry) bool {
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
