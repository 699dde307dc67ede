package access

import (
	"sync"
	"time"
)

// A Limiter is a set of token buckets, one for each name. Its memory is bounded: once maxBuckets
// are in use, further names share one. It is safe for concurrent use.
type Limiter struct {
	limit int           // tokens per interval
	per   time.Duration // interval; a token comes back every per/limit
	burst float64
	scope string
	now   func() time.Time

	mu      sync.Mutex // guards all below
	buckets map[string]*bucket
	shared  bucket
	swept   time.Time // when forget last ran
}

type bucket struct {
	tokens float64
	at     time.Time // time to which tokens applies
}

// maxBuckets bounds one limiter; 16,384 names take about 2 MB.
const maxBuckets = 16 << 10

// NewLimiter allows each name limit requests per interval, and burst at once. scope is named in
// refusals: key, route or global.
func NewLimiter(scope string, limit int, per time.Duration, burst int, now func() time.Time) *Limiter {
	l := &Limiter{limit: limit, per: per, burst: float64(burst), scope: scope, now: now, buckets: map[string]*bucket{}}
	l.shared = bucket{tokens: l.burst, at: now()}
	return l
}

// Take takes one token of name, or returns a *RateError with the time until there is one. The name
// is retained, so it must not share memory with a request.
func (l *Limiter) Take(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.bucket(name, now)
	l.refill(b, now)
	if b.tokens >= 1 {
		b.tokens--
		return nil
	}
	wait := time.Duration((1 - b.tokens) * float64(l.per) / float64(l.limit))
	return &RateError{RetryAfter: max(wait, time.Millisecond), Scope: l.scope, Limit: l.limit, Per: l.per}
}

func (l *Limiter) refill(b *bucket, now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.tokens = min(l.burst, b.tokens+float64(d)*float64(l.limit)/float64(l.per))
		b.at = now
	}
}

func (l *Limiter) bucket(name string, now time.Time) *bucket {
	if b := l.buckets[name]; b != nil {
		return b
	}
	if len(l.buckets) >= maxBuckets && now.Sub(l.swept) >= time.Second {
		l.forget(now) // it visits all buckets, so a flood of names must not run it often
		l.swept = now
	}
	if len(l.buckets) >= maxBuckets {
		return &l.shared
	}
	b := &bucket{tokens: l.burst, at: now}
	l.buckets[name] = b
	return b
}

// forget drops buckets that are full again, since they equal new ones.
func (l *Limiter) forget(now time.Time) {
	for name, b := range l.buckets {
		if l.refill(b, now); b.tokens >= l.burst {
			delete(l.buckets, name)
		}
	}
}
