package interaction_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Of any number of answers, a cancel and a time-out exactly one ends
// the question, and everybody is told which it was.
func TestOneWinner(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds = 1_000
	}
	random := rand.New(rand.NewPCG(1, 2))
	won := map[string]int{}
	for n := range rounds {
		// Each wins some rounds for sure, for the others come too late there.
		only := map[int]string{0: "answer", 1: "cancel", 2: "timeout"}[n%100]
		winner := race(t, random, n, only)
		if won[winner]++; only != "" && winner != only {
			t.Errorf("%s won, and only %s was there in time", winner, only)
		}
		if t.Failed() {
			t.Fatalf("round %d", n)
		}
	}
	t.Log(won)
}

// race is one question that two answers, a cancel and a time-out want to end. All but
// only, if it is named, wait until it has ended.
func race(t *testing.T, random *rand.Rand, n int, only string) (winner string) {
	id := store.RunID("run_" + strconv.Itoa(n))
	st := newMemory(id)
	d := interaction.New(st)
	q := otp(id, "login")
	st.commit(id, store.Interaction{ID: q.InteractionID, RunID: id}) // whoever answers saw it
	ends := make(chan string, 2)
	delays := [4]int{random.IntN(60), random.IntN(60), random.IntN(90), random.IntN(90)}

	over := make(chan struct{})
	start := func(who string, delay int) {
		if only != "" && who != only {
			<-over
		}
		yield(delay)
	}
	var all sync.WaitGroup
	codes := make([]string, 2)
	for i := range codes {
		all.Go(func() {
			start("answer", delays[i])
			codes[i] = code(d.Answer(t.Context(),
				host.Answer{RunID: id, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)}))
		})
	}
	for i, end := range []string{"cancel", "timeout"} {
		all.Go(func() {
			start(end, delays[2+i])
			ends <- end
		})
	}
	winner = asked(t, d, st, q, ends)
	close(over)
	all.Wait()
	wins, want := 0, "no_pending_interaction"
	if winner == "answer" {
		want = "conflict"
	}
	for _, c := range codes {
		switch c {
		case "":
			wins++
		case want:
		default:
			t.Errorf("%s won, and an answer got %s", winner, c)
		}
	}
	if (winner == "answer") != (wins == 1) {
		t.Errorf("%s won, and %d answers were told that they did", winner, wins)
	}
	return winner
}

func yield(n int) {
	for range n {
		runtime.Gosched()
	}
}

// asked is the run's one goroutine: what it sees first is the end.
func asked(t *testing.T, d *interaction.Broker, st *memory, q run.Question, ends <-chan string) string {
	id := store.RunID(q.RunID)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(chan host.Answer, 1)
	var asking sync.WaitGroup
	asking.Go(func() {
		if a, err := d.Ask(ctx, q); err == nil {
			answers <- a
		}
	})
	defer asking.Wait()
	select {
	case a := <-answers:
		st.commit(id)
		d.Settled(a.RunID, a.InteractionID, nil)
		return "answer"
	case end := <-ends:
		cancel()
		st.commit(id)
		asking.Wait()
		select {
		case a := <-answers:
			d.Settled(a.RunID, a.InteractionID, run.ErrTooLate)
		default:
		}
		return end
	}
}
