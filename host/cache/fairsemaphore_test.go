package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host/cache"
)

// TestTurns: one who asks for everything leaves places to others, and all together have no more
// than there are.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, in := cache.NewFairSemaphore(4), map[string]int{}
		leaves := make(chan func(), 100)
		ctx, giveUp := context.WithCancel(t.Context())
		ask := func(who string, ctx context.Context) {
			go func() {
				leave, err := turns.Take(ctx, who)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				leaves <- leave
			}()
			synctest.Wait()
			in[who] = len(leaves)
		}
		for range 50 {
			ask("greedy", ctx)
		}
		if in["greedy"] != 2 {
			t.Errorf("one asker has %d places of 4", in["greedy"])
		}
		if ask("other", t.Context()); len(leaves) != 3 {
			t.Error("another has to wait")
		}
		for _, who := range []string{"third", "fourth"} {
			ask(who, t.Context())
		}
		if len(leaves) != 4 {
			t.Errorf("%d work at once, want 4", len(leaves))
		}
		giveUp() // those that wait; who has a place keeps it
		synctest.Wait()
		for range 5 { // greedy twice, other, third, fourth
			(<-leaves)()
			synctest.Wait()
		}
		if len(leaves) != 0 {
			t.Error("who gave up got a place")
		}
	})
}
