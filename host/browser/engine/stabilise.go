package engine

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// The ends of a routine.
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

// A run of the routine, as results report it.
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

// stabilise is the one routine for every check that decides an outcome. take
// looks once, and is asked again after every answer that is no evidence. It is
// deterministic: equal readings at equal times make equal runs. An error of
// take, or of t.sleep, cuts it short.
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
// it only resets the count.
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
	// patience is how long after a dispatch the answer to what a script asked its
	// server to change is awaited.
	patience = 4 * time.Second
	// lull is the same for what a script asked its server for, and for what the page
	// shows to be in the middle of something.
	lull = 2 * time.Second
	// glimpse is how often the host looks at what it knows without the page.
	glimpse = 20 * time.Millisecond
)

// latest is by when a check has to begin, to be decided before the deadline.
func (v *verb) latest(s Settings) time.Duration {
	return v.started + cmp.Or(v.req.Deadline, 10*time.Second) - 2*s.Window
}

// arrive waits while the page is being left for a document that its server has not
// sent yet: until then the browser answers nothing about either.
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

// unanswered reports a page that may show something in advance of an answer: what a
// script asked its server since the mark is not answered yet. Until it is, and no longer
// than patience or lull, a look proves nothing. Traffic proves nothing either: it
// only puts the proof off.
func (v *verb) unanswered(since page.Mark, sent time.Duration, s Settings) bool {
	h := v.tab.Happened(since)
	return h.Writing > 0 && v.now() < v.until(sent, patience, s) || h.Asking > 0 && v.now() < v.until(sent, lull, s)
}

// working reports that what a verdict is about is in the middle of something, or, where
// it held in the look before, still changes. It is believed for a lull.
func (v *verb) working(on *Verdict, held bool, sent time.Duration, s Settings) bool {
	return on != nil && (on.Working() || held && on.Changed()) && v.now() < v.until(sent, lull, s)
}

// until is how long after a dispatch a proof may be put off: there is time left for it
// before the deadline.
func (v *verb) until(sent, most time.Duration, s Settings) time.Duration {
	return max(min(sent+most, v.latest(s)), sent+s.Window-time.Duration(s.Count+1)*s.Interval)
}

// A wait is what puts a proof off.
type wait struct {
	unanswered func() bool // known without the page
	working    func() bool // as the latest look showed
}

// decided runs a check, and runs it again once what was unanswered is answered, while
// the page works, or where it went on to another document meanwhile.
func (v *verb) decided(s Settings, w wait, check func() run) run {
	for {
		document := v.tab.Facts().Document
		r := check()
		var err error
		switch f := v.tab.Facts(); {
		case r.outcome == mismatch && w.unanswered():
			err = v.during(w.unanswered)
		case r.outcome == mismatch && w.working():
		case (r.outcome == mismatch || r.outcome == unreadable) && (f.Leaving || f.Document != document) && v.now() < v.latest(s):
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
	// calm is how long a page has to be as it is before an action, for any change of it to
	// be the action's: a clock with seconds changes within that time.
	calm = 1100 * time.Millisecond
	// restless is how long it is waited for.
	restless = 3 * time.Second
)

// A calmness is since when a document says the same, by the kinds of changes.
type calmness struct {
	document string
	digests  page.Digests
	since    map[string]time.Duration
}

// changes notes what is different from the look before.
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

// uncalm are the kinds in which the page changed a short time ago.
func (v *verb) uncalm() (kinds []string) {
	c := v.calm[v.tab.ID()]
	for _, kind := range ChangeKinds {
		if c == nil || v.now()-c.since[kind] < calm {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// calmed waits until the page stays as it is, before an action that any change would
// prove; it is done once, and says whether it took time. In what goes on changing by itself
// a change proves nothing.
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
