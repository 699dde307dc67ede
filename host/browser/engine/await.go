package engine

import (
	"cmp"
	"time"

	"github.com/sluicehost/sluice/host/browser/action"
	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	// patience is how long after a dispatch the answer to what a script asked its
	// server to change is awaited.
	patience = 4 * time.Second
	// glimpse is how often the host looks at what it knows without the page.
	glimpse = 20 * time.Millisecond
)

// latest is by when a check has to begin, to be decided before the deadline.
func (v *verb) latest(s action.Settings) time.Duration {
	return v.started + cmp.Or(v.req.Deadline, 10*time.Second) - 2*s.Window
}

// arrive waits while the page is being left for a document that its server has not
// sent yet: until then the browser answers nothing about either.
func (v *verb) arrive(s action.Settings) error {
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
// script asked its server to change since the mark is not answered yet. Until it is,
// and no longer than patience, a look proves nothing. Traffic proves nothing either
// (B61): it only puts the proof off.
func (v *verb) unanswered(since page.Mark, sent time.Duration, s action.Settings) bool {
	last := max(min(sent+patience, v.latest(s)), sent+s.Window-time.Duration(s.Count+1)*s.Interval)
	return v.now() < last && v.tab.Happened(since).Writing > 0
}

// decided runs a check, and runs it again once what was unanswered is answered, or
// where the page went on to another document while it ran.
func (v *verb) decided(s action.Settings, early func() bool, check func() run) run {
	for {
		document := v.tab.Facts().Document
		r := check()
		var err error
		switch f := v.tab.Facts(); {
		case r.outcome == mismatch && early():
			err = v.during(early)
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
