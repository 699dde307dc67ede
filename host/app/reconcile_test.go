package app

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Of the runs of this boot those are closed that are performed by nobody and whose lease
// nobody renews; temporary connections that were left for them go with the next look.
func TestReconcile(t *testing.T) {
	h, err := Open(t.Context(), Options{Store: "badger:" + t.TempDir(), NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := h.Service(t.Context(), ServiceOptions{Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	acquire := func(connection store.ConnectionID, ttl time.Duration) store.RunID {
		now := time.Now()
		c := store.Connection{ID: connection, Temporary: true, Enabled: true, CreatedAt: now, UpdatedAt: now}
		if err := h.Store.PutConnection(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r := store.Run{ID: run.NewRunID(now), ConnectionID: connection, Status: "active", StartedAt: now, Attempt: 1}
		if _, err := h.Store.Acquire(t.Context(), r, h.ID, h.Epoch, ttl); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	lost, fresh, live := acquire("lost", time.Second), acquire("fresh", time.Minute), acquire("live", time.Second)
	s.temporaries.remove(workflow{connection: "lost", temporary: true}) // cannot be deleted while its run stands as active
	for range 2 {
		if err := s.reconcile(t.Context(), func(id store.RunID) bool { return id == live }); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[store.RunID]string{lost: "failed", fresh: "active", live: "active"} {
		if r, err := h.Store.Run(t.Context(), id); err != nil || r.Status != want {
			t.Errorf("%s is %s, want %s: %v", id, r.Status, want, err)
		}
	}
	all, err := h.Store.Connections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.ID == "lost" {
			t.Error("the connection of the lost run is left over")
		}
	}
	if len(all) != 2 {
		t.Errorf("connections: %+v", all)
	}
}

// The end of a run that was cut off is not before its other events, also when the clock was
// set back meanwhile.
func TestReconcileClockSetBack(t *testing.T) {
	h, err := Open(t.Context(), Options{Store: "badger:" + t.TempDir(), NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	before := time.Now().Add(time.Hour)
	if err := h.Store.PutConnection(t.Context(),
		store.Connection{ID: "c", Enabled: true, CreatedAt: before, UpdatedAt: before}); err != nil {
		t.Fatal(err)
	}
	r := store.Run{ID: run.NewRunID(before), ConnectionID: "c", Status: "active", StartedAt: before, Attempt: 1}
	lease, err := h.Store.Acquire(t.Context(), r, h.ID, "the boot before", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	started := store.Event{ID: "evt_1", Type: "run.started", Status: "started", OccurredAt: before, RunID: r.ID,
		ConnectionID: "c", Data: []byte(`{}`)}
	receipt, err := h.Store.Submit(t.Context(), &store.Commit{Lease: lease, Events: []store.Event{started}})
	if err == nil {
		_, err = receipt.Result()
	}
	if err == nil {
		err = run.Reconcile(t.Context(), h.Store, h.ID, h.Epoch, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	events, err := h.Store.Events(t.Context(), r.ID, 0, 10)
	if err != nil || len(events) < 2 || events[len(events)-1].Type != "run.failed" {
		t.Fatal(events, err)
	}
	for i := range events[1:] {
		if events[i+1].OccurredAt.Before(events[i].OccurredAt) {
			t.Errorf("%s is before %s", events[i+1].Type, events[i].Type)
		}
	}
}
