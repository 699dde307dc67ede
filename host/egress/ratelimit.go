package egress

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// RateLimit is the rate that a RateLimiter permits.
type RateLimit struct {
	PerSecond   float64 // requests to an origin
	Burst       int
	AtOnce      int           // requests to an origin without an answer
	LongestStop time.Duration // upper bound of Retry-After
}

// DefaultRateLimit returns the defaults. See docs/spec/security.md.
func DefaultRateLimit() RateLimit {
	return RateLimit{PerSecond: 4, Burst: 8, AtOnce: 4, LongestStop: 15 * time.Minute}
}

// Declared returns the pace reduced to the rate that a connector declares.
func (p RateLimit) Declared(r abi.Rate) RateLimit {
	if r.PerSecond > 0 && r.PerSecond < p.PerSecond {
		p.PerSecond, p.Burst = r.PerSecond, 1
	}
	if r.Burst > 0 {
		p.Burst = min(p.Burst, int(r.Burst))
	}
	return p
}

// A RateLimiter limits the rate of requests to each origin, across all connections of a host
// and all hosts that share a store, because to a provider they are one client. It is safe
// for concurrent use.
type RateLimiter struct {
	limit  RateLimit
	shared store.SharedRateLimiter // nil if this host limits the rate alone

	mu      sync.Mutex // guards origins and what they point to
	origins map[string]*origin
}

// An origin is the state of one server.
type origin struct {
	bucket      *rate.Limiter // if this host limits the rate alone
	allotment   allotment     // if hosts share the limit
	slots       chan struct{}
	waiting     int       // requests that use it, which keep it from being forgotten
	refusals    int       // consecutive answers 429 and 503
	closedUntil time.Time // nothing is sent before
	lastUsed    time.Time
}

func NewRateLimiter(p RateLimit) *RateLimiter {
	return &RateLimiter{limit: p, origins: map[string]*origin{}}
}

// maxOrigins bounds the number of origins; the least recently used are forgotten.
const maxOrigins = 4096

func (g *RateLimiter) origin(name string, now time.Time) *origin {
	o := g.origins[name]
	if o == nil {
		if len(g.origins) >= maxOrigins {
			g.forget(now)
		}
		o = &origin{
			bucket:    rate.NewLimiter(rate.Limit(g.limit.PerSecond), g.limit.Burst),
			allotment: allotment{refilling: make(chan struct{}, 1)}, slots: make(chan struct{}, g.limit.AtOnce),
		}
		g.origins[name] = o
	}
	o.lastUsed = now
	return o
}

// forget drops the least recently used origin without waiting requests, preferably one that
// is not closed.
func (g *RateLimiter) forget(now time.Time) {
	var oldest string
	var drop *origin
	for name, o := range g.origins {
		if o.waiting > 0 {
			continue
		}
		shut, dropShut := o.closedUntil.After(now), drop != nil && drop.closedUntil.After(now)
		if drop == nil || dropShut && !shut || dropShut == shut && o.lastUsed.Before(drop.lastUsed) {
			oldest, drop = name, o
		}
	}
	delete(g.origins, oldest)
}

// acquire waits until a request may be sent to the origin, within w, and returns the function
// that ends its claim. ERATE says that it would have to wait longer.
func (g *RateLimiter) acquire(ctx context.Context, name string, w *wait) (release func(), err error) {
	now := time.Now()
	until := now.Add(w.remaining)
	defer func() { w.remaining = max(w.remaining-time.Since(now), 0) }() // the wait is shared by all hops
	defer w.end()
	g.mu.Lock()
	o := g.origin(name, now)
	o.waiting++
	g.mu.Unlock()
	if err = g.acquireSlot(ctx, o, name, until, w); err != nil {
		g.mu.Lock()
		o.waiting--
		g.mu.Unlock()
		return nil, err
	}
	return func() {
		<-o.slots
		g.mu.Lock()
		o.waiting--
		g.mu.Unlock()
	}, nil
}

// A turn is permission to send a request from at on; release returns it unused.
type turn struct {
	at      time.Time
	release func()
}

// turn takes the next turn with an origin.
func (g *RateLimiter) turn(ctx context.Context, o *origin, name string, until time.Time, w *wait) (turn, error) {
	if g.shared != nil {
		return g.sharedTurn(ctx, o, name, until, w)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	r := o.bucket.ReserveN(now, 1)
	return turn{now.Add(r.DelayFrom(now)), func() { r.CancelAt(time.Now()) }}, nil
}

// acquireSlot takes a slot when the turn has come and the origin is open. An answer to another
// request may close the origin meanwhile.
func (g *RateLimiter) acquireSlot(ctx context.Context, o *origin, name string, until time.Time, w *wait) (err error) {
	t, err := g.turn(ctx, o, name, until, w)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.release()
		}
	}()
	for {
		g.mu.Lock()
		closed := o.closedUntil
		g.mu.Unlock()
		if closed.After(t.at) {
			if g.shared != nil { // so that hosts do not all continue at the same instant
				next, err := g.turn(ctx, o, name, until, w)
				if err != nil {
					return err
				}
				t = next
			}
			if closed.After(t.at) {
				t.at = closed
			}
		}
		if t.at.After(until) {
			return errRate(name, time.Until(t.at))
		}
		if d := time.Until(t.at); d > 0 {
			w.begin(name, t.at)
			if err := sleep(ctx, d); err != nil {
				return err
			}
		}
		if err := o.slot(ctx, name, until); err != nil {
			return err
		}
		g.mu.Lock()
		shut := o.closedUntil.After(time.Now())
		g.mu.Unlock()
		if !shut {
			return nil
		}
		<-o.slots
	}
}

// slot takes one of the slots for requests without an answer.
func (o *origin) slot(ctx context.Context, name string, until time.Time) error {
	select {
	case o.slots <- struct{}{}: // saves a timer
		return nil
	default:
	}
	timer := time.NewTimer(max(time.Until(until), time.Millisecond))
	defer timer.Stop()
	select {
	case o.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return errRate(name, time.Second)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A wait limits how long one request may wait for rate limiters. Waiting does not count
// against the request's timeout.
type wait struct {
	remaining   time.Duration // remaining wait
	timeout     *time.Timer   // ends the request at its timeout; may be nil
	timeoutLeft time.Duration
	resumed     time.Time // when the request began or last continued
	waiting     bool
	onWait      func(origin string, until time.Time) // until is zero when the wait is over
}

// begin records that nothing is sent to an origin until then.
func (w *wait) begin(origin string, until time.Time) {
	if w.waiting = true; w.timeout != nil && w.timeout.Stop() {
		w.timeoutLeft -= time.Since(w.resumed)
	}
	w.notify(origin, until)
}

func (w *wait) notify(origin string, until time.Time) {
	if w.onWait != nil {
		w.onWait(origin, until)
	}
}

// end records that the request continues.
func (w *wait) end() {
	if !w.waiting {
		return
	}
	if w.waiting, w.resumed = false, time.Now(); w.timeout != nil {
		w.timeout.Reset(max(w.timeoutLeft, time.Millisecond))
	}
	w.notify("", time.Time{})
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func errRate(name string, wait time.Duration) *Error {
	e := Errorf(abi.ERATE, "rate_limited", "%s takes the next request in %s", name, wait.Round(time.Millisecond))
	e.RetryAfter = max(wait.Milliseconds(), 1)
	return e
}

// observe updates the origin after an answer: 429 and 503 close it for as long as they
// say, or for a second, doubling each time.
func (g *RateLimiter) observe(name string, r *http.Response) {
	if stop := g.retryDelay(name, r); stop > 0 && g.shared != nil {
		g.closeForAll(name, stop)
	}
}

// retryDelay returns for how long an answer closes the origin, 0 for not at all.
func (g *RateLimiter) retryDelay(name string, r *http.Response) time.Duration {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.origin(name, now)
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		o.refusals = 0
		return 0
	}
	stop, told := retryAfter(r.Header.Get("Retry-After"), now)
	if !told {
		stop = min(time.Second<<min(o.refusals, 6), time.Minute)
	}
	o.refusals++
	stop = min(max(stop, time.Second), g.limit.LongestStop)
	stop += time.Duration(rand.Int64N(int64(stop)/10 + 1)) // #nosec G404 -- jitter, not a secret
	o.close(now.Add(stop))
	return stop
}

// close closes the origin until then, and drops its earlier turns.
func (o *origin) close(until time.Time) {
	if until.After(o.closedUntil) {
		o.closedUntil, o.allotment.turns = until, nil
	}
}

// retryAfter parses a number of seconds or a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(n, 1<<31)) * time.Second, true
	}
	at, err := http.ParseTime(text)
	return at.Sub(now), err == nil
}
