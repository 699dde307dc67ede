package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
)

// Info says what the host is, and its weaknesses.
func TestInfo(t *testing.T) {
	h := openHost(t)
	s := openService(t, h, app.ServiceOptions{})
	i := s.Info(t.Context())
	if i.HostID != h.ID || i.BootEpoch != h.Epoch || i.StartedAt.IsZero() || i.Store != "badger:"+h.DataDir ||
		i.Limits["module.bytes"] != 32<<20 || i.Limits["guest.memory"] != 256<<20 ||
		i.Sandbox.Engine != "wazero" || i.Sandbox.EngineVersion == "" ||
		!strings.Contains(string(i.Sandbox.Isolation), `"level":`) {
		t.Errorf("%+v, %s", i, i.Sandbox.Isolation)
	}
	if err := os.Chmod(h.DataDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if i := s.Info(t.Context()); !slices.ContainsFunc(i.Warnings, func(w host.Warning) bool { return w.Code == "modes" }) {
		t.Errorf("%+v", i.Warnings)
	}
}

// Readiness is asked by anybody, and changes nothing.
func TestReady(t *testing.T) {
	s, h := service(t)
	if failed := s.Ready(t.Context()); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
	ok := false
	h.AddCheck("scheduler", func() bool { return ok })
	if failed := s.Ready(t.Context()); !slices.Equal(failed, []string{"scheduler"}) {
		t.Errorf("failed: %v", failed)
	}
	ok = true
	if failed := s.Ready(t.Context()); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
	if left, err := filepath.Glob(filepath.Join(h.DataDir, "audit", "*")); err != nil || len(left) > 0 {
		t.Errorf("it was written down: %v, %v", left, err)
	}
	closed, err := app.Open(t.Context(), app.Options{Store: "memory:", NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if failed := app.ServiceOf(closed).Ready(t.Context()); !slices.Equal(failed, []string{"sandbox", "store"}) {
		t.Errorf("failed: %v", failed)
	}
}

// Entries by who did it, newest first, without free text.
func TestAudit(t *testing.T) {
	s, _ := service(t)
	for _, target := range []string{"one", "two", "three"} {
		details := map[string]string{"keyId": "key_1", "reason": "a sentence with " + marker}
		if err := s.Audit(host.As(t.Context(), somebody), "key.created", target, "done", details); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Audit(host.As(t.Context(), host.Principal{ID: "host"}), "login.failed", "", "refused", nil); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][2]string{{"key.stolen", "done"}, {"key.created", "perhaps"}, {marker, "done"}} {
		if err := s.Audit(host.As(t.Context(), somebody), bad[0], "x", bad[1], nil); err == nil {
			t.Errorf("written down: %v", bad)
		}
	}
	page, next, err := s.AuditEntries(t.Context(), host.AuditQuery{Action: "key", Limit: 2})
	if err != nil || len(page) != 2 || next == "" || page[0].Target != "three" || page[1].Target != "two" {
		t.Fatalf("%+v, %s, %v", page, next, err)
	}
	if e := page[0]; e.Actor != somebody.ID || e.Address != somebody.Address || e.RequestID != somebody.RequestID ||
		e.PrevHash != page[1].Hash || len(e.Details) != 1 || e.Details["keyId"] != "key_1" {
		t.Errorf("%+v", e)
	}
	page, next, err = s.AuditEntries(t.Context(), host.AuditQuery{Action: "key", Limit: 2, Before: next})
	if err != nil || len(page) != 1 || next != "" || page[0].Target != "one" {
		t.Errorf("%+v, %s, %v", page, next, err)
	}
	if page, _, err := s.AuditEntries(t.Context(), host.AuditQuery{Actor: "host"}); err != nil || len(page) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	_, _, err = s.AuditEntries(t.Context(), host.AuditQuery{Before: "x"})
	refused(t, err, "invalid_cursor", "")
	if copies, err := s.AuditCopies(t.Context()); err != nil || len(copies) > 0 {
		t.Errorf("a store of one host: %+v, %v", copies, err)
	}
	for _, bad := range []int{-1, 1001} {
		_, _, err := s.AuditEntries(t.Context(), host.AuditQuery{Limit: bad})
		refused(t, err, "validation_error", "range")
	}
}
