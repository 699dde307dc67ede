package app_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

// ended stores a run that is over, with a browser trace.
func ended(t *testing.T, h *app.Host, id store.RunID, of store.ConnectionID) {
	t.Helper()
	a, err := browser.BeginTrace(browser.Traces(h.DataDir), string(id))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	row := store.Run{ID: id, ConnectionID: of, TraceID: "trc_0123456789abcdef", Status: "active", StartedAt: now,
		TriggerKind: "manual", Attempt: 1}
	lease, err := h.Store.Acquire(t.Context(), row, h.ID, h.Epoch, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	row.Status, row.FinishedAt = "succeeded", &now
	receipt, err := h.Store.Submit(t.Context(), &store.Commit{Lease: lease, Run: &row, End: true,
		Events: []store.Event{{ID: "evt_0000000000000001", Type: "run.completed", OccurredAt: now, RunID: id,
			ConnectionID: of, Data: json.RawMessage(`{}`)}}})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func traces(t *testing.T, h *app.Host) []string {
	t.Helper()
	entries, err := os.ReadDir(browser.Traces(h.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// What a connection's browser showed goes when it is erased, and only then.
func TestErasedConnectionLeavesNoTrace(t *testing.T) {
	s, h := service(t)
	if err := h.Store.PutConnection(t.Context(),
		store.Connection{ID: "mail", ConnectorID: "mail", Enabled: true, CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	ended(t, h, "run_mail", "mail")
	ended(t, h, "run_other", "other")
	if err := s.DeleteConnection(host.As(t.Context(), somebody), "mail", false); err != nil {
		t.Fatal(err)
	}
	if got := traces(t, h); len(got) != 2 {
		t.Errorf("kept data: %v", got)
	}
	_ = s.DeleteConnection(host.As(t.Context(), somebody), "mail", true) // not found: no records were kept
	if got := traces(t, h); !slices.Equal(got, []string{"browser-trace-run_other.zip"}) {
		t.Errorf("erased data: %v", got)
	}
	if _, _, err := h.OpenArtifact(t.Context(), "run_mail", "browser-trace"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
	content, size, err := h.OpenArtifact(t.Context(), "run_other", "browser-trace")
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if b, err := io.ReadAll(content); err != nil || int64(len(b)) != size {
		t.Errorf("%d of %d bytes, %v", len(b), size, err)
	}
	if looked, err := h.ArtifactSize(t.Context(), "run_other", "browser-trace"); err != nil || looked != size {
		t.Errorf("%d bytes of %d, %v", looked, size, err)
	}
	for _, id := range []store.RunID{"run_none", "../run_other", ""} {
		if _, _, err := h.OpenArtifact(t.Context(), id, "browser-trace"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := h.ArtifactSize(t.Context(), id, "browser-trace"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the size of %q: %v", id, err)
		}
	}
	if _, _, err := h.OpenArtifact(t.Context(), "run_other", "blob"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another type: %v", err)
	}
}

// A start removes traces that nobody finishes, and those whose run has no timeline or is not
// known; a file of another name is nobody's business.
func TestStartSweepsTraces(t *testing.T) {
	dir := t.TempDir()
	open := func() *app.Host {
		h, err := app.Open(t.Context(), app.Options{Store: "badger:" + dir, Prespawn: -1})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := open()
	for _, id := range []store.RunID{"run_kept", "run_pruned"} {
		ended(t, h, id, "c")
	}
	if err := h.Store.Prune(t.Context(), "run_pruned"); err != nil {
		t.Fatal(err)
	}
	if _, err := browser.BeginTrace(browser.Traces(dir), "run_broken"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"browser-trace-run_unknown.zip", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(browser.Traces(dir), name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open()
	defer h.Close()
	if got := traces(t, h); !slices.Equal(got, []string{"browser-trace-run_kept.zip", "notes.txt"}) {
		t.Errorf("left: %v", got)
	}
}

// A check-up says how many traces there are, since when, and how large.
func TestDoctorCountsTraces(t *testing.T) {
	dir := t.TempDir()
	h, err := app.Open(t.Context(), app.Options{Store: "badger:" + dir, Prespawn: -1})
	if err != nil {
		t.Fatal(err)
	}
	ended(t, h, "run_old", "mail")
	ended(t, h, "run_new", "mail")
	old := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, size := range map[string]int64{"run_old": 3 << 20, "run_new": 1 << 30} {
		path := browser.TraceFile(h.DataDir, name)
		if err := errors.Join(os.Truncate(path, size), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
		old = old.Add(24 * time.Hour)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	found := app.Doctor(t.Context(), app.Options{Store: "badger:" + dir}, false)
	i := slices.IndexFunc(found, func(f app.Finding) bool { return f.Check == "traces" })
	if i < 0 {
		t.Fatalf("%+v", found)
	}
	f := found[i]
	if f.State != app.StateWeak || f.Remedy == "" ||
		!strings.HasPrefix(f.Detail, "2 browser traces, 1027 MiB, the oldest of 2026-03-0") {
		t.Errorf("%+v", f)
	}
}
