package app_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// askModule is examples/ask with its manifest changed by what is replaced.
func askModule(t *testing.T, replace ...string) []byte {
	t.Helper()
	guest, err := build.Guest("examples/ask")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("../../examples/ask/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !bytes.Contains(manifest, []byte(replace[i])) {
			t.Fatalf("the manifest has no %s", replace[i])
		}
		manifest = bytes.ReplaceAll(manifest, []byte(replace[i]), []byte(replace[i+1]))
	}
	wasm, err := sandbox.EmbedManifest(guest, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// installAs lists a module as installed, without what an install asks of its owner.
func installAs(t *testing.T, h *app.Host, wasm []byte, change func(*store.Connector)) store.Connector {
	t.Helper()
	sum := sha256.Sum256(wasm)
	digest := hex.EncodeToString(sum[:])
	dir := filepath.Join(h.DataDir, "modules")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, digest+".wasm")
	if err := os.WriteFile(path, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := h.Load(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	c := l.Connector
	if change != nil {
		change(&c)
	}
	if err := h.Store.PutConnector(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// connect makes a connection of a connector, with settings.
func connect(t *testing.T, h *app.Host, c store.Connector, id store.ConnectionID, settings string) {
	t.Helper()
	now := time.Now()
	err := h.Store.PutConnection(t.Context(),
		store.Connection{ID: id, ConnectorID: c.ID, Enabled: true, Settings: json.RawMessage(settings),
			Digest: c.Digest, Manifest: c.Manifest, CreatedAt: now, UpdatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
}

func hostOptions(dir string) app.Options {
	cache := os.Getenv("SLUICE_CACHE")
	if cache == "" {
		cache = filepath.Join(os.TempDir(), "sluice-service-test-cache")
	}
	return app.Options{Store: "badger:" + dir, CacheDir: cache, Prespawn: -1}
}

func openService(t *testing.T, h *app.Host, o app.ServiceOptions) *app.Service {
	t.Helper()
	if o.Grace == 0 {
		o.Grace = time.Millisecond
	}
	s, err := h.Service(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

// serviceHost is an open host whose cache outlives it.
func serviceHost(t *testing.T) *app.Host {
	t.Helper()
	return hostWith(t, hostOptions(t.TempDir()))
}

// hostWith is an open host with options of its own.
func hostWith(t *testing.T, o app.Options) *app.Host {
	t.Helper()
	h, err := app.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

var owner = host.Principal{ID: "owner", Transport: "ui"}

func startRun(t *testing.T, s *app.Service, q host.StartRun) store.Run {
	t.Helper()
	rec, err := s.StartRun(host.As(t.Context(), owner), q)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// over waits for the end of a run.
func over(t *testing.T, h *app.Host, id store.RunID) store.Run {
	t.Helper()
	wake, stop := h.Store.Watch(id)
	defer stop()
	for {
		rec, err := h.Store.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Status != "active" {
			return rec
		}
		waitFor(t, wake, id)
	}
}

// parked waits until a run asks, and returns the question.
func parked(t *testing.T, h *app.Host, id store.RunID) store.Interaction {
	t.Helper()
	wake, stop := h.Store.Watch(id)
	defer stop()
	for {
		open, err := h.Store.Pending(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(open) > 0 {
			return open[0]
		}
		waitFor(t, wake, id)
	}
}

func waitFor(t *testing.T, wake <-chan struct{}, id store.RunID) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(time.Minute):
		t.Fatalf("run %s does not move", id)
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func refusalCode(err error) (string, map[string]any) {
	var r *host.Refusal
	if errors.As(err, &r) {
		return r.Code, r.Details
	}
	if err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// timeline returns a run's events of one type.
func timeline(t *testing.T, h *app.Host, id store.RunID, typ string) []map[string]any {
	t.Helper()
	events, err := h.Store.Events(t.Context(), id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, e := range events {
		if e.Type != typ {
			continue
		}
		d := map[string]any{}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		d["sequence"] = e.Sequence
		out = append(out, d)
	}
	return out
}

const oneCode = `{"ask": [{"kind": "otp", "message": "Code? https://help.example/?t=1"}]}`
