package stream_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
)

// TestHammer: clients of every mode come and go while a run goes on; whoever
// stays gets every frame of its mode once, in order.
func TestHammer(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			m := newMemory(run)
			h := stream.New(m, stream.Options{PerRun: 1000})
			m.commit(run, story[0]...)
			var stay, all []*client
			texts := []string{"updates", "values", "messages", "debug", "debug,messages"}
			for range 100 {
				switch r.IntN(5) {
				case 0:
					q := stream.Query{Modes: modes(t, texts[r.IntN(len(texts))]),
						Buffer: time.Duration(r.IntN(3)) * 400 * time.Millisecond}
					if r.IntN(2) == 0 {
						q.After = ptr(uint64(r.IntN(len(m.events[run]) + 3)))
					}
					all = append(all, subscribe(t, h, q))
				case 1:
					stay = append(stay, subscribe(t, h, stream.Query{Modes: modes(t, "debug")}))
				case 2:
					if len(all) > 0 {
						all[r.IntN(len(all))].conn.Close()
					}
				case 3:
					time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
				default:
					commit := make([]ev, 1+r.IntN(12))
					for i := range commit {
						commit[i] = ev{[]string{"run.progress_reported", "log.appended", "output.chunk", "node.suspended",
							"node.resumed"}[r.IntN(5)], "{}"}
					}
					m.commit(run, commit...)
				}
			}
			m.commit(run, story[5]...)
			synctest.Wait()
			want := debugHeads(m)
			for i, c := range stay {
				if got := c.heads(); got != want || !c.ended() {
					t.Fatalf("seed %d: client %d got %d bytes of heads, want %d", seed, i, len(got), len(want))
				}
			}
			for _, c := range all {
				if !c.ended() || strings.Contains(c.heads(), "run.completed, ") {
					t.Fatalf("seed %d: a client is still served", seed)
				}
			}
			if h.Clients() != 0 || stream.FeedsOf(h) != 0 {
				t.Errorf("seed %d: %d clients and %d feeds are left", seed, h.Clients(), stream.FeedsOf(h))
			}
			h.Close()
		})
	}
}
