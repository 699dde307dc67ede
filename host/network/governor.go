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

// Pace is what a governor lets through.
type Pace struct {
	PerSecond   float64 // requests to an origin
	Burst       int
	AtOnce      int           // requests to an origin that have no answer yet
	LongestStop time.Duration // a Retry-After is clamped to it
}

// DefaultPace returns the defaults. See docs/spec/security.md.
func DefaultPace() Pace {
	return Pace{PerSecond: 4, Burst: 8, AtOnce: 4, LongestStop: 15 * time.Minute}
}

// Declared is the pace that a connector asked for, where it is slower.
func (p Pace) Declared(r abi.Rate) Pace {
	if r.PerSecond > 0 && r.PerSecond < p.PerSecond {
		p.PerSecond, p.Burst = r.PerSecond, 1
	}
	if r.Burst > 0 {
		p.Burst = min(p.Burst, int(r.Burst))
	}
	return p
}

// A Governor paces the requests of all connections of a host, origin by origin,
// for to a provider they are one client, and so are hosts that share a store. It is
// safe for concurrent use.
type Governor struct {
	pace   Pace
	shared store.Turns // nil: this host keeps the pace alone

	mu      sync.Mutex // guards origins and what they point to
	origins map[string]*origin
}

// An origin is one server as the governor knows it.
type origin struct {
	bucket   *rate.Limiter // of a host that keeps the pace alone
	allotted allotment     // of one that shares it
	slots    chan struct{}
	waiting  int       // claims: they keep it from being forgotten
	refused  int       // answers 429 and 503 in a row
	closed   time.Time // until then nothing is sent
	used     time.Time
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
		o = &origin{
			bucket: rate.NewLimiter(rate.Limit(g.pace.PerSecond), g.pace.Burst), allotted: allotment{asking: make(chan struct{}, 1)},
			slots: make(chan struct{}, g.pace.AtOnce),
		}
		g.origins[name] = o
	}
	o.used = now
	return o
}

// forget drops the origin that was used the longest time ago, of those that
// nobody waits for. One that is closed goes last.
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

// enter waits for the origin's turn, as long as w lets it, and returns what ends
// the claim. ERATE says that it would have to wait longer.
func (g *Governor) enter(ctx context.Context, name string, w *wait) (leave func(), err error) {
	now := time.Now()
	until := now.Add(w.longest)
	defer func() { w.longest = max(w.longest-time.Since(now), 0) }() // one patience for all hops
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

// A turn is when a request may be sent at the earliest; back returns it unused.
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

// await takes a slot once the turn has come and the origin is open; an answer
// may close it meanwhile.
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
			if g.shared != nil { // hosts do not all go on at that instant
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

// slot takes one of the places for requests without an answer.
func (o *origin) slot(ctx context.Context, name string, until time.Time) error {
	select {
	case o.slots <- struct{}{}: // without the price of a timer
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

// A wait is the patience of one request with governors. Waiting takes nothing of
// the time that the request has for the servers.
type wait struct {
	longest time.Duration // that is left
	late    *time.Timer   // ends the request; nil for none
	left    time.Duration
	since   time.Time // when the request began, or last went on
	waiting bool
	told    func(origin string, until time.Time) // until is zero when it is over
}

// begin says that nothing is sent to an origin until then.
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

// over says that the request goes on.
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

// answered learns from an answer: 429 and 503 close the origin for as long as
// it says, or for a second and twice as long each time.
func (g *Governor) answered(name string, r *http.Response) {
	if stop := g.refusal(name, r); stop > 0 && g.shared != nil {
		g.closeForAll(name, stop)
	}
}

// refusal is for how long an answer closes the origin; 0 for not at all.
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

// close keeps the origin closed until then. Turns from before it are none any more.
func (o *origin) close(until time.Time) {
	if until.After(o.closed) {
		o.closed, o.allotted.turns = until, nil
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
