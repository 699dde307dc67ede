package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Limits of a request for a token.
const (
	tokenBytes = 64 * abi.KiB
	tokenTime  = 20 * time.Second
)

// tokens are the token sources of one run with the client that they share. The client shares no cookies or
// connections with the guest's.
type tokens struct {
	client  *egress.Client
	sources map[string]run.Token
	all     []*oauth.Source
}

// tokens makes the token sources of a run, and removes their stored authorizations from secrets; given are the
// secrets that are not from the vault. A source that lacks something is left out, and the run reports it
// missing.
func (az *authorizer) tokens(m *abi.Manifest, conn store.Connection, secrets, given map[string]string,
	p *egress.Policy, t *requestLogger) (*tokens, error) {
	out := &tokens{sources: map[string]run.Token{}}
	for _, f := range run.SecretFields(m) {
		if f.OAuth == nil {
			continue
		}
		kept := secrets[f.Name]
		delete(secrets, f.Name)
		if out.client == nil {
			var err error
			if out.client, err = az.bindings.client(egress.Options{Policy: p}, t); err != nil {
				return nil, err
			}
		}
		s, err := az.source(m, f, conn, secrets, kept, given[f.Name] != "", out.client)
		if missing := (*run.Refusal)(nil); errors.As(err, &missing) && missing.Code == "setting_missing" && !f.Required {
			continue
		}
		if err != nil {
			return nil, err
		}
		if s != nil {
			out.all = append(out.all, s)
			out.sources[f.Name] = &token{s, f.Name, run.AuthorizeCommand(m, string(conn.ID), f.Name)}
		}
	}
	return out, nil
}

// replayedTokens returns sources of the values that a recording has in place of tokens.
func replayedTokens(m *abi.Manifest, secrets map[string]string) *tokens {
	out := &tokens{sources: map[string]run.Token{}}
	for _, f := range run.SecretFields(m) {
		if value, ok := secrets[f.Name]; ok && f.OAuth != nil {
			delete(secrets, f.Name)
			out.sources[f.Name] = replayedToken(value)
		}
	}
	return out
}

// A replayedToken is a fixed value that is never sent.
type replayedToken string

func (t replayedToken) Current(context.Context, string) (string, error) { return string(t), nil }
func (t replayedToken) OnSecret(func(string))                           {}

// source returns the token source of a secret, nil if there is nothing to obtain a token with.
func (az *authorizer) source(m *abi.Manifest, f abi.SecretField, conn store.Connection, secrets map[string]string,
	kept string, once bool, via *egress.Client) (*oauth.Source, error) {
	c, err := authClient(f.OAuth, conn, secrets, via)
	if c == nil || err != nil {
		return nil, err
	}
	if f.OAuth.Grant == abi.OAuthClient {
		return oauth.NewSource(c, nil), nil
	}
	if kept == "" {
		return nil, nil
	}
	have, err := oauth.ReadStored([]byte(kept))
	if err == nil {
		err = have.For(f.OAuth, c.ID)
	}
	if err != nil {
		r := refusal("secret_missing",
			fmt.Errorf("secret %s: %w; authorize it with %s", f.Name, err, run.AuthorizeCommand(m, string(conn.ID), f.Name)))
		r.Details = map[string]any{"secret": f.Name}
		return nil, r
	}
	var k oauth.Keeper = &keptInVault{az.secrets, conn.ID, f.Name}
	if once {
		k = &keptOnce{have}
	}
	s := oauth.NewSource(c, k)
	s.Protect(have.RefreshToken)
	return s, nil
}

// authClient returns the OAuth client of a secret, nil if the client's own secret is missing.
func authClient(o *abi.OAuth, conn store.Connection, secrets map[string]string,
	via *egress.Client) (*oauth.Client, error) {
	c := &oauth.Client{Declared: o, ID: o.ClientID, Secret: secrets[o.ClientSecret],
		Via: &egress.Transport{Client: via, MaxBody: tokenBytes, Timeout: tokenTime}}
	if o.ClientSecret != "" && c.Secret == "" {
		return nil, nil
	}
	if o.ClientIDFrom == "" {
		return c, nil
	}
	if v, err := strictjson.Parse(conn.Settings, strictjson.ParseOptions{}); err == nil {
		m, _ := v.Member(o.ClientIDFrom)
		c.ID, _ = m.Text()
	}
	if c.ID == "" || len(c.ID) > 512 || abi.Clean(c.ID) != c.ID {
		r := refusal("setting_missing",
			fmt.Errorf("setting %q: is required, a text of at most 512 bytes; give it with --config '{\"%s\": …}'",
				o.ClientIDFrom, o.ClientIDFrom))
		r.Details = map[string]any{"setting": o.ClientIDFrom}
		return nil, r
	}
	return c, nil
}

// Close waits for pending token requests, since they may replace a refresh token.
func (t *tokens) Close() {
	for _, s := range t.all {
		s.Close()
	}
	if t.client != nil {
		t.client.Close()
	}
}

// A token converts the errors of a source to those that a guest gets.
type token struct {
	*oauth.Source
	name      string
	authorize string
}

func (t *token) Current(ctx context.Context, refused string) (string, error) {
	v, err := t.Source.Current(ctx, refused)
	var denied *egress.Error
	var e *oauth.Error
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &denied) && denied.Errno == abi.EDENIED: // the error says what would allow it
		return "", denied
	case !errors.As(err, &e):
		return "", err
	}
	out := &egress.Error{Errno: abi.EUNAVAIL, Code: e.Code,
		Message: fmt.Sprintf("cannot obtain the secret %s; %v", t.name, e)}
	switch e.Code {
	case oauth.CodeExpired:
		out.Errno, out.Message = abi.EDENIED, out.Message+"; authorize it with "+t.authorize
	case oauth.CodeRefused:
		out.Errno = abi.EDENIED
	}
	return "", out
}

// keptOnce is an authorization that was given for one run.
type keptOnce struct{ s oauth.Stored }

func (k *keptOnce) Load() (oauth.Stored, error)    { return k.s, nil }
func (k *keptOnce) Save(_, now oauth.Stored) error { k.s = now; return nil }

// keptInVault is an authorization in the vault, which is read anew for each token request.
type keptInVault struct {
	vault *secretStore
	id    store.ConnectionID
	name  string
}

func (k *keptInVault) Load() (oauth.Stored, error) {
	value, ok, err := k.vault.stored(k.id, k.name)
	if err != nil {
		return oauth.Stored{}, err
	}
	if !ok {
		return oauth.Stored{}, oauth.ErrMissing
	}
	return oauth.ReadStored([]byte(value))
}

// Save stores a replaced authorization, unless the owner changed or removed it meanwhile.
func (k *keptInVault) Save(was, now oauth.Stored) error {
	have, err := k.Load()
	if errors.Is(err, oauth.ErrMissing) || err == nil && have.RefreshToken != was.RefreshToken {
		return nil
	}
	if err != nil {
		return err
	}
	v, err := k.vault.vault()
	if err != nil {
		return err
	}
	return putAuthorization(v, k.id, k.name, now)
}

func putAuthorization(v interface {
	Set(connection, name string, value []byte) error
}, id store.ConnectionID, name string, s oauth.Stored) error {
	b, err := s.Encode()
	if err != nil {
		return err
	}
	defer clear(b)
	return v.Set(string(id), name, b)
}
