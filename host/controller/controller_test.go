package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

func refused(err error) (code string, details map[string]any) {
	var r *run.Refusal
	if errors.As(err, &r) {
		return r.Code, r.Details
	}
	return "", nil
}

// A start answers once the run is durable, and who waits for it gets
// its result.
func TestStart(t *testing.T) {
	s := newStage(t, memoryStore(t))
	var mu sync.Mutex
	counted := map[controller.Event]int{}
	c := controller.New(s.store, controller.Options{Count: func(e controller.Event) {
		mu.Lock()
		defer mu.Unlock()
		counted[e]++
	}})
	defer c.Shutdown(t.Context())
	gate := make(chan struct{})
	rec := s.start(c, newGuest(gate, done))
	if rec.Status != "active" || s.row(rec.ID).Status != "active" {
		t.Errorf("the run is %+v", rec)
	}
	if live, ok := c.Live(rec.ID); !ok || live.Phase == "" {
		t.Errorf("live: %+v %v", live, ok)
	}
	close(gate)
	result, err := c.Wait(t.Context(), rec.ID)
	if errors.Is(err, controller.ErrNotActive) { // it was quick
		result = <-s.ended
	} else if err != nil {
		t.Fatal(err)
	}
	if result == nil || result.Status != "succeeded" {
		t.Fatalf("%+v", result)
	}
	c.Shutdown(t.Context())
	if _, ok := c.Live(rec.ID); ok {
		t.Error("over, and live")
	}
	if _, err := c.Wait(t.Context(), rec.ID); !errors.Is(err, controller.ErrNotActive) {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if counted[controller.Accepted] != 1 || counted[controller.Succeeded] != 1 || len(counted) != 2 {
		t.Errorf("counted %v", counted)
	}
}

// host.runs: runs above the limit stay pending, in order, and
// a run that waits for its owner makes room.
func TestSlots(t *testing.T) {
	s := newStage(t, memoryStore(t))
	c := controller.New(s.store, controller.Options{Runs: 2})
	gates := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{}), nil}
	asker := newGuest(gates[0], asks, done)
	guests := []*guest{asker, newGuest(gates[1], done), newGuest(gates[2], done), newGuest(nil, done)}
	var ids []store.RunID
	for _, g := range guests[:2] {
		ids = append(ids, s.start(c, g).ID)
		<-g.reached
	}
	for n, g := range guests[2:] {
		rec := s.start(c, g)
		ids = append(ids, rec.ID)
		for c.Stats().Queued <= n { // they ask in this order
			runtime.Gosched()
		}
		if live, _ := c.Live(rec.ID); !live.Queued || live.Phase != "preparing" {
			t.Errorf("above the limit: %+v", live)
		}
	}
	if got := c.Stats(); got.Running != 2 || got.Queued != 2 || got.Accepted != 4 {
		t.Errorf("%+v", got)
	}
	close(gates[0]) // it asks its owner
	<-guests[2].reached
	if live, _ := c.Live(ids[3]); !live.Queued {
		t.Error("the last one overtook")
	}
	if _, err := c.Cancel(t.Context(), ids[3], run.CancelRequest{Cause: "owner"}); err != nil { // while it is queued
		t.Error(err)
	}
	if r := <-s.ended; r == nil || r.RunID != ids[3] || r.Status != "cancelled" {
		t.Errorf("the queued one: %+v", r)
	}
	close(gates[1])
	close(gates[2])
	for range 2 {
		if r := <-s.ended; r == nil || r.Status != "succeeded" {
			t.Errorf("%+v", r)
		}
	}
	if _, err := c.Cancel(t.Context(), ids[0], run.CancelRequest{Cause: "owner"}); err != nil {
		t.Error(err)
	}
	<-s.ended
	c.Shutdown(t.Context())
	if got := c.Stats(); got.Running != 0 || got.Queued != 0 || got.Accepted != 0 {
		t.Errorf("places are left over: %+v", got)
	}
}

// Above the limit of accepted runs a start is rate_limited, and the
// place of one that was refused or is over is free again.
func TestAcceptedLimit(t *testing.T) {
	s := newStage(t, memoryStore(t))
	c := controller.New(s.store, controller.Options{Accepted: 1})
	defer c.Shutdown(t.Context())
	if _, err := c.Start(t.Context(), func(context.Context, run.Slots) (controller.Job, error) {
		return controller.Job{}, &run.Refusal{Code: "connection_disabled"}
	}); err == nil {
		t.Fatal("not refused")
	}
	first := newGuest(make(chan struct{}), done)
	rec := s.start(c, first)
	code, details := refused(second(c, s.job(newGuest(nil, done))))
	if code != "rate_limited" || details["scope"] != "global" || details["limit"] != 1 {
		t.Errorf("%s %v", code, details)
	}
	close(first.gate)
	<-s.ended
	if _, err := c.Wait(t.Context(), rec.ID); err != nil && !errors.Is(err, controller.ErrNotActive) {
		t.Error(err)
	}
	s.start(c, newGuest(nil, done))
}

func second(c *controller.Controller, job func(context.Context, run.Slots) (controller.Job, error)) error {
	_, err := c.Start(context.Background(), job)
	return err
}

// A connection that is being collected is refused, and what was prepared
// is told.
func TestActiveConnection(t *testing.T) {
	s := newStage(t, memoryStore(t))
	c := controller.New(s.store, controller.Options{})
	first := newGuest(make(chan struct{}), done)
	rec := s.start(c, first)
	launch := func(context.Context, run.Launch) (run.Guest, binding.Binding, error) {
		return nil, nil, errors.New("never")
	}
	code, details := refused(second(c, s.jobOf("c1", launch, newGuest(nil))))
	if code != "run_already_active" || details["activeRunId"] != rec.ID {
		t.Errorf("%s %v", code, details)
	}
	if r := <-s.ended; r != nil {
		t.Errorf("the refused one was told %+v", r)
	}
	close(first.gate)
	if r := <-s.ended; r.Status != "succeeded" {
		t.Errorf("the running one was disturbed: %+v", r)
	}
	c.Shutdown(t.Context())
}

// What steering answers for runs of every kind.
func TestSteer(t *testing.T) {
	s := newStage(t, memoryStore(t))
	c := controller.New(s.store, controller.Options{})
	defer c.Shutdown(t.Context())
	by := run.CancelRequest{Cause: "owner", By: "key:k"}
	if _, err := c.Cancel(t.Context(), "run_none", by); code(err) != "not_found" {
		t.Error(err)
	}
	if _, err := c.Pause(t.Context(), "run_none", run.PauseRequest{}); code(err) != "not_found" {
		t.Error(err)
	}
	g := newGuest(nil, asks, done)
	rec := s.start(c, g)
	for live, _ := c.Live(rec.ID); live.Phase != "waiting"; live, _ = c.Live(rec.ID) {
		runtime.Gosched()
	}
	if _, err := c.Resume(t.Context(), rec.ID, run.ResumeRequest{}); code(err) != "conflict" {
		t.Errorf("resumed what is not paused: %v", err)
	}
	if _, err := c.Pause(t.Context(), rec.ID, run.PauseRequest{}); err != nil {
		t.Error(err)
	}
	for live, _ := c.Live(rec.ID); !live.Paused; live, _ = c.Live(rec.ID) {
		runtime.Gosched()
	}
	if _, err := c.Resume(t.Context(), rec.ID, run.ResumeRequest{}); err != nil {
		t.Error(err)
	}
	status, err := c.Cancel(t.Context(), rec.ID, by)
	if err != nil || status != "cancelling" && status != "cancelled" {
		t.Errorf("%s %v", status, err)
	}
	<-s.ended
	for range 2 {
		status, err = c.Cancel(t.Context(), rec.ID, by)
		if status != "cancelled" || err != nil {
			t.Errorf("again: %s %v", status, err)
		}
	}
	over := newGuest(nil, done)
	rec = s.start(c, over)
	<-s.ended
	if status, err := c.Cancel(t.Context(), rec.ID, by); status != "completed" || err != nil {
		t.Errorf("a run that had ended: %s %v", status, err)
	}
	if _, err := c.Resume(t.Context(), rec.ID, run.ResumeRequest{}); code(err) != "conflict" {
		t.Error(err)
	}
}

func code(err error) string { c, _ := refused(err); return c }

// A panic in a run's goroutine ends that run and not the host; its place and its
// guest go, and it is closed as one that nobody performs.
func TestPanic(t *testing.T) {
	s := newStage(t, memoryStore(t))
	closed := make(chan struct{}, 1)
	var c *controller.Controller
	ready := make(chan struct{})
	c = controller.New(s.store,
		controller.Options{Runs: 1, Every: time.Hour,
			Reconcile: func(ctx context.Context, live func(store.RunID) bool) error {
				<-ready
				err := run.CloseLost(ctx, s.store, "host_test", "boot_test",
					func(l store.Lease) bool { return !live(l.RunID) }, nil)
				closed <- struct{}{}
				return err
			}})
	close(ready)
	g := newGuest(nil)
	rec, err := c.Start(t.Context(),
		s.jobOf("c0", func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return panicking{g}, nil, nil },
			g))
	if err != nil {
		t.Fatal(err)
	}
	if r := <-s.ended; r != nil {
		t.Fatalf("came to an end: %+v", r)
	}
	<-g.killed
	<-closed
	if r := s.row(rec.ID); r.Status != "failed" {
		t.Errorf("the run is %s", r.Status)
	}
	s.start(c, newGuest(nil, done)) // the only place is free
	if r := <-s.ended; r == nil || r.Status != "succeeded" {
		t.Errorf("%+v", r)
	}
	c.Shutdown(t.Context())
}

// A panicking guest makes the host's own code panic where it asks for it.
type panicking struct{ *guest }

func (panicking) Isolation() sandbox.Isolation { panic("a fault of the host") }

// A shutdown refuses starts, waits for active runs for the grace, and
// stops the rest, which say controller_restarted.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memoryStore(t)
		s := newStage(t, st)
		c := controller.New(st, controller.Options{Grace: 30 * time.Second})
		quick, slow, parked := newGuest(make(chan struct{}), done), newGuest(make(chan struct{}), done),
			newGuest(nil, asks, done)
		ids := []store.RunID{s.start(c, quick).ID, s.start(c, slow).ID, s.start(c, parked).ID}
		synctest.Wait()
		began := time.Now()
		over := make(chan struct{})
		go func() {
			c.Shutdown(t.Context())
			close(over)
		}()
		synctest.Wait()
		if code, _ := refused(second(c, s.job(newGuest(nil, done)))); code != "unavailable" {
			t.Errorf("a start while the host stops: %s", code)
		}
		time.Sleep(4 * time.Second) // of the fake clock
		synctest.Wait()
		if r := <-s.ended; r.RunID != ids[2] || r.TerminalReason == nil || *r.TerminalReason != "controller_restarted" {
			t.Errorf("the run that nobody can answer any more: %+v", r)
		}
		time.Sleep(16 * time.Second)
		close(quick.gate)
		<-over
		if waited := time.Since(began); waited < 30*time.Second || waited > 40*time.Second {
			t.Errorf("took %s", waited)
		}
		if r := s.row(ids[0]); r.Status != "succeeded" {
			t.Errorf("the run that ended by itself %s", r.Status)
		}
		if r := <-s.ended; r.Status != "succeeded" {
			t.Errorf("%+v", r)
		}
		r := <-s.ended
		if r.RunID != ids[1] || r.TerminalReason == nil || *r.TerminalReason != "controller_restarted" {
			t.Errorf("the rest: %+v", r)
		}
		if leases, err := st.Leases(t.Context()); err != nil || len(leases) > 0 {
			t.Errorf("leases are left: %v %v", leases, err)
		}
	})
}

// 200 runs wait for their owner in one process, with 8 places to execute; all
// are answered, and end.
func TestManyParked(t *testing.T) {
	const many = 200
	st := memoryStore(t)
	s := newStage(t, st)
	broker := interaction.New(st)
	s.owner = broker
	c := controller.New(st, controller.Options{Accepted: many})
	before := runtime.NumGoroutine()
	ids := make([]store.RunID, many)
	for i := range ids {
		ids[i] = s.start(c, newGuest(nil, asks, done)).ID
	}
	for broker.Waiting() < many {
		runtime.Gosched()
	}
	if got := c.Stats(); got.Running != 0 || got.Queued != 0 || got.Accepted != many {
		t.Errorf("parked: %+v", got)
	}
	t.Logf("%d goroutines for each parked run and its scripted guest", (runtime.NumGoroutine()-before)/many)
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			err := broker.Answer(t.Context(),
				host.Answer{RunID: id, InteractionID: "login", Status: "success",
					Data: map[string]json.RawMessage{"action": json.RawMessage(`"accept"`)}, By: "key:k"})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for range many {
		if r := <-s.ended; r == nil || r.Status != "succeeded" {
			t.Fatalf("%+v", r)
		}
	}
	for _, id := range ids {
		broker.Forget(id)
	}
	c.Shutdown(t.Context())
	if err := broker.Answer(t.Context(),
		host.Answer{RunID: ids[0], InteractionID: "login", Status: "success"}); code(err) != "no_pending_interaction" {
		t.Error(err)
	}
}
