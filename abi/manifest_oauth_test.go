package abi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

// withSecrets is a manifest with the given secrets and one setting of each type.
func withSecrets(secrets string) string {
	return `{"protocol_version": "0.1.0", "connector_id": "mail", "version": "1", "display_name": "Mail",
 "streams": [{"name": "a", "semantics": "append_only", "primary_key": ["id"], "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}],
 "sluice": {"settings": {"type": "object", "properties": {"client": {"type": "string"}, "n": {"type": "integer"}}}, "secrets": [` + secrets + `]}}`
}

const (
	device  = `{"grant": "refresh_token", "authorize": ["device_code"], "token_url": "https://auth.example/token", "device_url": "https://auth.example/device", "client_id": "c"`
	tokenBy = `{"name": "token", "oauth": `
	secret  = `, {"name": "secret"}`
)

func TestManifestOAuth(t *testing.T) {
	m, err := abi.ReadManifest([]byte(withSecrets(`{"name": "token", "destinations": [{"origin": "https://auth.example", "path_prefix": "/api", "placements": ["body"]}],
 "oauth": {"grant": "refresh_token", "authorize": ["device_code", "authorization_code"], "token_url": "https://auth.example/o/token", "device_url": "https://auth.example/o/device",
 "authorize_url": "https://login.example/authorize", "redirect_path": "/done", "scopes": ["mail.read", "openid"], "client_id": {"setting": "client"},
 "client_secret": "secret", "client_auth": "client_secret_post", "audience": "https://api.example", "params": {"prompt": "consent"}}}` + secret)))
	if err != nil {
		t.Fatal(err)
	}
	want := &abi.OAuth{
		Grant: "refresh_token", Authorize: []string{"device_code", "authorization_code"},
		TokenURL: "https://auth.example/o/token", DeviceURL: "https://auth.example/o/device",
		AuthorizeURL: "https://login.example/authorize", RedirectPath: "/done", Scopes: []string{"mail.read", "openid"},
		ClientIDFrom: "client", ClientSecret: "secret", ClientAuth: "client_secret_post", Audience: "https://api.example",
		Params: map[string]string{"prompt": "consent"},
	}
	if d := cmp.Diff(want, m.Sluice.Secrets[0].OAuth); d != "" {
		t.Error(d)
	}
	if got := m.Sluice.ClientSecrets(); !cmp.Equal(got, []string{"secret"}) {
		t.Errorf("client secrets %v", got)
	}
	if m.Sluice.Secrets[1].OAuth != nil {
		t.Error("a secret without oauth has it")
	}
}

// The error names the member.
func TestManifestOAuthFaults(t *testing.T) {
	client := `{"grant": "client_credentials", "token_url": "https://auth.example/token", "client_id": "c", "client_secret": "secret"`
	for _, tt := range []struct{ name, secrets, path, rule string }{
		{"grant", tokenBy + `{"grant": "password", "token_url": "https://a.example/t", "client_id": "c"}}`,
			"/0/oauth/grant", "value_unknown"},
		{"no url", tokenBy + `{"grant": "refresh_token", "authorize": ["device_code"], "device_url": "https://a.example/d", "client_id": "c"}}`, "/0/oauth/token_url", "text_expected"},
		{"http", tokenBy + strings.Replace(device, "https://auth.example/token", "http://auth.example/token", 1) + `}}`,
			"/0/oauth/token_url", "oauth_url_insecure"},
		{"loopback name", tokenBy + strings.Replace(device, "https://auth.example/token", "http://127.0.0.1.example/token",
			1) + `}}`, "/0/oauth/token_url", "oauth_url_insecure"},
		{"user", tokenBy + strings.Replace(device, "auth.example/device", "a@auth.example/device", 1) + `}}`,
			"/0/oauth/device_url", "oauth_url_invalid"},
		{"query", tokenBy + strings.Replace(device, "/token", "/token?x=1", 1) + `}}`, "/0/oauth/token_url",
			"oauth_url_invalid"},
		{"dots", tokenBy + strings.Replace(device, "/token", "/a/../token", 1) + `}}`, "/0/oauth/token_url",
			"oauth_url_invalid"},
		{"upper case", tokenBy + strings.Replace(device, "auth.example/token", "Auth.example/token", 1) + `}}`,
			"/0/oauth/token_url", "oauth_url_invalid"},
		{"no device url", tokenBy +
			`{"grant": "refresh_token", "authorize": ["device_code"], "token_url": "https://a.example/t", "client_id": "c"}}`,
			"/0/oauth/device_url", "text_expected"},
		{"no authorize url", tokenBy + strings.Replace(device, `"device_code"`, `"authorization_code"`, 1) + `}}`,
			"/0/oauth/authorize_url", "text_expected"},
		{"no flow", tokenBy + strings.Replace(device, `"device_code"`, ``, 1) + `}}`, "/0/oauth/authorize",
			"oauth_flow_missing"},
		{"flow twice", tokenBy + strings.Replace(device, `"device_code"`, `"device_code", "device_code"`, 1) + `}}`,
			"/0/oauth/authorize/1", "oauth_flow_duplicate"},
		{"flow of a client", tokenBy + client + `, "authorize": ["device_code"], "device_url": "https://a.example/d"}}` +
			secret, "/0/oauth/authorize", "oauth_flow_unused"},
		{"no client", tokenBy + strings.Replace(device, `"client_id": "c"`, `"x": 1`, 1) + `}}`,
			"/0/oauth/client_id", "text_expected"},
		{"no setting", tokenBy + strings.Replace(device, `"c"`, `{"setting": "none"}`, 1) + `}}`, "/0/oauth/client_id",
			"oauth_setting_unknown"},
		{"setting of a number", tokenBy + strings.Replace(device, `"c"`, `{"setting": "n"}`, 1) + `}}`, "/0/oauth/client_id",
			"oauth_setting_unknown"},
		{"client without a secret", tokenBy + strings.Replace(client, `, "client_secret": "secret"`, ``, 1) + `}}`,
			"/0/oauth/client_secret", "oauth_secret_missing"},
		{"secret of nobody", tokenBy + client + `}}`, "/0/oauth/client_secret", "oauth_secret_unknown"},
		{"its own secret", `{"name": "secret", "oauth": ` + client + `}}`, "/0/oauth/client_secret", "oauth_secret_unknown"},
		{"plain client secret", tokenBy + client + `}}, {"name": "secret", "delivery": "plain"}`, "/0/oauth/client_secret",
			"oauth_secret_shared"},
		{"sent client secret", tokenBy + client +
			`}}, {"name": "secret", "destinations": [{"origin": "https://auth.example", "placements": ["body"]}]}`,
			"/0/oauth/client_secret", "oauth_secret_shared"},
		{"plain token", `{"name": "token", "delivery": "plain", "oauth": ` + device + `}}`, "/0/delivery", "oauth_plain"},
		{"scope", tokenBy + device + `, "scopes": ["a b"]}}`, "/0/oauth/scopes/0", "oauth_scope_invalid"},
		{"reserved", tokenBy + device + `, "params": {"Grant_Type": "x"}}}`, "/0/oauth/params/Grant_Type",
			"oauth_param_reserved"},
		{"redirect", tokenBy + device + `, "redirect_path": "//evil.example"}}`, "/0/oauth/redirect_path",
			"oauth_redirect_invalid"},
	} {
		refusedAt(t, tt.name, withSecrets(tt.secrets), "/sluice/secrets"+tt.path, tt.rule)
	}
	// An access token that goes to the token server could be exchanged there for
	// one that the connector reads in the answer.
	for _, to := range []string{
		`"origin": "https://auth.example"`, `"origin": "https://auth.example:443", "path_prefix": "/"`,
		`"origin": "https://auth.example.", "path_prefix": "/x"`, `"origin": "https://AUTH.example", "path_prefix": "/x"`,
		`"origin": "https://auth.example", "path_prefix": "/token"`,
		`"origin": "https://auth.example", "path_prefix": "/device/"`, `"origin": "https://аuth.example"`,
	} {
		refusedAt(t, to, withSecrets(`{"name": "token", "destinations": [{`+to+`, "placements": ["body"]}], "oauth": `+device+
			`}}`), "/sluice/secrets/0/destinations/0", "oauth_destination")
	}
}

func refusedAt(t *testing.T, name, manifest, path, rule string) {
	t.Helper()
	var bad *abi.ManifestError
	if _, err := abi.ReadManifest([]byte(manifest)); !errors.As(err, &bad) || bad.Path != path || bad.Rule != rule {
		t.Errorf("%s: got %v, want %s at %s", name, err, rule, path)
	}
}
