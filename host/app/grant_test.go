package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

func load(t *testing.T, h *app.Host, r release) *app.Loaded {
	t.Helper()
	l, err := h.Load(t.Context(), r.path, "")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func stored(t *testing.T, h *app.Host, id store.ConnectionID) store.Connection {
	t.Helper()
	c, err := h.Store.Connection(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A new version that is started while its grant is revoked does not bring back what was
// revoked, and neither do other approvals taken back at that time.
func TestRevokedWhileStarted(t *testing.T) {
	h := openHost(t)
	versions := []*app.Loaded{load(t, h, published(t, id, "1", "One")), load(t, h, published(t, id, "1", "Two"))}
	for n := range 40 {
		all := app.GrantRequest{Connector: versions[n%2],
			Approved: store.Approved{Hosts: []string{"a.example", "b.example"}, Plain: []string{"token"}}}
		if _, err := h.Grant(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { _, _ = h.Start(t.Context(), app.RunRequest{Connector: versions[(n+1)%2]}) })
		}
		both.Go(func() {
			if err := h.Narrow(t.Context(), "mailbox", []string{"a.example"}, nil); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := h.Narrow(t.Context(), "mailbox", nil, []string{"token"}); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if c := stored(t, h, "mailbox"); !slices.Equal(c.Approved.Hosts, []string{"b.example"}) || len(c.Approved.Plain) > 0 {
			t.Fatalf("round %d: taken back and there again: %+v", n, c.Approved)
		}
		both.Go(func() { _, _ = h.Start(t.Context(), app.RunRequest{Connector: versions[n%2]}) })
		both.Go(func() {
			if _, err := h.Revoke(t.Context(), "mailbox"); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if c := stored(t, h, "mailbox"); c.Grant == nil || c.Grant.Status != "revoked" || len(c.Approved.Hosts) > 0 {
			t.Fatalf("round %d: revoked, and has %+v %+v", n, c.Grant, c.Approved)
		}
	}
}

// What is taken back between the plan of a run and its first instruction ends it, also when it
// was given anew by then, or was only a part.
func TestTakenBackBeforeItBegan(t *testing.T) {
	h := openHost(t)
	l := load(t, h, published(t, id, "1", "Mailbox"))
	give := app.GrantRequest{Connector: l, Approved: store.Approved{Hosts: []string{"a.example"}}}
	for name, take := range map[string]func() error{
		"all": func() error { _, err := h.Revoke(t.Context(), "mailbox"); return err },
		"all and given anew": func() error {
			if _, err := h.Revoke(t.Context(), "mailbox"); err != nil {
				return err
			}
			_, err := h.Grant(t.Context(), app.GrantRequest{Connector: l})
			return err
		},
		"a host": func() error {
			return h.Narrow(t.Context(), "mailbox", []string{"a.example"}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := h.Grant(t.Context(), give); err != nil {
				t.Fatal(err)
			}
			r, err := h.Start(t.Context(), app.RunRequest{Connector: l})
			if err != nil {
				t.Fatal(err)
			}
			if err := take(); err != nil {
				t.Fatal(err)
			}
			result, err := r.Do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != "cancelled" || result.CancelCause != "grant_revoked" {
				t.Errorf("the run %s: %+v", result.Status, result)
			}
		})
	}
}

// A revocation is had although the audit log cannot be written.
func TestRevokedWithoutAudit(t *testing.T) {
	h := openHost(t)
	l := load(t, h, published(t, id, "1", "Mailbox"))
	if _, err := h.Grant(t.Context(), app.GrantRequest{Connector: l}); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(h.DataDir, "audit")
	if err := os.Rename(log, log+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Revoke(t.Context(), "mailbox"); err == nil {
		t.Error("nobody is told that it is not written down")
	}
	if c := stored(t, h, "mailbox"); c.Grant.Fault(c.UpdatedAt) != "grant_revoked" {
		t.Errorf("the grant is %+v", c.Grant)
	}
}
