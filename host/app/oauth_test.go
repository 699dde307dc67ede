package app

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/oauth/oauthtest"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// obtaining is a manifest whose secret token comes from base.
func obtaining(base string, destinations ...abi.Destination) *abi.Manifest {
	return &abi.Manifest{ConnectorID: "mail", Sluice: &abi.SluiceBlock{Secrets: []abi.SecretField{
		{Name: "token", Secret: true, Required: true, FieldDelivery: abi.FieldDelivery{Destinations: destinations},
			OAuth: &abi.OAuth{
				Grant: abi.OAuthRefresh, Authorize: []string{abi.OAuthDevice}, TokenURL: base + "/token",
				DeviceURL: base + "/device", ClientID: "client", ClientAuth: abi.ClientAuthBasic,
			}},
	}}}
}

// A host that is approved for tokens is no host of the guest's, unless it asks
// for it or has secrets sent there.
func TestGuestHosts(t *testing.T) {
	const auth, api = "auth.example", "api.example"
	approved := []string{auth, api, "*.auth.example"}
	if d := cmp.Diff([]string{api, "*.auth.example"},
		network.GuestHosts(obtaining("https://auth.example"), approved)); d != "" {
		t.Error(d)
	}
	listed := obtaining("https://auth.example")
	listed.Bindings = map[string]abi.Binding{"network": {Hosts: []string{"auth.example:443"}}}
	sent := obtaining("https://auth.example", abi.Destination{Origin: "https://auth.example/", PathPrefix: "/api"})
	for _, m := range []*abi.Manifest{listed, sent, asking("token")} {
		if d := cmp.Diff(approved, network.GuestHosts(m, approved)); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff([]string{"http://127.0.0.1:8080"},
		network.TokenHosts(obtaining("http://127.0.0.1:8080").Sluice.Secrets[0].OAuth)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{auth}, network.RequestedHosts(obtaining("https://auth.example"))); d != "" {
		t.Error(d)
	}
}

// vaulted is a host with a vault in which mail's token is an authorization of s.
func vaulted(t *testing.T, s *oauthtest.Server) (*Host, *vault.Vault, string) {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	h := newHost(&directory{DataDir: t.TempDir(), Options: Options{}.settled()})
	v, err := vault.Open(h.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	s.ClientID = "client"
	err = putAuthorization(v, "mail", "token",
		oauth.Stored{Version: 1, RefreshToken: s.Authorization(), TokenURL: web.URL + "/token", ClientID: "client"})
	if err != nil {
		t.Fatal(err)
	}
	return h, v, web.URL
}

// tokensOf is what a run of a manifest has, with the hosts approved.
func tokensOf(t *testing.T, h *Host, m *abi.Manifest, hosts ...string) (*tokens, map[string]string) {
	t.Helper()
	policy, err := policyOf(hosts)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := h.ofRun(m, "mail", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.tokens(m, store.Connection{ID: "mail"}, secrets, nil, policy, &requestLogger{dir: h.directory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(got.Close)
	return got, secrets
}

// A refresh token that was replaced is in the vault when the access token can be
// used, and no refresh token is among what a run delivers.
func TestTokensFromVault(t *testing.T) {
	s := &oauthtest.Server{Rotate: true, Lifetime: time.Hour}
	h, _, base := vaulted(t, s)
	got, secrets := tokensOf(t, h, obtaining(base), base)
	if len(secrets) > 0 {
		t.Error("the run is handed the authorization itself")
	}
	access, err := got.sources["token"].Current(context.Background(), "")
	if err != nil || !strings.HasPrefix(access, "access-") {
		t.Fatal(err)
	}
	kept, err := (&keptInVault{h.secretStore, "mail", "token"}).Load()
	issued := s.Issued()
	if err != nil || kept.RefreshToken != issued[1] || kept.TokenURL != base+"/token" {
		t.Errorf("the new refresh token is not stored: %v", err)
	}
	for range 3 {
		tokens, _ := tokensOf(t, h, obtaining(base), base)
		if _, err := tokens.sources["token"].Current(context.Background(), ""); err != nil {
			t.Errorf("a later run: %v", err)
		}
	}
}

// The token server is approved like any other host; the denial names it, and nothing is sent.
func TestTokensUnapproved(t *testing.T) {
	s := &oauthtest.Server{}
	h, _, base := vaulted(t, s)
	got, _ := tokensOf(t, h, obtaining(base))
	_, err := got.sources["token"].Current(context.Background(), "")
	var denied *egress.Error
	if !errors.As(err, &denied) || denied.Errno != abi.EDENIED ||
		!strings.Contains(denied.Message, "--allow-host "+base) || len(s.Asked()) > 0 {
		t.Errorf("got %v", err)
	}
}

// An authorization that the server ended is EDENIED, with what to do; the server is asked
// once.
func TestTokensExpired(t *testing.T) {
	s := &oauthtest.Server{}
	h, _, base := vaulted(t, s)
	s.Revoke(true)
	got, _ := tokensOf(t, h, obtaining(base), base)
	for range 10 {
		_, err := got.sources["token"].Current(context.Background(), "")
		var denied *egress.Error
		if !errors.As(err, &denied) || denied.Errno != abi.EDENIED || denied.Code != "authorization_expired" ||
			!strings.HasSuffix(denied.Message, "; authorize it with sluice secret authorize mail token") {
			t.Fatalf("got %v", err)
		}
	}
	if n := len(s.Asked()); n != 1 {
		t.Errorf("asked %d times, want 1", n)
	}
}

// A refresh token never goes to another server than gave it out.
func TestTokensOfAnotherServer(t *testing.T) {
	s, evil := &oauthtest.Server{}, &oauthtest.Server{}
	h, _, _ := vaulted(t, s)
	web := httptest.NewServer(evil)
	defer web.Close()
	m := obtaining(web.URL)
	secrets, err := h.ofRun(m, "mail", nil)
	if err != nil {
		t.Fatal(err)
	}
	policy, _ := policyOf([]string{web.URL})
	_, err = h.tokens(m, store.Connection{ID: "mail"}, secrets, nil, policy, &requestLogger{dir: h.directory})
	var refused *run.Refusal
	if !errors.As(err, &refused) || refused.Code != "secret_missing" ||
		!strings.Contains(refused.Message, "sluice secret authorize mail token") {
		t.Errorf("got %v", err)
	}
	for _, secret := range s.Issued() {
		if strings.Contains(refused.Message, secret) {
			t.Error("the refusal has the refresh token")
		}
	}
}

// What an owner sets or removes while a token is fetched is kept as it is.
func TestOwnerWins(t *testing.T) {
	h, v, base := vaulted(t, &oauthtest.Server{})
	k := &keptInVault{h.secretStore, "mail", "token"}
	was, err := k.Load()
	if err != nil {
		t.Fatal(err)
	}
	now := was
	now.RefreshToken = "refresh-next"
	if err := putAuthorization(v, "mail", "token",
		oauth.Stored{Version: 1, RefreshToken: "refresh-owner", TokenURL: base + "/token", ClientID: "client"}); err != nil {
		t.Fatal(err)
	}
	if err := k.Save(was, now); err != nil {
		t.Error(err)
	}
	if have, err := k.Load(); err != nil || have.RefreshToken != "refresh-owner" {
		t.Errorf("the owner's authorization was replaced: %v", err)
	}
	if err := v.Remove("mail", "token"); err != nil {
		t.Fatal(err)
	}
	if err := k.Save(was, now); err != nil {
		t.Error(err)
	}
	if _, err := k.Load(); !errors.Is(err, oauth.ErrMissing) {
		t.Errorf("a removed authorization came back: %v", err)
	}
}

// The client's id comes from the settings, and its absence is said.
func TestClientSetting(t *testing.T) {
	o := &abi.OAuth{Grant: abi.OAuthRefresh, ClientIDFrom: "app"}
	c, err := authClient(o, store.Connection{Settings: []byte(`{"app": "x1"}`)}, nil, nil)
	if err != nil || c.ID != "x1" {
		t.Errorf("got %v, %v", c, err)
	}
	for _, settings := range []string{``, `{}`, `{"app": 1}`, `{"app": ""}`, `{"app": "a\u001b[2J"}`} {
		var refused *run.Refusal
		if _, err := authClient(o, store.Connection{Settings: []byte(settings)}, nil, nil); !errors.As(err, &refused) ||
			refused.Code != "setting_missing" {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// A connector whose manifest stops calling a secret obtained is not handed the refresh token
// in its place.
func TestAuthorizationIsNoSecret(t *testing.T) {
	h, _, _ := vaulted(t, &oauthtest.Server{})
	_, err := h.ofRun(asking("token"), "mail", nil)
	var refused *run.Refusal
	if !errors.As(err, &refused) || refused.Code != "secret_missing" || strings.Contains(err.Error(), "refresh_token") {
		t.Errorf("got %v", err)
	}
}
