package egress_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/store"
)

// trip is how long the store takes to answer.
const trip = time.Millisecond

// turns are those of one origin that hosts share, by the clock of this process.
type turns struct {
	mu     sync.Mutex
	used   time.Time
	closed time.Time
	asked  int
	err    error
}

func (s *turns) TakeTurns(_ context.Context, _ string, n int, p store.RateLimit) (first, closed time.Duration,
	err error) {
	time.Sleep(trip)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return 0, 0, s.err
	}
	now := time.Now()
	if s.used.Before(now) {
		s.used = now
	}
	first = s.used.Sub(now) - time.Duration(p.Burst-1)*p.Every
	s.used = s.used.Add(time.Duration(n) * p.Every)
	return first, max(s.closed.Sub(now), 0), nil
}

func (s *turns) CloseOrigin(_ context.Context, _ string, stop time.Duration, p store.RateLimit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = time.Now().Add(stop)
	s.used = s.closed.Add(time.Duration(p.Burst-1) * p.Every)
	return s.err
}

func (s *turns) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// enterAll has claims of several hosts enter at once, and returns when they did.
func enterAll(t *testing.T, hosts []*egress.RateLimiter, claims int,
	longest time.Duration) (at []time.Duration, refused int) {
	var mu sync.Mutex // guards what is returned
	var claiming sync.WaitGroup
	began := time.Now()
	for _, g := range hosts {
		for range claims {
			claiming.Go(func() {
				leave, err := g.Enter(t.Context(), "https://a.example", longest)
				mu.Lock()
				defer mu.Unlock()
				var e *egress.Error
				if errors.As(err, &e) && e.Errno == abi.ERATE && e.RetryAfter > 0 {
					refused++
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				at = append(at, time.Since(began))
				leave()
			})
		}
	}
	claiming.Wait()
	slices.Sort(at)
	return at, refused
}

func sharing(n int, s *turns, p egress.RateLimit) (all []*egress.RateLimiter) {
	for range n {
		g := egress.NewRateLimiter(p)
		g.Share(s)
		all = append(all, g)
	}
	return all
}

// Hosts that share turns let through together what one may, and no less; where a host is given
// several turns at once the store is asked less often.
func TestSharedPace(t *testing.T) {
	for _, p := range []egress.RateLimit{{PerSecond: 4, Burst: 8, AtOnce: 4}, {PerSecond: 100, Burst: 5, AtOnce: 4}} {
		synctest.Test(t, func(t *testing.T) {
			s := &turns{}
			const hosts, claims = 3, 40
			at, _ := enterAll(t, sharing(hosts, s, p), claims, time.Hour)
			every := time.Duration(float64(time.Second) / p.PerSecond)
			for i, got := range at {
				soonest := max(time.Duration(i+1-p.Burst), 0) * every
				if latest := soonest + hosts*time.Duration(p.PerSecond/10)*every + 2*trip; got < soonest || got > latest {
					t.Fatalf("%v a second: claim %d entered after %s, want %s to %s", p.PerSecond, i, got, soonest, latest)
				}
			}
			if len(at) != hosts*claims || s.asked > hosts*claims/4 {
				t.Errorf("%v a second: %d claims entered, the store was asked %d times", p.PerSecond, len(at), s.asked)
			}
		})
	}
}

// A turn that comes too late for a claim is left to the next one, and not taken anew each time.
func TestSharedTurnGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &turns{}
		all := sharing(1, s, egress.RateLimit{PerSecond: 1, Burst: 1, AtOnce: 1})
		enterAll(t, all, 1, time.Second)
		for range 100 {
			if at, refused := enterAll(t, all, 1, time.Millisecond); refused != 1 {
				t.Fatalf("entered after %v", at)
			}
		}
		if at, _ := enterAll(t, all, 1, time.Minute); len(at) != 1 || at[0] < time.Second-3*trip ||
			at[0] > time.Second || s.asked != 2 {
			t.Errorf("entered after %v, the store was asked %d times", at, s.asked)
		}
		time.Sleep(time.Minute) // what is left over is no longer good then
		all = sharing(2, s, egress.RateLimit{PerSecond: 50, Burst: 1, AtOnce: 100})
		enterAll(t, all, 1, time.Minute)
		time.Sleep(time.Minute)
		if at, _ := enterAll(t, all, 5, time.Minute); at[9] < 9*20*time.Millisecond {
			t.Errorf("entered after %v", at)
		}
	})
}

// What closes an origin for one host closes it for all, and none of them has a burst afterwards.
func TestSharedClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &turns{}
		all := sharing(2, s, egress.RateLimit{PerSecond: 1, Burst: 4, AtOnce: 4, LongestStop: time.Hour})
		closes := func() {
			all[0].Answered("https://a.example",
				&http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"60"}}})
		}
		closes()
		if _, refused := enterAll(t, all[1:], 3, time.Minute-time.Second); refused != 3 {
			t.Errorf("%d refused", refused)
		}
		for range 2 {
			at, _ := enterAll(t, all, 3, time.Hour)
			for i, got := range at {
				if got < time.Minute || i > 0 && got-at[i-1] < time.Second-2*trip {
					t.Errorf("entered after %v", at)
				}
			}
			enterAll(t, all, 2, time.Hour)               // nothing is left of the burst
			time.AfterFunc(500*time.Millisecond, closes) // while claims wait for their turns
			all = all[:1]
		}
	})
}

// While the store does not answer nothing is sent: a claim waits for it as long as for a turn.
func TestSharedStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &turns{}
		s.fail(errors.New("away"))
		all := sharing(2, s, egress.RateLimit{PerSecond: 1, Burst: 8, AtOnce: 4})
		if at, refused := enterAll(t, all, 2, 10*time.Second); refused != 4 {
			t.Errorf("entered after %v, %d refused", at, refused)
		}
		time.AfterFunc(5*time.Second, func() { s.fail(nil) })
		if at, _ := enterAll(t, all, 2, 10*time.Second); len(at) != 4 || at[0] < 5*time.Second {
			t.Errorf("entered after %v", at)
		}
		s.fail(errors.New("away"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		began := time.Now()
		if _, err := all[0].Enter(ctx, "https://b.example", time.Hour); !errors.Is(err, context.Canceled) ||
			time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
