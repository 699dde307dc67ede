//go:build unix

package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// Two hosts ask a server no oftener than one may: what the first has used of the burst the second
// does not have, and what closes the server for one closes it for the other. The next turn would
// come after more time than a request waits.
func TestPaceIsShared(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t))
	const burst = 6
	if err := os.WriteFile(c.config, fmt.Appendf(nil, "pace: {per_second: 0.001, burst: %d}\n", burst),
		0o600); err != nil {
		t.Fatal(err)
	}
	c.add("a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	wasm, err := build.Connector("tests/bench/fetch")
	if err == nil {
		_, err = a.Install(soon(t), wasm)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		status, each, requests int64
	}{
		"one-after-the-other": {http.StatusOK, 4, burst},
		"as-many-as-it-can":   {http.StatusOK, burst + 1, burst},
		"closed":              {http.StatusTooManyRequests, 2, 1},
	} {
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Retry-After", "900")
			w.WriteHeader(int(want.status))
		}))
		defer server.Close()
		for _, m := range []*member{a, b} {
			id := fmt.Sprintf("%s-%s", name, m.id)
			m.do("POST", "/v1/connections", host.NewConnection{ConnectorName: "bench", ConnectionID: id,
				Settings: fmt.Appendf(nil, `{"url": %q, "requests": %d, "at_once": 1, "max_bytes": 1000}`, server.URL, want.each)},
				nil)
			m.do("PUT", "/v1/connections/"+id+"/bindings",
				map[string]any{"network": map[string]any{"hosts": []string{server.URL}}}, nil)
			m.do("POST", "/v1/connections/"+id+"/grants", map[string]any{"scope": nil, "accessMode": "continuous"}, nil)
			m.wait(m.begin(id), served.Over)
		}
		if got := requests.Load(); got != want.requests {
			t.Errorf("%s: %d requests came, want %d", name, got, want.requests)
		}
	}
}
