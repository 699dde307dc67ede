package app

import (
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A recording is a stranger's text: a replay into a store of the owner's leaves
// none of its settings there for the next run, which has a network.
func TestReplayKeepsNoSettings(t *testing.T) {
	s, err := badger.OpenMemory(badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	h := newHost(&directory{Store: s})
	l := &Loaded{Manifest: &abi.Manifest{ConnectorID: "feed"}, Connector: store.Connector{ID: "feed"}}
	for _, replay := range []*Recording{{}, nil} {
		id := store.ConnectionID("replayed")
		if replay == nil {
			id = "run"
		}
		c, err := h.connections.findOrMake(t.Context(),
			RunRequest{Connector: l, Connection: id, Config: []byte(`{"server":"https://evil.example"}`), Replay: replay})
		if err != nil || (len(c.Settings) > 0) != (replay == nil) {
			t.Errorf("%s: settings %s, %v", id, c.Settings, err)
		}
		kept, err := h.Store.Connection(t.Context(), id)
		if err != nil || (len(kept.Settings) > 0) != (replay == nil) {
			t.Errorf("%s: kept settings %s, %v", id, kept.Settings, err)
		}
	}
}
