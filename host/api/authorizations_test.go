package api_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/oauth/oauthtest"
	"github.com/sluicehost/sluice/tests/build"
)

// An authority gives out tokens for the secret of a connector of its own.
type authority struct {
	*oauthtest.Server
	base, manifest string
	body           []byte // of an authorization, by the flow FLOW
	form           option
}

// authorizing is an authority for the connector and the connection of a name, which answers
// a code that was entered after so many polls, one a second.
func authorizing(t *testing.T, name string, pending int) *authority {
	t.Helper()
	a := &authority{Server: &oauthtest.Server{ClientID: "client", Pending: pending}}
	web := httptest.NewServer(a)
	t.Cleanup(web.Close)
	wasm, err := build.Guest("examples/ask")
	if err != nil {
		t.Fatal(err)
	}
	a.base = web.URL
	a.manifest = strings.NewReplacer("/box", "/"+name, `"box"`, `"`+name+`"`, `{"name":"token",`, `{"name":"token","oauth":{"grant":"refresh_token",
	  "authorize":["device_code","authorization_code"],"client_id":"client","token_url":"`+web.URL+`/token","device_url":"`+web.URL+`/device",
	  "authorize_url":"`+web.URL+`/authorize"},`).Replace(boxManifest)
	q := host.NewAuthorization{Secret: "token", Flow: "FLOW", Overrides: &host.Overrides{
		Manifest: []byte(a.manifest), Bindings: host.Bindings{Network: &host.NetworkBinding{Hosts: []string{a.base}}},
	}}
	a.body, a.form = upload("authorization", string(must(json.Marshal(q))), "module", string(wasm))
	return a
}

// begin begins an authorization by a flow.
func (a *authority) begin(c *client, flow string, options ...option) *answer {
	return c.do("POST", "/v1/authorizations", bytes.Replace(a.body, []byte(`"FLOW"`), []byte(`"`+flow+`"`), 1),
		append(options, a.form)...)
}

// kept fails the test if a text is in a file of the host.
func kept(t *testing.T, texts ...string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(shared.dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, text := range texts {
			if strings.Contains(string(b), text) {
				t.Errorf("%s is in %s", text, path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAuthorization has a server give out tokens by a code: whoever began it, and nobody
// else, sees what to do, and nothing of it is kept.
func TestAuthorization(t *testing.T) {
	c, a := served(t), authorizing(t, "coded", 1)
	lacking := key(t, access.NewKey{Scopes: []access.Scope{access.SecretsWrite, access.ConnectorsManage,
		access.ConnectionsManage}})
	a.begin(c.as(lacking), "device_code").want(403, "forbidden")
	a.begin(c, "authorization_code").want(403, "forbidden")
	a.begin(c, "by_mail").want(400, "validation_error")
	greedy := *a
	greedy.body = bytes.Replace(a.body, []byte(`{"hosts":["`), []byte(`{"hosts":["elsewhere.example","`), 1)
	greedy.begin(c, "device_code").want(422, "binding_not_requested")

	first := a.begin(c, "device_code", once("coded")).want(201)
	at := "/v1/authorizations/" + first.text("authorizationId")
	if status := first.text("status"); status != "starting" && status != "waiting" || // the server may have answered
		first.text("connectionId") != "coded" || first.text("clientId") != "client" || first.header.Get("Location") != at {
		t.Errorf("%v %s", first.header, first.body)
	}
	if again := a.begin(c, "device_code", once("coded")); string(again.body) != string(first.body) {
		t.Errorf("%s", again.body)
	}
	waiting := c.do("GET", at+"?after=starting", nil).want(200)
	if waiting.text("status") != "waiting" || waiting.text("code") != "WDJB-MJHT" ||
		waiting.text("url") != a.base+"/enter" || waiting.text("expiresAt") == "" {
		t.Errorf("%s", waiting.body)
	}
	c.do("GET", at+"?after=stored", nil).want(400, "validation_error")
	other := c.as(key(t, access.NewKey{Scopes: all}))
	other.do("GET", at, nil).want(404, "not_found")
	other.do("DELETE", at, nil).want(404, "not_found")
	atSocket(t).do("GET", at, nil).want(404, "not_found")
	if s := c.do("GET", at+"?after=waiting", nil).want(200); s.text("status") != "stored" || s.member("code") != nil ||
		s.member("url") != nil {
		t.Errorf("%s", s.body)
	}
	if s := c.do("GET", "/v1/connections/coded/secrets", nil).want(200); s.member("data", 0, "set") != true ||
		s.member("data", 0, "oauth") != true {
		t.Errorf("%s", s.body)
	}
	if e := c.do("GET", "/v1/audit?action=secret.set&target=coded/token", nil).want(200); len(e.list("data")) != 1 ||
		!strings.HasPrefix(e.text("data", 0, "actor"), "key:") {
		t.Errorf("%s", e.body)
	}
	c.do("DELETE", at, nil).want(204)
	c.do("GET", at, nil).want(404, "not_found")
	kept(t, append(a.Issued(), "WDJB-MJHT")...)
}

// TestAuthorizationHere is in a browser on the machine of the host.
func TestAuthorizationHere(t *testing.T) {
	a := authorizing(t, "browsed", 0)
	c := atSocket(t)
	at := "/v1/authorizations/" + a.begin(c, "authorization_code").want(201).text("authorizationId")
	waiting := c.do("GET", at+"?after=starting", nil).want(200)
	page := waiting.text("url")
	if !strings.HasPrefix(page, a.base+"/authorize?") || waiting.member("code") != nil {
		t.Fatalf("%s", waiting.body)
	}
	res := must(http.Get(page))
	res.Body.Close()
	if s := c.do("GET", at+"?after=waiting", nil).want(200); s.text("status") != "stored" {
		t.Errorf("%d: %s", res.StatusCode, s.body)
	}
	c.do("DELETE", at, nil).want(204)
	_, state, _ := strings.Cut(page, "state=")
	kept(t, append(a.Issued(), state)...)
}

// TestAuthorizationGivenUp stores nothing: neither when it is ended, nor when the connection
// is deleted or loses what it takes, nor when the server refuses. There is a bound to how many
// wait.
func TestAuthorizationGivenUp(t *testing.T) {
	c := served(t)
	for name, end := range map[string]func(a *authority) (code string){
		"refused": func(a *authority) string {
			a.Refuse("access_denied")
			return "authorization_refused"
		},
		"deleted": func(*authority) string {
			c.do("DELETE", "/v1/connections/deleted", nil).want(204)
			return "connection_not_found"
		},
		"taken": func(*authority) string {
			c.do("PUT", "/v1/connections/taken/bindings", object{}).want(200)
			return "binding_not_approved"
		},
		"revoked": func(*authority) string {
			c.do("DELETE", "/v1/connections/revoked/grants/gra_own", nil).want(204)
			return "grant_revoked"
		},
	} {
		a := authorizing(t, name, 0)
		if name == "taken" { // bindings are those of an installed connector
			module, kind := upload("module", string(boxModule(t, a.manifest)))
			c.do("POST", "/v1/connectors", module, kind).want(201)
		}
		decided := make(chan struct{})
		a.Token = func(http.ResponseWriter, *http.Request) bool {
			<-decided
			return false
		}
		at := "/v1/authorizations/" + a.begin(c, "device_code").want(201).text("authorizationId")
		c.do("GET", at+"?after=starting", nil).want(200)
		code := end(a)
		close(decided)
		if s := c.do("GET", at+"?after=waiting", nil).want(200); s.text("status") != "failed" || s.text("error") != code ||
			s.text("message") == "" {
			t.Errorf("%s: %s", name, s.body)
		}
		c.do("DELETE", at, nil).want(204)
		kept(t, name+"/token")
	}
	c.do("DELETE", "/v1/connections/taken", nil).want(204)
	c.do("DELETE", "/v1/connectors/taken", nil).want(204)

	a := authorizing(t, "patient", 1000)
	var open []string
	for range 8 {
		open = append(open, a.begin(c, "device_code").want(201).text("authorizationId"))
	}
	a.begin(c, "device_code").want(429, "rate_limited")
	for _, id := range open {
		c.do("DELETE", "/v1/authorizations/"+id, nil).want(204)
		c.do("DELETE", "/v1/authorizations/"+id, nil).want(404, "not_found")
	}
}
