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
	"github.com/sluicehost/sluice/store"
)

// Pace is the rate that a Governor permits.
type Pace struct {
	PerSecond   float64 // requests to an origin
	Burst       int
	AtOnce      int           // requests to an origin without an answer
	LongestStop time.Duration // upper bound of Retry-After
}

// DefaultPace returns the defaults. See docs/spec/security.md.
func DefaultPace() Pace {
	return Pace{PerSecond: 4, Burst: 8, AtOnce: 4, LongestStop: 15 * time.Minute}
}

// Declared returns the pace reduced to the rate that a connector declares.
func (p Pace) Declared(r abi.Rate) Pace {
	if r.PerSecond > 0 && r.PerSecond < p.PerSecond {
		p.PerSecond, p.Burst = r.PerSecond, 1
	}
	if r.Burst > 0 {
		p.Burst = min(p.Burst, int(r.Burst))
	}
	return p
}

// A Governor limits the rate of requests to each origin, across all connections of a host
// and all hosts that share a store, because to a provider they are one client. It is safe
// for concurrent use.
type Governor struct {
	pace   Pace
	shared store.Turns // nil if this host limits the rate alone

	mu      sync.Mutex // guards origins and what they point to
	origins map[string]*origin
}

// An origin is the state of one server.
type origin struct {
	bucket   *rate.Limiter // if this host limits the rate alone
	allotted allotment     // if hosts share the limit
	slots    chan struct{}
	waiting  int       // requests that use it, which keep it from being forgotten
	refused  int       // consecutive answers 429 and 503
	closed   time.Time // nothing is sent before
	used     time.Time
}

func NewGovernor(p Pace) *Governor {
	return &Governor{pace: p, origins: map[string]*origin{}}
}

// maxOrigins bounds the number of origins; the least recently used are forgotten.
const maxOrigins = 4096

func (g *Governor) of(name string, now time.Time) *origin {
	o := g.origins[name]
	if o == nil {
		if len(g.origins) >= maxOrigins {
			g.forget(now)
		}
		o = &origin{
			bucket: rate.NewLimiter(rate.Limit(g.pace.PerSecond), g.pace.Burst), allotted: allotment{asking: make(chan struct{}, 1)},
			slots: make(chan struct{}, g.pace.AtOnce),
		}
		g.origins[name] = o
	}
	o.used = now
	return o
}

// forget drops the least recently used origin without waiting requests, preferably one that
// is not closed.
func (g *Governor) forget(now time.Time) {
	var oldest string
	var drop *origin
	for name, o := range g.origins {
		if o.waiting > 0 {
			continue
		}
		shut, dropShut := o.closed.After(now), drop != nil && drop.closed.After(now)
		if drop == nil || dropShut && !shut || dropShut == shut && o.used.Before(drop.used) {
			oldest, drop = name, o
		}
	}
	delete(g.origins, oldest)
}

// enter waits until a request may be sent to the origin, within w, and returns the function
// that ends its claim. ERATE says that it would have to wait longer.
func (g *Governor) enter(ctx context.Context, name string, w *wait) (leave func(), err error) {
	now := time.Now()
	until := now.Add(w.longest)
	defer func() { w.longest = max(w.longest-time.Since(now), 0) }() // the wait is shared by all hops
	defer w.over()
	g.mu.Lock()
	o := g.of(name, now)
	o.waiting++
	g.mu.Unlock()
	if err = g.await(ctx, o, name, until, w); err != nil {
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

// A turn is permission to send a request from at on; back returns it unused.
type turn struct {
	at   time.Time
	back func()
}

// turn takes the next turn with an origin.
func (g *Governor) turn(ctx context.Context, o *origin, name string, until time.Time, w *wait) (turn, error) {
	if g.shared != nil {
		return g.sharedTurn(ctx, o, name, until, w)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	r := o.bucket.ReserveN(now, 1)
	return turn{now.Add(r.DelayFrom(now)), func() { r.CancelAt(time.Now()) }}, nil
}

// await takes a slot when the turn has come and the origin is open. An answer to another
// request may close the origin meanwhile.
func (g *Governor) await(ctx context.Context, o *origin, name string, until time.Time, w *wait) (err error) {
	t, err := g.turn(ctx, o, name, until, w)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.back()
		}
	}()
	for {
		g.mu.Lock()
		closed := o.closed
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
		shut := o.closed.After(time.Now())
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
	longest time.Duration // remaining wait
	late    *time.Timer   // ends the request at its timeout; may be nil
	left    time.Duration
	since   time.Time // when the request began or last continued
	waiting bool
	told    func(origin string, until time.Time) // until is zero when the wait is over
}

// begin records that nothing is sent to an origin until then.
func (w *wait) begin(origin string, until time.Time) {
	if w.waiting = true; w.late != nil && w.late.Stop() {
		w.left -= time.Since(w.since)
	}
	w.tell(origin, until)
}

func (w *wait) tell(origin string, until time.Time) {
	if w.told != nil {
		w.told(origin, until)
	}
}

// over records that the request continues.
func (w *wait) over() {
	if !w.waiting {
		return
	}
	if w.waiting, w.since = false, time.Now(); w.late != nil {
		w.late.Reset(max(w.left, time.Millisecond))
	}
	w.tell("", time.Time{})
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
	e := failf(abi.ERATE, "rate_limited", "%s takes the next request in %s", name, wait.Round(time.Millisecond))
	e.RetryAfter = max(wait.Milliseconds(), 1)
	return e
}

// answered updates the origin after an answer: 429 and 503 close it for as long as they
// say, or for a second, doubling each time.
func (g *Governor) answered(name string, r *http.Response) {
	if stop := g.refusal(name, r); stop > 0 && g.shared != nil {
		g.closeForAll(name, stop)
	}
}

// refusal returns for how long an answer closes the origin, 0 for not at all.
func (g *Governor) refusal(name string, r *http.Response) time.Duration {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.of(name, now)
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		o.refused = 0
		return 0
	}
	stop, told := retryAfter(r.Header.Get("Retry-After"), now)
	if !told {
		stop = min(time.Second<<min(o.refused, 6), time.Minute)
	}
	o.refused++
	stop = min(max(stop, time.Second), g.pace.LongestStop)
	stop += time.Duration(rand.Int64N(int64(stop)/10 + 1)) // #nosec G404 -- jitter, not a secret
	o.close(now.Add(stop))
	return stop
}

// close closes the origin until then, and drops its earlier turns.
func (o *origin) close(until time.Time) {
	if until.After(o.closed) {
		o.closed, o.allotted.turns = until, nil
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
