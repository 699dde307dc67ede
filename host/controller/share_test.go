package controller_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/store"
)

func startFor(t *testing.T, s *stage, c *controller.Controller, by string, g *guest) store.RunID {
	t.Helper()
	rec, err := c.StartFor(context.Background(), by, s.job(g))
	if err != nil {
		t.Fatalf("a run of %q: %v", by, err)
	}
	return rec.ID
}

// A key that starts runs which all wait for their owner stops nobody: it has its
// share and no more, what waits takes nobody's place, and the host's own runs have
// places that no key gets.
func TestShares(t *testing.T) {
	st := memoryStore(t)
	s := newStage(t, st)
	broker := interaction.New(st)
	s.owner = broker
	c := controller.New(st, controller.Options{Runs: 2, Accepted: 8})
	defer c.Shutdown(t.Context())
	for range 2 {
		startFor(t, s, c, "key:greedy", newGuest(nil, asks, done))
	}
	for c.Stats().Idle < 2 {
		runtime.Gosched()
	}
	_, err := c.StartFor(context.Background(), "key:greedy", s.job(newGuest(nil, done)))
	if code, details := refused(err); code != "rate_limited" || details["scope"] != "key" || details["limit"] != 2 {
		t.Errorf("above its share: %s %v", code, details)
	}
	if got := c.Stats(); got.Running != 0 || got.Accepted != 2 {
		t.Errorf("%+v", got)
	}

	// The owner takes what there is for others than the host; what stands counts for nothing.
	gate := make(chan struct{})
	for range 7 {
		startFor(t, s, c, "owner", newGuest(gate, done))
	}
	_, err = c.StartFor(context.Background(), "owner", s.job(newGuest(nil, done)))
	if code, details := refused(err); code != "rate_limited" || details["scope"] != "global" || details["limit"] != 7 {
		t.Errorf("above the limit: %s %v", code, details)
	}
	if err := c.Full(); err != nil {
		t.Errorf("the host's own: %v", err)
	}
	s.start(c, newGuest(gate, done))
	if code, _ := refused(c.Full()); code != "rate_limited" {
		t.Errorf("with every place taken: %s", code)
	}
	close(gate)
}

// Runs that wait for their owner and cannot sleep keep their places, of which there are twice as many.
func TestStandingLimit(t *testing.T) {
	s := newStage(t, memoryStore(t))
	c := controller.New(s.store, controller.Options{Accepted: 1})
	defer c.Shutdown(t.Context())
	for n := range 2 {
		s.start(c, newGuest(nil, asks, done))
		for c.Stats().Idle == n {
			runtime.Gosched()
		}
	}
	code, details := refused(second(c, s.job(newGuest(nil, done))))
	if code != "rate_limited" || details["limit"] != 2 {
		t.Errorf("%s %v", code, details)
	}
	if code, _ := refused(c.Full()); code != "rate_limited" {
		t.Error(code)
	}
}

// Of those who wait for a place to execute, who has the fewest gets the next, and
// one is kept for the host's own runs.
func TestFairPlaces(t *testing.T) {
	s := newStage(t, memoryStore(t))
	c := controller.New(s.store, controller.Options{Runs: 8})
	defer c.Shutdown(t.Context())
	gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
	for i := range 7 {
		g := newGuest(gates[min(i, 1)], done)
		startFor(t, s, c, "key:a", g)
		<-g.reached
	}
	queued := func(by string, g *guest) {
		before := c.Stats().Queued
		startFor(t, s, c, by, g)
		for c.Stats().Queued == before {
			runtime.Gosched()
		}
	}
	again, other := newGuest(gates[1], done), newGuest(gates[1], done)
	queued("key:a", again) // a place is free, and kept
	queued("key:b", other)
	own := newGuest(gates[1], done)
	s.start(c, own)
	<-own.reached
	close(gates[0])
	<-other.reached
	select {
	case <-again.reached:
		t.Error("who has most was next")
	default:
	}
	close(gates[1])
	<-again.reached
}
