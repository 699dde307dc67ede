package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

func exerciseConnectors(t *testing.T, d Driver) {
	t.Run("replace by id and origin, listed by id, installed first", func(t *testing.T) {
		b := open(t, d)
		put := func(id store.ConnectorID, bundled bool, version string) store.Connector {
			c := store.Connector{ID: id, Name: "c", Version: version, Bundled: bundled, InstalledAt: epoch,
				Manifest: json.RawMessage(`{"a":[1]}`)}
			b.must(b.s.PutConnector(t.Context(), c))
			return c
		}
		put("b", false, "0")
		ab, bb, aa, a2 := put("a", true, "1"), put("b", true, "2"), put("a", false, "3"), put("b", false, "4")
		b.reopen()
		got, err := b.s.Connectors(t.Context())
		b.must(err)
		equal(t, "connectors", got, []store.Connector{aa, ab, a2, bb})
	})
	none := json.RawMessage(`{}`)
	t.Run("delete one of two origins", func(t *testing.T) {
		b := open(t, d)
		b.must(b.s.PutConnector(t.Context(), store.Connector{ID: "a", Manifest: none}))
		b.must(b.s.PutConnector(t.Context(), store.Connector{ID: "a", Bundled: true, Manifest: none}))
		b.must(b.s.DeleteConnector(t.Context(), "a", false))
		if err := b.s.DeleteConnector(t.Context(), "a", false); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("second delete: %v", err)
		}
		got, err := b.s.Connectors(t.Context())
		b.must(err)
		equal(t, "connectors", got, []store.Connector{{ID: "a", Bundled: true, Manifest: none}})
	})
	t.Run("a pin is replaced by id and outlives the connector", func(t *testing.T) {
		b := open(t, d)
		pin := func(id store.ConnectorID, key string) store.Pin {
			p := store.Pin{ConnectorID: id, Name: "n", Signer: store.Signer{KeyID: "I", Key: key}, PinnedAt: epoch}
			b.must(b.s.PutPin(t.Context(), p))
			return p
		}
		c := store.Connector{ID: "a", Manifest: none, Signer: &store.Signer{KeyID: "I", Key: "2"}}
		b.must(b.s.PutConnector(t.Context(), c))
		second := pin("b", "1")
		pin("a", "1")
		first := pin("a", "2")
		b.reopen()
		all, err := b.s.Connectors(t.Context())
		b.must(err)
		equal(t, "connectors", all, []store.Connector{c})
		b.must(b.s.DeleteConnector(t.Context(), "a", false))
		b.reopen()
		got, err := b.s.Pins(t.Context())
		b.must(err)
		equal(t, "pins", got, []store.Pin{first, second})
		b.verify()
	})
	t.Run("a manifest of a megabyte survives, and its replacement too", func(t *testing.T) {
		b := open(t, d)
		for _, n := range []int{1 << 20, 10, 600 << 10} {
			c := store.Connector{ID: "a", Manifest: json.RawMessage(`"` + strings.Repeat("x", n) + `"`)}
			b.must(b.s.PutConnector(t.Context(), c))
			got, err := b.s.Connectors(t.Context())
			b.must(err)
			if len(got) != 1 || !bytes.Equal(got[0].Manifest, c.Manifest) {
				t.Fatalf("manifest of %d bytes changed", n)
			}
		}
		b.reopen()
		b.verify()
	})
}

func exerciseConnections(t *testing.T, d Driver) {
	b := open(t, d)
	if _, err := b.s.Connection(t.Context(), "none"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("absent connection: %v", err)
	}
	at := epoch
	full := store.Connection{
		ID: "a-1", ConnectorID: "c", DisplayName: "A", Enabled: true, Settings: json.RawMessage(`{"x":1}`),
		Grant: &store.Grant{ID: "g", AccessMode: "single_use", Scope: json.RawMessage(`{"streams":[]}`),
			ExpiresAt: &at, Status: "active"},
		Approved: store.Approved{Hosts: []string{"h"},
			Mounts: []store.Mount{{Name: "m", Path: "/p", Writable: true, Device: 1, Inode: 2}}, Browser: true},
		Digest: "sha256:00", Manifest: json.RawMessage(`{}`), CreatedAt: epoch, UpdatedAt: epoch.Add(time.Second),
	}
	b.must(b.s.PutConnection(t.Context(), store.Connection{ID: "b"}))
	b.must(b.s.PutConnection(t.Context(), store.Connection{ID: "a-1"}))
	b.must(b.s.PutConnection(t.Context(), full))
	b.reopen()
	got, err := b.s.Connection(t.Context(), "a-1")
	b.must(err)
	equal(t, "connection", got, full)
	all, err := b.s.Connections(t.Context())
	b.must(err)
	equal(t, "connections", all, []store.Connection{full, {ID: "b"}})

	// Two changes at once are both there.
	var changing sync.WaitGroup
	for i := range 20 {
		changing.Go(func() {
			_, err := b.s.ChangeConnection(t.Context(), "b", func(c *store.Connection) error {
				c.Approved.Hosts = append(c.Approved.Hosts, fmt.Sprint(i))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	changing.Wait()
	no := errors.New("no")
	if _, err := b.s.ChangeConnection(t.Context(), "b", func(c *store.Connection) error {
		c.Approved = store.Approved{}
		return no
	}); !errors.Is(err, no) {
		t.Errorf("a change that is refused: %v", err)
	}
	if _, err := b.s.ChangeConnection(t.Context(), "none", func(*store.Connection) error { return nil }); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("absent connection changed: %v", err)
	}
	b.reopen()
	got, err = b.s.Connection(t.Context(), "b")
	b.must(err)
	equal(t, "changes", len(got.Approved.Hosts), 20)
}
