package controller_test

import (
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Whatever comes first, two answers or a cancel, at least one of them
// succeeds, at most one answer does, the timeline tells the same, and the run
// ends.
func TestAnswerOrCancel(t *testing.T) {
	rounds := 600
	if testing.Short() {
		rounds = 100
	}
	st := memoryStore(t)
	s := newStage(t, st)
	broker := interaction.New(st)
	s.owner = broker
	c := controller.New(st, controller.Options{})
	random := rand.New(rand.NewPCG(3, 4))
	ended := map[string]int{}
	for n := range rounds {
		rec := s.start(c, newGuest(nil, asks, done))
		// Of the first rounds an answer wins one for sure, and the cancel another.
		answersFirst, cancelFirst := n == 0, n == 1
		resolved := func() {
			for _, times := resolution(t, st, rec.ID); times == 0; _, times = resolution(t, st, rec.ID) {
				runtime.Gosched()
			}
		}
		delays := [3]int{random.IntN(400), random.IntN(400), random.IntN(400)}
		for live, _ := c.Live(rec.ID); live.Phase != "waiting"; live, _ = c.Live(rec.ID) {
			runtime.Gosched()
		}
		for answersFirst { // or both come before the question is stored, and nobody resolves it
			if pending, err := st.Pending(t.Context(), rec.ID); err != nil {
				t.Fatal(err)
			} else if len(pending) > 0 {
				break
			}
			runtime.Gosched()
		}
		var all sync.WaitGroup
		answers := make([]string, 2)
		for i := range answers {
			all.Go(func() {
				if pause(delays[i]); cancelFirst {
					resolved()
				}
				data := map[string]json.RawMessage{"action": json.RawMessage(`"accept"`)}
				answers[i] = code(broker.Answer(t.Context(),
					host.Answer{RunID: rec.ID, InteractionID: "login", Status: "success", Data: data, By: "key:k"}))
			})
		}
		all.Go(func() {
			if pause(delays[2]); answersFirst {
				resolved()
			}
			if _, err := c.Cancel(t.Context(), rec.ID, run.CancelRequest{Cause: "owner"}); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		r := <-s.ended
		broker.Forget(rec.ID)
		status, times := resolution(t, st, rec.ID)
		wins := 0
		for _, a := range answers {
			switch a {
			case "":
				wins++
			case "conflict", "no_pending_interaction":
			default:
				t.Errorf("an answer got %s", a)
			}
		}
		if times != 1 || (status == "success") != (wins == 1) || wins > 1 {
			t.Fatalf("the question ended %d times, with %s; the answers got %q", times, status, answers)
		}
		if r == nil || r.Status != "succeeded" && r.Status != "cancelled" || wins == 0 && r.Status != "cancelled" {
			t.Fatalf("%d answers won, and the run %+v", wins, r)
		}
		if answersFirst && status != "success" || cancelFirst && status != "cancelled" {
			t.Fatalf("round %d: the question ended with %s", n, status)
		}
		ended[status+", "+r.Status]++
	}
	c.Shutdown(t.Context())
	t.Log(ended)
}

func pause(n int) {
	for range n {
		runtime.Gosched()
	}
}

// resolution is how often the timeline says that the question ended, and how.
func resolution(t *testing.T, st store.Store, id store.RunID) (status string, times int) {
	t.Helper()
	events, err := st.Events(t.Context(), id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == "interrupt.resolved" {
			status = e.Status
			times++
		}
	}
	return status, times
}
