package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// What lies where revocations are left. A link is taken as one and leads nowhere; what is no
// id is no revocation; who names no connection is told so.
func TestHostileRevocations(t *testing.T) {
	h := openHost(t)
	l := load(t, h, published(t, id, "1", "Mailbox"))
	if _, err := h.Grant(t.Context(), app.GrantRequest{Connector: l}); err != nil {
		t.Fatal(err)
	}
	dir, elsewhere := filepath.Join(h.DataDir, "revocations"), filepath.Join(t.TempDir(), "elsewhere")
	if err := os.MkdirAll(filepath.Join(dir, "UPPER"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "mailbox")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []store.ConnectionID{"", "..", "a/b", "UPPER", "mailbox.unknown"} {
		if _, err := app.LeaveRevocation(h.DataDir, bad); err == nil {
			t.Errorf("left for %q", bad)
		}
	}
	until(t, h.DataDir, "mailbox", nil)
	if c := stored(t, h, "mailbox"); c.Grant.Fault(time.Now()) != "grant_revoked" {
		t.Errorf("the grant is %+v", c.Grant)
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("a revocation was written through a link")
	}
	until(t, h.DataDir, "mailbx", store.ErrNotFound)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "UPPER" {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// until leaves a revocation and waits for its answer.
func until(t *testing.T, dir string, id store.ConnectionID, want error) {
	t.Helper()
	taken, err := app.LeaveRevocation(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		done, err := taken()
		if done && !errors.Is(err, want) {
			t.Fatalf("revocation of %s: %v", id, err)
		}
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the revocation of %s was not taken", id)
		}
	}
}
