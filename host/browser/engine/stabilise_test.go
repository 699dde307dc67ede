package engine

import (
	"errors"
	"testing"
	"time"
)

// A script is a sequence of reads in time that passes only by sleeping and reading.
// Its end repeats the last read.
type script struct {
	at    time.Duration
	reads []scripted
	n     int
	cutAt int // the read that ends with an error; 0 for none
}

// One read of a script: how long it took, and what it said.
type scripted struct {
	took  time.Duration
	lost  bool // no answer
	stale bool
	match bool
}

func (s *script) now() time.Duration { return s.at }

func (s *script) sleep(d time.Duration) error {
	s.at += d
	return nil
}

func (s *script) take() (reading, error) {
	r := s.reads[min(s.n, len(s.reads)-1)]
	s.n++
	if s.n == s.cutAt {
		return reading{}, errDeadline
	}
	s.at += r.took
	if r.lost {
		return reading{}, nil
	}
	got := reading{read: true, match: r.match}
	if r.stale {
		got.age = time.Hour
	}
	return got, nil
}

// model is the routine once more, written down as it stands in docs/spec/browser.md, "Stabilisation".
func model(set Settings, s *script) (out outcome, attempts int) {
	stable, fresh := 0, 0
	var lastFresh *time.Duration
	lastWasFresh := false
	take := func() {
		r, _ := s.take()
		attempts++
		if !r.read || r.age > set.Stale {
			stable, lastWasFresh = 0, false
			return
		}
		fresh++
		at := s.at
		lastFresh, lastWasFresh = &at, true
		if r.match {
			stable++
		} else {
			stable = 0
		}
	}
	t0 := s.at
	for {
		take()
		if stable >= set.Count {
			return holds, attempts
		}
		s.at += set.Interval
		if s.at-t0 > set.Window {
			break
		}
	}
	owed := set.Count - attempts
	if attempts < set.MaxRecheck && owed < 1 {
		owed = 1
	}
	for ; owed > 0; owed-- {
		take()
		if stable >= set.Count {
			return holds, attempts
		}
		if owed > 1 {
			s.at += set.Interval
		}
	}
	if lastFresh == nil || s.at-*lastFresh > set.Stale {
		take()
		if stable >= set.Count {
			return holds, attempts
		}
	}
	if fresh == 0 || !lastWasFresh {
		return unreadable, attempts
	}
	return mismatch, attempts
}

// TestRoutineIsTheModel compares every sequence of up to six reads of seven sorts,
// under several settings, with the model.
func TestRoutineIsTheModel(t *testing.T) {
	sorts := []scripted{
		{match: true, took: 5 * time.Millisecond}, {took: 5 * time.Millisecond},
		{stale: true, match: true, took: 5 * time.Millisecond}, {lost: true, took: time.Second},
		{match: true, took: 450 * time.Millisecond}, {took: 450 * time.Millisecond},
		{match: true, took: 700 * time.Millisecond},
	}
	settings := []Settings{
		Settings{Window: 500 * time.Millisecond}.Clamped(true),
		Settings{Window: 500 * time.Millisecond, Count: 1}.Clamped(false),
		Settings{Window: 500 * time.Millisecond, Count: 5, MaxRecheck: 10, Interval: 200 * time.Millisecond}.Clamped(false),
		Settings{Window: 500 * time.Millisecond, Count: 3, MaxRecheck: 1, Stale: 300 * time.Millisecond}.Clamped(false),
	}
	compared := 0
	var all func(prefix []scripted, left int)
	all = func(prefix []scripted, left int) {
		if len(prefix) > 0 {
			for i, set := range settings {
				a, b := &script{reads: prefix}, &script{reads: prefix}
				got := stabilise(set, a, a.take)
				want, attempts := model(set, b)
				compared++
				if got.outcome != want || got.attempts != attempts || a.at != b.at {
					t.Fatalf("settings %d, reads %+v: got %v after %d at %v, want %v after %d at %v", i, prefix, got.outcome,
						got.attempts, a.at, want, attempts, b.at)
				}
				lawful(t, set, got, a)
			}
		}
		if left == 0 {
			return
		}
		for _, s := range sorts {
			all(append(prefix[:len(prefix):len(prefix)], s), left-1)
		}
	}
	all(nil, 5)
	t.Logf("%d runs compared", compared)
}

// lawful checks what holds of every run.
func lawful(t *testing.T, set Settings, r run, s *script) {
	t.Helper()
	switch {
	case r.outcome == holds && r.stable < set.Count:
		t.Fatalf("success with %d matches", r.stable)
	case r.outcome != holds && s.at < set.Window:
		t.Fatalf("failed after %v", s.at)
	case r.outcome != holds && r.attempts < set.Count:
		t.Fatalf("failed after %d reads", r.attempts)
	case r.outcome == mismatch && r.fresh == 0:
		t.Fatal("a mismatch without evidence")
	}
}

// TestOscillationFails: true, false, true, false … never holds, and fails only at the
// end of the window.
func TestOscillationFails(t *testing.T) {
	var reads []scripted
	for i := range 40 {
		reads = append(reads, scripted{match: i%2 == 0, took: time.Millisecond})
	}
	s := &script{reads: reads}
	if r := stabilise(DefaultSettings, s, s.take); r.outcome != mismatch || s.at <= time.Second {
		t.Errorf("got %v at %v", r.outcome, s.at)
	}
}

func TestCutIsNoMismatch(t *testing.T) {
	for n := 1; n <= 5; n++ {
		s := &script{reads: []scripted{{took: time.Millisecond}}, cutAt: n}
		if r := stabilise(DefaultSettings, s, s.take); r.outcome != cut ||
			!errors.Is(r.err, errDeadline) || r.attempts != n-1 {
			t.Errorf("%+v", r)
		}
	}
}
