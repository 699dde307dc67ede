package engine

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// An outcome is how a routine ended.
type outcome int

const (
	holds      outcome = iota // stable_count fresh matches in a row
	mismatch                  // decided by a fresh read that did not match
	unreadable                // no fresh read could decide it
	cut                       // deadline or loss; the error says which
)

// A reading is one look at what is checked.
type reading struct {
	read  bool // the page answered in time
	age   time.Duration
	match bool
}

// A run is a finished run of the routine, as results report it.
type run struct {
	outcome  outcome
	err      error // of cut
	attempts int
	stable   int
	fresh    int
	stale    int            // reads that were too old to count
	age      *time.Duration // of the read that decided; nil: none arrived
}

// times is the routine's clock.
type times interface {
	now() time.Duration
	sleep(time.Duration) error // an error cuts the routine short
}

// uneven varies the pauses of a verb around the interval, so that looks do not run in step with
// periodic changes of the page. The sequence is fixed, so that equal pages give equal runs.
type uneven struct {
	*verb
	n int
}

func (u *uneven) sleep(d time.Duration) error {
	_, part := math.Modf(0.5 + float64(u.n)*math.Phi) // the first one equals the interval
	u.n++
	return u.verb.sleep(time.Duration(float64(d) * (0.8 + 0.4*part)))
}

// stabilise runs the one routine by which every check decides an outcome. take looks once and is
// called again after a reading that is no evidence. The routine is deterministic: equal readings at
// equal times give equal runs. An error of take or t.sleep cuts it short.
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
	isFresh bool // of the last read
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

// window reads until the window is over; the first read is immediate.
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

// owed makes the reads that slow answers left out, and one more within max_recheck.
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

// look takes one reading. A reading that did not arrive, or is too old, is no evidence and only
// resets the count.
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

const (
	// patience is how long after a dispatch to wait for the answer to a script's request that may
	// change something.
	patience = 4 * time.Second
	// lull is the same for requests that only ask, and for work that the page shows to be in
	// progress.
	lull = 2 * time.Second
	// glimpse is the interval for checking what the host knows without asking the page.
	glimpse = 20 * time.Millisecond
)

// latest returns when a check has to begin to finish before the deadline.
func (v *verb) latest(s Settings) time.Duration {
	return v.started + cmp.Or(v.req.Deadline, 10*time.Second) - 2*s.Window
}

// arrive waits while the tab leaves for a document that has not arrived. Until then the browser
// answers nothing about either document.
func (v *verb) arrive(s Settings) error {
	return v.during(func() bool { return v.now() < v.latest(s) && v.tab.Facts().Leaving })
}

func (v *verb) during(it func() bool) error {
	for it() {
		if err := v.gate(); err != nil {
			return err
		}
		if err := v.sleep(glimpse); err != nil {
			return err
		}
	}
	return nil
}

// unanswered reports whether scripts wait for answers from their server since the mark, so that the
// page may be showing something in advance. Until they are answered, for at most patience or lull,
// a look proves nothing. Traffic itself proves nothing either; it only postpones the proof.
func (v *verb) unanswered(since page.Mark, sent time.Duration, s Settings) bool {
	h := v.tab.Happened(since)
	return h.Writing > 0 && v.now() < v.until(sent, patience, s) || h.Asking > 0 && v.now() < v.until(sent, lull, s)
}

// working reports whether the elements of a verdict are in the middle of something or, if it held
// in the look before, still change. It counts for at most lull.
func (v *verb) working(on *Verdict, held bool, sent time.Duration, s Settings) bool {
	return on != nil && (on.Working() || held && on.Changed()) && v.now() < v.until(sent, lull, s)
}

// until returns until when, after a dispatch, a proof may be postponed and still be made before the
// deadline.
func (v *verb) until(sent, most time.Duration, s Settings) time.Duration {
	return max(min(sent+most, v.latest(s)), sent+s.Window-time.Duration(s.Count+1)*s.Interval)
}

// A wait says why a proof is postponed.
type wait struct {
	unanswered func() bool // checked without asking the page
	working    func() bool // as of the latest look
}

// decided runs a check. It repeats the check once unanswered requests are answered, while the page
// works, or if the page moved to another document meanwhile.
func (v *verb) decided(s Settings, w wait, check func() run) run {
	for {
		document := v.tab.Facts().Document
		r := check()
		var err error
		switch f := v.tab.Facts(); {
		case r.outcome == mismatch && w.unanswered():
			err = v.during(w.unanswered)
		case r.outcome == mismatch && w.working():
		case (r.outcome == mismatch || r.outcome == unreadable) && (f.Leaving || f.Document != document) &&
			v.now() < v.latest(s):
			err = v.arrive(s)
		default:
			return r
		}
		if err != nil {
			return run{outcome: cut, err: err}
		}
	}
}

const (
	// calm is how long a page must be unchanged before an action whose proof is any change. It
	// exceeds a second, so that a clock on the page is noticed.
	calm = 1100 * time.Millisecond
	// restless is how long to wait for calm.
	restless = 3 * time.Second
)

// A calmness records since when a document has been unchanged, by kind of change.
type calmness struct {
	document string
	digests  page.Digests
	since    map[string]time.Duration
}

// changes records what differs from the look before.
func (v *verb) changes(now page.Digests) {
	c := v.calm[v.tab.ID()]
	changed := ChangeKinds
	if document := v.tab.Facts().Document; c == nil || c.document != document {
		c = &calmness{document: document, since: map[string]time.Duration{}}
		v.calm[v.tab.ID()] = c
	} else {
		changed = Changes(c.digests, now)
	}
	for _, kind := range changed {
		c.since[kind] = v.now()
	}
	c.digests = now
}

// uncalm returns the kinds in which the page changed recently.
func (v *verb) uncalm() (kinds []string) {
	c := v.calm[v.tab.ID()]
	for _, kind := range ChangeKinds {
		if c == nil || v.now()-c.since[kind] < calm {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// calmed waits, once, for the page to be calm before an action that any change would prove, and
// reports whether that took time. Kinds that keep changing prove nothing.
func (p *proof) calmed() (waited bool, f *fault) {
	if p.calmly || p.dispatches > 0 || !ByChange(p.delta) {
		return false, nil
	}
	p.calmly = true
	until := min(p.now()+restless, p.latest(p.set))
	for len(p.uncalm()) > 0 && p.now() < until {
		waited = true
		if err := p.sleep(2 * p.set.Interval); err != nil {
			return true, rawFault(err, StageResolve)
		}
		l, err := p.lookFor(p.want([]*Target{p.req.Target}, []*Predicate{p.delta}, p.refs()...))
		if err != nil {
			return true, rawFault(err, StageResolve)
		}
		if l != nil {
			p.seen(l)
		}
	}
	if p.restless = p.uncalm(); len(p.restless) > 0 {
		p.details["changes_by_itself"] = slices.Clone(p.restless)
	}
	return waited, nil
}
