package webhook_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// Deliveries over the embedded store: events of real commits arrive in order, what
// happens while nothing runs arrives after the next open, nothing twice.
func TestBadger(t *testing.T) {
	port, conf, arrivals := server(t, func(http.ResponseWriter, *http.Request) {})
	st, err := badger.Open(t.TempDir(), badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := st.PutConnection(t.Context(), store.Connection{ID: "mailbox"}); err != nil {
		t.Fatal(err)
	}
	o := here(newMemory(), conf)
	o.Store = st
	outcome := make(chan string, 16) // once the cursor is stored
	o.Observed = func(s string) { outcome <- s }
	h := open(t, o)
	if _, _, err := h.Create(t.Context(), "owner",
		webhook.Definition{URL: "https://example.com" + port, Events: []string{"run.*"}}, nil); err != nil {
		t.Fatal(err)
	}
	run := store.Run{ID: "run_01K9W3C7RZ5D1N8V5X9M2QH4TB", ConnectionID: "mailbox", Status: "active",
		StartedAt: time.Now()}
	lease, err := st.Acquire(t.Context(), run, "host", "boot", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(end bool, types ...string) {
		t.Helper()
		c := &store.Commit{Lease: lease}
		for i, typ := range types {
			id := store.EventID("evt_000000000000000" + string(rune('a'+i)))
			c.Events = append(c.Events, store.Event{
				ID: id, Type: typ, RunID: run.ID, ConnectionID: run.ConnectionID, OccurredAt: time.Now(),
				Data: json.RawMessage(`{}`),
			})
		}
		if end {
			over := run
			now := time.Now()
			over.Status, over.FinishedAt = "succeeded", &now
			c.Run, c.End = &over, true
		}
		r, err := st.Submit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Result(); err != nil {
			t.Fatal(err)
		}
	}
	arrived := func(want string) {
		t.Helper()
		var b struct{ Type string }
		a := <-arrivals
		if err := json.Unmarshal(a.body, &b); err != nil || b.Type != want {
			t.Errorf("got %s, want %s, %v", a.body, want, err)
		}
		if got := <-outcome; got != "delivered" {
			t.Error(got)
		}
	}
	commit(false, "run.started", "node.started", "run.paused")
	arrived("run.started")
	arrived("run.paused")
	closed(t, h)
	commit(true, "run.resumed", "run.completed")
	h = open(t, o)
	arrived("run.resumed") // and not what had arrived before
	arrived("run.completed")
	closed(t, h)
	if len(arrivals) > 0 {
		t.Error("something arrived twice")
	}
}
