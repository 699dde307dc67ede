package app_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// What was taken back after a backup stays taken back in the host that is restored
// of it, and nothing of it runs by itself, unless its owner says otherwise.
func TestRestoreDisarms(t *testing.T) {
	dir := t.TempDir()
	h, err := app.Open(t.Context(),
		app.Options{Store: "badger:" + filepath.Join(dir, "first"), NoSandbox: true, Prespawn: -1})
	if err != nil {
		t.Fatal(err)
	}
	gate := openAccess(t, h)
	owner := &access.Principal{ID: access.Owner, Scopes: access.Everything}
	key, secret, err := gate.Keys.Create(t.Context(), owner,
		access.NewKey{Name: "leaked", Mode: access.Live, Scopes: []access.Scope{"runs:read"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	login, err := gate.Sessions.NewLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	session, err := gate.Sessions.Login(t.Context(), login, "")
	if err != nil {
		t.Fatal(err)
	}
	unused, err := gate.Sessions.NewLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hourly := json.RawMessage(
		`{"definition":{"cron":"0 * * * *","timezone":"UTC","enabled":true},"revision":1,"due_at":"2026-01-01T00:00:00Z"}`)
	if err := h.Store.Write(t.Context(), store.Write{Kind: store.Schedules, ID: "mail", Data: hourly}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "b.tar")
	if _, err := h.Backup(t.Context(), host.NewBackup{Plain: true, Out: file}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gate.Keys.Revoke(t.Context(), key.KeyID), gate.Sessions.Close(t.Context(), session.Cookie),
		h.Close()); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{false, true} {
		to := filepath.Join(dir, "disarmed")
		if keep {
			to = filepath.Join(dir, "kept")
		}
		r, err := app.Restore(t.Context(), "badger:"+to, app.RestoreOptions{File: file, KeepKeys: keep, KeepSchedules: keep})
		if err != nil {
			t.Fatal(err)
		}
		if changed := r.KeysRevoked + r.SchedulesPaused; changed != 2 && !keep || changed != 0 && keep {
			t.Errorf("kept %v: %+v", keep, r)
		}
		h, err := app.Open(t.Context(), app.Options{Store: "badger:" + to, NoSandbox: true, Prespawn: -1})
		if err != nil {
			t.Fatal(err)
		}
		gate := openAccess(t, h)
		if _, err := gate.Keys.Authenticate(t.Context(), secret); keep != (err == nil) ||
			!keep && !errors.Is(err, access.ErrKeyRevoked) {
			t.Errorf("kept %v: the key: %v", keep, err)
		}
		if _, _, err := gate.Sessions.Authenticate(t.Context(), session.Cookie); keep != (err == nil) {
			t.Errorf("kept %v: the session: %v", keep, err)
		}
		if _, err := gate.Sessions.Login(t.Context(), unused, ""); keep != (err == nil) {
			t.Errorf("kept %v: the login: %v", keep, err)
		}
		d, err := h.Store.Document(t.Context(), store.Schedules, "mail")
		if err != nil {
			t.Fatal(err)
		}
		var stored struct {
			Definition host.ScheduleTerms `json:"definition"`
			DueAt      *string            `json:"due_at"`
		}
		if err := json.Unmarshal(d.Data, &stored); err != nil || stored.Definition.Enabled != keep ||
			stored.DueAt != nil != keep {
			t.Errorf("kept %v: the schedule is %s: %v", keep, d.Data, err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func openAccess(t *testing.T, h *app.Host) *access.Access {
	t.Helper()
	a, err := access.Open(t.Context(), access.Options{Store: h.Store})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
