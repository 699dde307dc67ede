package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// A manifest given beside chooses the implementation that has its fingerprint; without one, or
// with one that neither has, the installed one comes first: one that cannot be run gives way.
func TestImplementation(t *testing.T) {
	h := openHost(t)
	mine, ours := published(t, id, "1", "Installed"), published(t, id, "2", "Bundled")
	first := mustInstall(t, h, mine, app.InstallOptions{}).Connector
	bundled := mustInstall(t, h, ours, app.InstallOptions{}).Connector
	bundled.Bundled = true
	for _, c := range []store.Connector{bundled, first} {
		if err := h.Store.PutConnector(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	sidecar := func(r release, old, new string) string {
		t.Helper()
		m := strings.Replace(string(load(t, h, r).Manifest.Raw), old, new, 1)
		path := filepath.Join(t.TempDir(), "manifest.json")
		if err := os.WriteFile(path, []byte(m), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	loads := func(name, manifest string, want release) {
		t.Helper()
		l, err := h.Load(t.Context(), name, manifest)
		if err != nil {
			t.Error(err)
		} else if got, want := l.Module.Digest, load(t, h, want).Module.Digest; got != want {
			t.Errorf("%s with %q is %s, want %s", name, manifest, l.Connector.DisplayName, want)
		}
	}
	loads("mailbox", "", mine)
	loads(id, sidecar(mine, "Installed", "Other words"), mine)
	loads(id, sidecar(ours, "Bundled", "Other words"), ours)
	loads(id, sidecar(ours, `"2"`, `"3"`), mine)
	loads(id, sidecar(ours, `"rows"`, `"lines"`), mine)
	loads("unknown", sidecar(ours, "Bundled", "Found by what it says"), ours)

	if err := os.Remove(filepath.Join(h.DataDir, "modules", strings.TrimPrefix(load(t, h, mine).Module.Digest, "sha256:")+
		".wasm")); err != nil {
		t.Fatal(err)
	}
	loads("mailbox", "", ours)
}

// A directory here that has the name of what is installed is not run in its place.
func TestDirectoryOfThatName(t *testing.T) {
	h := openHost(t)
	mustInstall(t, h, published(t, id, "1", "Mailbox"), app.InstallOptions{})
	t.Chdir(t.TempDir())
	if err := os.Mkdir("mailbox", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Load(t.Context(), "mailbox", ""); err == nil || !strings.Contains(err.Error(), "./mailbox") ||
		!strings.Contains(err.Error(), id) {
		t.Errorf("the directory was taken: %v", err)
	}
	if _, err := h.Load(t.Context(), "./mailbox", ""); err == nil || strings.Contains(err.Error(), "installed connector") {
		t.Errorf("the directory cannot be meant: %v", err)
	}
	if _, err := h.Load(t.Context(), id, ""); err != nil {
		t.Errorf("the connector cannot be meant: %v", err)
	}
}

// What is refused leaves no connection behind.
func TestRefusedStartLeavesNothing(t *testing.T) {
	h := openHost(t)
	l := load(t, h, published(t, id, "1", "Mailbox"))
	if _, err := h.Start(t.Context(),
		app.RunRequest{Connector: l, Scope: json.RawMessage(`{"streams":[{"name":"nothing"}]}`)}); err == nil {
		t.Fatal("a run of a stream that is not there was started")
	}
	if _, err := h.Grant(t.Context(),
		app.GrantRequest{Connector: l,
			Terms: &host.GrantTerms{Scope: json.RawMessage(`{"streams":[{"name":"nothing"}]}`)}}); err == nil {
		t.Fatal("a stream that is not there was granted")
	}
	if _, err := h.Grant(t.Context(),
		app.GrantRequest{Connector: l, Approved: store.Approved{Hosts: []string{"no host"}}}); err == nil {
		t.Fatal("what is no host was approved")
	}
	if c, err := h.Store.Connection(t.Context(), "mailbox"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("there is a connection: %+v, %v", c, err)
	}
}

// What one connector collected is not gone on with by another.
func TestKeptForAnother(t *testing.T) {
	h := openHost(t)
	old := store.Run{ID: "run_1", ConnectionID: "mailbox", ConnectorID: "https://other.example/mail", Status: "active",
		StartedAt: time.Now()}
	if _, err := h.Store.Acquire(t.Context(), old, "", "", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(t.Context(),
		app.RunRequest{Connector: load(t, h, published(t, id, "1", "Mailbox"))}); err == nil ||
		!strings.Contains(err.Error(), "other.example") {
		t.Errorf("a connection was made over what another connector collected: %v", err)
	}
}

// Another module of the same size is not taken for the one that was checked last.
func TestCheckedLast(t *testing.T) {
	h := openHost(t)
	good := askModule(t)
	first, err := h.LoadBytes(good, nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	bad[len("\x00asm\x01\x00\x00\x00")] = 0xff // no kind of section
	if l, err := h.LoadBytes(bad, nil); err == nil {
		t.Errorf("a broken module is %s", l.Module.Digest)
	}
	again, err := h.LoadBytes(bytes.Clone(good), nil)
	if err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("the same module is %+v, %v", again, err)
	}
}
