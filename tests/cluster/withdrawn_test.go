//go:build unix

package cluster

import (
	"os"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// What one host takes back from a connection ends its run at another one, whether it works or sleeps, and whether that
// is the whole grant or one thing that was approved.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t))
	if err := os.WriteFile(c.config, []byte("runs:\n  awake: 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.add("a", "b")
	a, b := c.hosts["a"], c.hosts["b"]
	a.install()
	works, asks := step{"do": "wait", "ms": 3_600_000}, step{"do": "otp", "text": "Code?"}
	runs := map[store.ConnectionID]store.RunID{}
	does := map[store.ConnectionID]step{"works": works, "works-less": works, "asks": asks, "asks-less": asks}
	for name, s := range does {
		a.connect(name, s)
		runs[name] = a.begin(string(name))
	}
	for name, id := range runs {
		until(t, string(name)+" works or sleeps", func() bool {
			return slices.ContainsFunc(b.events(id), func(e event) bool {
				return e.Type == timeline.RunSuspended || e.Type == timeline.RunStarted && does[name]["do"] == "wait"
			})
		})
	}
	for _, name := range []string{"works", "asks"} {
		var page struct {
			Grants []struct {
				GrantID string `json:"grantId"`
				Status  string `json:"status"`
			}
		}
		b.do("GET", "/v1/connections/"+name+"/grants", nil, &page)
		for _, g := range page.Grants {
			b.do("DELETE", "/v1/connections/"+name+"/grants/"+g.GrantID, nil, nil)
		}
		b.do("PUT", "/v1/connections/"+name+"-less/bindings", map[string]bool{"interactive": false}, nil)
	}
	for name, id := range runs {
		b.wait(id, served.Over)
		want := timeline.RunCancelled
		if does[name]["do"] == "otp" {
			want = timeline.RunFailed // its connector is not started again to hear of it
		}
		if end := a.whole(id); end != want {
			t.Errorf("%s ended with %s, want %s", name, end, want)
		}
	}
}
