//go:build unix

package api_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/tests/postgres"
)

// sharing is a host on a database, and a client of it.
func sharing(t *testing.T, database string) (*daemon.Daemon, *client) {
	t.Helper()
	d, err := daemon.Open(t.Context(), daemon.Options{Host: app.Options{
		Store: database + "&durability=weak&data=" + t.TempDir(), CacheDir: t.TempDir(), NoSandbox: true}, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.Serve(serving) }()
	t.Cleanup(func() {
		stop()
		<-served
		_ = d.Close()
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return d.Dial(ctx)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return d, &client{t: t, base: "http://localhost", http: &http.Client{Transport: transport}}
}

// A host that has its store to itself is the only one, and is not drained; one that shares it is.
func TestSharedStore(t *testing.T) {
	s := atSocket(t)
	only := s.do("GET", "/v1/hosts", nil).want(200)
	if only.member("data", 0, "self") != true || only.member("data", 0, "leads") != true {
		t.Errorf("%s", only.body)
	}
	s.do("GET", "/v1/hosts/lost", nil).want(200)
	s.do("POST", "/v1/hosts/"+only.member("data", 0, "hostId").(string)+"/drain", "{}").want(409, "conflict")
	d, shared := sharing(t, postgres.New(t))
	if a := shared.do("GET", "/v1/system", nil).want(200); !strings.HasPrefix(a.text("store"), "postgres:") ||
		strings.Contains(a.text("store"), ":"+postgres.Shared(t).Password) {
		t.Errorf("store %s", a.text("store"))
	}
	at := "/v1/hosts/" + d.Host.ID + "/drain"
	if a := shared.do("POST", at, "{}").want(200); a.member("draining") != true {
		t.Errorf("%s", a.body)
	}
	shared.do("POST", "/v1/runs", object{"workflowId": "x"}).want(503, "unavailable")
	if a := shared.do("DELETE", at, nil).want(200); a.member("draining") != false {
		t.Errorf("%s", a.body)
	}
	shared.do("DELETE", "/v1/hosts/host_x/drain", nil).want(404, "not_found")
}

// The first host of a vault admits another with the code that it shows, and removes it.
func TestAdmission(t *testing.T) {
	database := postgres.New(t)
	_, first := sharing(t, database)
	first.do("GET", "/v1/hosts/code", nil).want(409, "conflict")
	d, second := sharing(t, database)
	second.do("GET", "/v1/hosts/admitted", nil).want(503, "unavailable")
	code := second.do("GET", "/v1/hosts/code", nil).want(200).text("code")
	at := "/v1/hosts/" + d.Host.ID + "/admit"
	first.do("POST", at, object{"code": "another"}).want(409, "conflict")
	first.do("POST", at, object{"code": code}).want(204)
	if a := first.do("GET", "/v1/hosts/admitted", nil).want(200); a.member("data", 1) == nil {
		t.Errorf("%s", a.body)
	}
	first.do("POST", "/v1/hosts/vault/rotate", nil).want(204)
	first.do("POST", "/v1/hosts/vault/accept", nil).want(204)
	first.do("DELETE", at, nil).want(204)
	first.do("DELETE", at, nil).want(404, "not_found")
}
