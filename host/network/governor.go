package network

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sluicehost/sluice/abi"
)

// Pace is what a governor lets through.
type Pace struct {
	PerSecond   float64 // requests to an origin
	Burst       int
	AtOnce      int           // requests to an origin that have no answer yet
	LongestStop time.Duration // a Retry-After is clamped to it
}

// DefaultPace returns the defaults of security.md section 17.
func DefaultPace() Pace {
	return Pace{PerSecond: 4, Burst: 8, AtOnce: 4, LongestStop: 15 * time.Minute}
}

// A Governor paces the requests of all connections of a host, origin by origin,
// for to a provider they are one client (S77). It is safe for concurrent use.
type Governor struct {
	pace Pace

	mu      sync.Mutex // guards origins and what they point to
	origins map[string]*origin
}

// An origin is one server as the governor knows it.
type origin struct {
	bucket  *rate.Limiter
	slots   chan struct{}
	refused int       // answers 429 and 503 in a row
	closed  time.Time // until then nothing is sent
	used    time.Time
}

// NewGovernor returns one that has seen no origin yet.
func NewGovernor(p Pace) *Governor {
	return &Governor{pace: p, origins: map[string]*origin{}}
}

// maxOrigins bounds what is remembered; the least recently used goes first.
const maxOrigins = 4096

func (g *Governor) of(name string, now time.Time) *origin {
	o := g.origins[name]
	if o == nil {
		if len(g.origins) >= maxOrigins {
			g.forget(now)
		}
		o = &origin{bucket: rate.NewLimiter(rate.Limit(g.pace.PerSecond), g.pace.Burst), slots: make(chan struct{}, g.pace.AtOnce)}
		g.origins[name] = o
	}
	o.used = now
	return o
}

// forget drops the origin that was used the longest time ago and is idle.
func (g *Governor) forget(now time.Time) {
	oldest, at := "", now
	for name, o := range g.origins {
		if len(o.slots) == 0 && !o.used.After(at) && now.After(o.closed) {
			oldest, at = name, o.used
		}
	}
	delete(g.origins, oldest)
}

// enter waits for the origin's turn, at most longest, and returns what ends the
// claim. ERATE says that it would have to wait longer.
func (g *Governor) enter(ctx context.Context, name string, longest time.Duration) (leave func(), err error) {
	now := time.Now()
	g.mu.Lock()
	o := g.of(name, now)
	reserved := o.bucket.ReserveN(now, 1)
	wait := max(reserved.DelayFrom(now), o.closed.Sub(now))
	g.mu.Unlock()
	if wait > longest {
		reserved.CancelAt(now)
		return nil, errRate(name, wait)
	}
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	turn := time.NewTimer(max(longest-time.Since(now), time.Millisecond))
	defer turn.Stop()
	select {
	case o.slots <- struct{}{}:
		return func() { <-o.slots }, nil
	case <-turn.C:
		return nil, errRate(name, time.Second)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func errRate(name string, wait time.Duration) *Error {
	e := failf(abi.ERATE, "rate_limited", "%s takes the next request in %s", name, wait.Round(time.Millisecond))
	e.RetryAfter = max(wait.Milliseconds(), 1)
	return e
}

// answered learns from an answer: 429 and 503 close the origin for as long as
// it says, or for a second and twice as long each time.
func (g *Governor) answered(name string, r *http.Response) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.of(name, now)
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		o.refused = 0
		return
	}
	stop, told := retryAfter(r.Header.Get("Retry-After"), now)
	if !told {
		stop = min(time.Second<<min(o.refused, 6), time.Minute)
	}
	o.refused++
	stop = min(max(stop, time.Second), g.pace.LongestStop)
	stop += time.Duration(rand.Int64N(int64(stop)/10 + 1))
	if until := now.Add(stop); until.After(o.closed) {
		o.closed = until
	}
}

// retryAfter reads seconds or a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(n, 1<<31)) * time.Second, true
	}
	at, err := http.ParseTime(text)
	return at.Sub(now), err == nil
}
