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

// A host that has its store to itself is the only one, and is not drained; one that shares it is.
func TestSharedStore(t *testing.T) {
	s := atSocket(t)
	only := s.do("GET", "/v1/hosts", nil).want(200)
	if only.member("data", 0, "self") != true || only.member("data", 0, "leads") != true {
		t.Errorf("%s", only.body)
	}
	s.do("GET", "/v1/hosts/lost", nil).want(200)
	s.do("POST", "/v1/hosts/"+only.member("data", 0, "hostId").(string)+"/drain", "{}").want(409, "conflict")
	d, err := daemon.Open(t.Context(), daemon.Options{Host: app.Options{
		Store: postgres.New(t) + "&durability=weak&data=" + t.TempDir(), CacheDir: t.TempDir(), NoSandbox: true}, Alone: true})
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
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.Dial(ctx) }}
	t.Cleanup(transport.CloseIdleConnections)
	shared := &client{t: t, base: "http://localhost", http: &http.Client{Transport: transport}}
	if a := shared.do("GET", "/v1/system", nil).want(200); !strings.HasPrefix(a.text("store"), "postgres:") || strings.Contains(a.text("store"), ":"+postgres.Shared(t).Password) {
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
