// Package caldav_test runs examples/caldav in its jail against a real server,
// Debian's Radicale.
package caldav_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// TestMain also runs the worker: the sandbox starts this binary again.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// A collecting is a host with the connector, and the server that it collects from.
type collecting struct {
	*app.Host
	server    *radicale
	connector *app.Loaded
	dir       string
}

func open(t *testing.T, server *radicale) *collecting {
	t.Helper()
	c := &collecting{server: server, dir: filepath.Join(t.TempDir(), "data")}
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	c.Host, err = app.Open(t.Context(), app.Options{Store: "badger:" + c.dir, CacheDir: cache,
		RateLimit: egress.RateLimit{PerSecond: 1000, Burst: 1000, AtOnce: 4, LongestStop: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	modules := t.TempDir()
	if err := build.Connectors(modules, "examples/caldav"); err != nil {
		t.Fatal(err)
	}
	if c.connector, err = c.Load(t.Context(), filepath.Join(modules, "caldav.wasm"), ""); err != nil {
		t.Fatal(err)
	}
	return c
}

// request is a run that the owner starts, approving the server for it.
func (c *collecting) request(t *testing.T) app.RunRequest {
	t.Helper()
	to, err := app.OwnerDestinations(c.connector.Manifest, "password", c.server.url)
	if err != nil {
		t.Fatal(err)
	}
	return app.RunRequest{
		Connector: c.connector, Config: fmt.Appendf(nil, `{"url":%q,"user":%q}`, c.server.url, user),
		Secrets:  map[string]string{"password": password},
		Approved: store.Approved{Hosts: []string{c.server.url}, Destinations: map[string][]abi.Destination{"password": to}},
	}
}

// do runs the connector to its end.
func (c *collecting) do(t *testing.T, q app.RunRequest) *run.Result {
	t.Helper()
	r, err := c.Start(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// collect runs the connector, which must succeed with nothing left out, and returns how
// many records and deletions it emitted.
func (c *collecting) collect(t *testing.T) int64 {
	t.Helper()
	result := c.do(t, c.request(t))
	if result.Status != abi.Succeeded || len(result.KnownGaps) > 0 {
		b, err := json.MarshalIndent(result, "", " ")
		t.Fatalf("the run did not succeed in full: %s %v", b, err)
	}
	return result.RecordsEmitted
}

// records returns the records of a stream that exist, keyed by one of their members,
// and how many were deleted.
func (c *collecting) records(t *testing.T, stream store.Stream,
	member string) (there map[string]map[string]any, deleted int) {
	t.Helper()
	there = map[string]map[string]any{}
	q := store.RecordQuery{Connection: "caldav", Stream: stream, Deleted: true, Limit: 1000}
	for {
		page, err := c.Store.Records(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			q.After = r.Version
			if r.Deleted {
				deleted++
				continue
			}
			var data map[string]any
			if err := json.Unmarshal(r.Data, &data); err != nil {
				t.Fatal(err)
			}
			there[fmt.Sprint(data[member])] = data
		}
		if !page.More {
			return there, deleted
		}
	}
}
