package egress

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Share makes the limiter take turns from a store, so that the hosts that share it observe
// one rate together; nil changes nothing. Call it before using the limiter.
func (g *RateLimiter) Share(t store.SharedRateLimiter) { g.shared = t }

const (
	// storeWait bounds one request to the store.
	storeWait = 2 * time.Second
	// turnTTL is how long this host may use a turn after it is due.
	turnTTL = time.Second
)

// An allotment holds the turns that the store gave this host for an origin.
type allotment struct {
	refilling chan struct{} // capacity 1: one request asks for all
	wanted    int           // requests without a turn
	turns     []time.Time   // unused, in order
}

// next takes the first turn that has not expired.
func (t *allotment) next(now time.Time) (at time.Time, ok bool) {
	for len(t.turns) > 0 {
		at, t.turns = t.turns[0], t.turns[1:]
		if now.Sub(at) < turnTTL {
			return at, true
		}
	}
	return time.Time{}, false
}

// sharedTurn takes this host's next turn. If there is none, it takes as many from the store
// as requests need, or as are due within 0.1 s. While the store does not answer, nothing is
// sent.
func (g *RateLimiter) sharedTurn(ctx context.Context, o *origin, name string, until time.Time, w *wait) (turn, error) {
	g.mu.Lock()
	o.allotment.wanted++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		o.allotment.wanted--
		g.mu.Unlock()
	}()
	late := time.NewTimer(max(time.Until(until), storeWait))
	defer late.Stop()
	select {
	case o.allotment.refilling <- struct{}{}:
		defer func() { <-o.allotment.refilling }()
	case <-late.C:
		return turn{}, errStoreUnavailable(name)
	case <-ctx.Done():
		return turn{}, ctx.Err()
	}
	for {
		g.mu.Lock()
		at, ok := o.allotment.next(time.Now())
		n := max(o.allotment.wanted, int(g.limit.PerSecond/10))
		g.mu.Unlock()
		if ok {
			return turn{at, func() { g.returnTurn(o, at) }}, nil
		}
		if err := g.takeTurns(o, name, n); err == nil {
			continue
		}
		if time.Until(until) < time.Second {
			return turn{}, errStoreUnavailable(name)
		}
		w.begin(name, time.Now().Add(time.Second))
		if err := sleep(ctx, time.Second); err != nil {
			return turn{}, err
		}
	}
}

// returnTurn returns an unused turn.
func (g *RateLimiter) returnTurn(o *origin, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i, _ := slices.BinarySearchFunc(o.allotment.turns, at, time.Time.Compare); !o.closedUntil.After(at) {
		o.allotment.turns = slices.Insert(o.allotment.turns, i, at)
	}
}

// takeTurns asks the store for n turns. It does not end with the run, because cancelling
// would cost the store its connection.
func (g *RateLimiter) takeTurns(o *origin, name string, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	first, closed, err := g.shared.TakeTurns(ctx, name, n, g.storeLimit())
	if err != nil {
		return err
	}
	now := time.Now() // rather late than early
	g.mu.Lock()
	defer g.mu.Unlock()
	o.close(now.Add(closed))
	for i := range n {
		at := first + time.Duration(i)*g.storeLimit().Every
		o.allotment.turns = append(o.allotment.turns, now.Add(max(at, 0)))
	}
	return nil
}

// closeForAll closes an origin for the other hosts too. If the store does not answer, they
// notice the server's refusals themselves.
func (g *RateLimiter) closeForAll(name string, stop time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	_ = g.shared.CloseOrigin(ctx, name, stop, g.storeLimit())
}

func (g *RateLimiter) storeLimit() store.RateLimit {
	every := min(float64(time.Second)/g.limit.PerSecond, float64(24*time.Hour))
	return store.RateLimit{Every: time.Duration(every), Burst: g.limit.Burst}
}

func errStoreUnavailable(name string) *Error {
	e := Errorf(abi.ERATE, "rate_limited", "the store in which hosts share the pace toward %s does not answer", name)
	e.RetryAfter = time.Second.Milliseconds()
	return e
}
