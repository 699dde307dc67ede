package engine

import (
	"cmp"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

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
// than patience or lull, a look proves nothing. Traffic proves nothing either (B61): it
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
