package fleet

import (
	"context"
	"time"
)

// Bounds of the interval between probes (B200).
const (
	DefaultInterval = 2000 * time.Millisecond
	minInterval     = 5 * time.Millisecond
	maxInterval     = 10_000 * time.Millisecond
	browserTime     = 1000 * time.Millisecond // B199
)

// Interval is d within the bounds of B200; 0 is the default.
func Interval(d time.Duration) time.Duration {
	if d == 0 {
		return DefaultInterval
	}
	return min(max(d, minInterval), maxInterval)
}

// Watch probes the surface while an interaction is watched, until ctx ends or the
// surface is lost (B201, B202). It probes at once, then every interval. told hears
// the first result and each change; it returns at once.
//
// Until a probe has passed, a page that is silent is unavailable and nothing more:
// only the browser's own silence is a loss then. After that its silence is one too,
// once it is confirmed.
func (s *Surface) Watch(ctx context.Context, every time.Duration, told func(Probe)) {
	every = Interval(every)
	armed := false
	var last *Probe
	for {
		p := s.probe(ctx)
		if ctx.Err() != nil || isClosed(s.over) || isClosed(s.gone) {
			return
		}
		if !p.OK && (armed || p.Code != CodeTimeout || !s.browserAnswers(ctx)) {
			if ctx.Err() == nil {
				s.Lose(p)
			}
			return
		}
		if last == nil || *last != p {
			told(p)
			if !p.OK {
				s.event(Event{Type: EventProbeFailed, Code: p.Code, Probe: &p})
			}
		}
		last, armed = &p, armed || p.OK
		select {
		case <-time.After(every):
		case <-ctx.Done():
		case <-s.over:
		}
	}
}

func (s *Surface) probe(ctx context.Context) Probe {
	if p := s.facts(); !p.OK {
		return p
	}
	return s.m.o.Check(ctx, s.process.leased)
}

// browserAnswers asks the browser alone, twice if need be.
func (s *Surface) browserAnswers(ctx context.Context) bool {
	for range 2 {
		limit, stop := context.WithTimeout(ctx, browserTime)
		err := s.process.leased.Ping(limit)
		late := limit.Err() != nil
		stop()
		if err == nil || !late {
			return err == nil
		}
	}
	return false
}

// Probe asks once whether the surface is there and answers (B202, R135). It changes
// nothing but what Fault says of a browser that is known to be gone.
func (s *Surface) Probe(ctx context.Context) Probe {
	if fault := s.Fault(); fault != nil {
		return *fault
	}
	if isClosed(s.over) {
		return Probe{Code: CodeNotReady, Detail: "the browser is being closed"}
	}
	return s.probe(ctx)
}
