package engine

import (
	"errors"
	"math"
	"time"
)

// The ends of a routine (B67).
type outcome int

const (
	holds      outcome = iota // stable_count fresh matches in a row
	mismatch                  // a fresh read, false, decided it
	unreadable                // nothing fresh could decide it
	cut                       // deadline or loss: the error says which
)

// A reading is one look at what a check is about.
type reading struct {
	read  bool // the page answered in time
	age   time.Duration
	match bool
}

// A run of the routine, as B78 reports it.
type run struct {
	outcome  outcome
	err      error // of cut
	attempts int
	stable   int
	fresh    int
	stale    int            // reads that were too old to count
	age      *time.Duration // of the read that decided; nil: none arrived
}

// times is what a routine knows of time.
type times interface {
	now() time.Duration
	sleep(time.Duration) error // the error cuts the routine short
}

// uneven is the time of a verb whose looks are not made in step: what a page changes
// at a steady pace is not seen in the same place each time. The pauses are a fixed
// sequence around the interval, so that equal pages make equal runs.
type uneven struct {
	*verb
	n int
}

func (u *uneven) sleep(d time.Duration) error {
	_, part := math.Modf(0.5 + float64(u.n)*math.Phi) // the first one is the interval
	u.n++
	return u.verb.sleep(time.Duration(float64(d) * (0.8 + 0.4*part)))
}

// stabilise is the one routine for every check that decides an outcome (B67). take
// looks once, and is asked again after every answer that is no evidence. It is
// deterministic: equal readings at equal times make equal runs (B70). An error of
// take, or of t.sleep, cuts it short (B68).
func stabilise(s Settings, t times, take func() (reading, error)) run {
	r := routine{set: s, time: t, take: take}
	return r.run()
}

type routine struct {
	set     Settings
	time    times
	take    func() (reading, error)
	got     run
	freshAt *time.Duration
	isFresh bool // the last read was
}

// errStable ends a routine that has seen enough.
var errStable = errors.New("stable")

func (r *routine) run() run {
	err := r.window()
	if err == nil {
		err = r.owed()
	}
	if err == nil && (r.freshAt == nil || r.time.now()-*r.freshAt > r.set.Stale) {
		err = r.look()
	}
	switch {
	case errors.Is(err, errStable):
		r.got.outcome = holds
	case err != nil:
		r.got.outcome, r.got.err = cut, err
	case r.got.fresh == 0 || !r.isFresh:
		r.got.outcome = unreadable
	default:
		r.got.outcome = mismatch
	}
	return r.got
}

// window reads until it is over; the first read is at once.
func (r *routine) window() error {
	from := r.time.now()
	for {
		if err := r.look(); err != nil {
			return err
		}
		if err := r.time.sleep(r.set.Interval); err != nil {
			return err
		}
		if r.time.now()-from > r.set.Window {
			return nil
		}
	}
}

// owed reads what slow answers left of the count, and once more within max_recheck.
func (r *routine) owed() error {
	owed := r.set.Count - r.got.attempts
	if r.got.attempts < r.set.MaxRecheck {
		owed = max(owed, 1)
	}
	for ; owed > 0; owed-- {
		if err := r.look(); err != nil {
			return err
		}
		if owed == 1 {
			break
		}
		if err := r.time.sleep(r.set.Interval); err != nil {
			return err
		}
	}
	return nil
}

// look takes one reading. What did not arrive, or arrived too old, is no evidence:
// it only resets the count (B73).
func (r *routine) look() error {
	got, err := r.take()
	if err != nil {
		return err
	}
	r.got.attempts++
	r.isFresh = got.read && got.age <= r.set.Stale
	if got.read {
		r.got.age = &got.age
	}
	if !r.isFresh {
		r.got.stable = 0
		if got.read {
			r.got.stale++
		}
		return nil
	}
	now := r.time.now()
	r.freshAt = &now
	r.got.fresh++
	if !got.match {
		r.got.stable = 0
		return nil
	}
	if r.got.stable++; r.got.stable >= r.set.Count {
		return errStable
	}
	return nil
}
