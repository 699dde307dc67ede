package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Sight is what one look says about the condition of a wait.
type Sight struct {
	Met           bool
	Matched       int
	SelectedIndex *int // of the match that the condition is about; may be nil
	// Found is the element that satisfies the condition, or nil. Last is the last match, whether it
	// satisfies the condition or not.
	Found *Found
	Last  *page.Node
}

// Await reports whether a look meets the condition of a wait: exists, not_exists, visible, hidden,
// clickable, load or navigation. page_change and ui_change take several looks.
func (s *Scene) Await(w *WaitArgs, t *Target) Sight {
	switch w.For {
	case "load":
		return Sight{Met: s.Now.Loading == nil || s.Now.Loading.Signal != "document_loading"}
	case "navigation":
		return Sight{Met: len(s.Happened.Loaders) > 0}
	}
	if t == nil {
		return Sight{}
	}
	list := s.candidates(t, w.For == "clickable")
	sight := Sight{Matched: len(list)}
	if len(list) > 0 {
		sight.Last = list[len(list)-1].Node
	}
	if w.Index != nil {
		if *w.Index < 0 || *w.Index >= len(list) {
			sight.Met = w.For == "not_exists" || w.For == "hidden"
			return sight
		}
		i := *w.Index
		list, sight.SelectedIndex = list[i:i+1], &i
	}
	return s.decide(w.For, list, sight)
}

// candidates returns all matches of a target in document order.
func (s *Scene) candidates(t *Target, owner bool) []Candidate {
	o := ResolveOptions{Owner: owner, Hidden: true}
	if t.Selector == nil {
		f, miss := s.Now.byID(s.Identity, t.ElementID, o)
		if miss != nil {
			return nil
		}
		return f.Candidates
	}
	m, miss := s.Now.matches(s.Identity, t.Selector, o)
	if miss != nil {
		return nil
	}
	if !m.separated {
		slices.SortStableFunc(m.found, inDocument)
	}
	if i := t.Selector.Index; i != nil {
		if *i < 0 || *i >= len(m.found) {
			return nil
		}
		return m.found[*i : *i+1]
	}
	return m.found
}

// decide looks for a match that satisfies the condition. not_exists and hidden are met if there is
// none.
func (s *Scene) decide(condition string, list []Candidate, sight Sight) Sight {
	satisfies := func(c Candidate) bool {
		switch condition {
		case "visible", "hidden":
			return seen(c.Node)
		case "clickable":
			return seen(c.Node) && Executable(c.Node) && !c.Node.Disabled
		}
		return true
	}
	best := -1
	for i, c := range list {
		if satisfies(c) && (best < 0 || c.score > list[best].score) {
			best = i
		}
	}
	switch {
	case condition == "not_exists" || condition == "hidden":
		sight.Met = best < 0
		return sight
	case best < 0:
		return sight
	}
	sight.Met = true
	if sight.SelectedIndex == nil {
		sight.SelectedIndex = &best
	}
	rest := slices.Delete(slices.Clone(list), best, best+1)
	slices.SortStableFunc(rest, byRank)
	sight.Found = s.Now.found(s.Identity, matched{found: append([]Candidate{list[best]}, rest...)})
	sight.Last = sight.Found.Node
	return sight
}

// WaitReply is the reply of wait, except for ui_change.
type WaitReply struct {
	Status     string      `json:"status"` // success or timeout
	Matched    bool        `json:"matched"`
	Element    *Element    `json:"element"`
	Resolution *Resolution `json:"resolution,omitempty"`
	Hint       *Hint       `json:"interaction_hint,omitempty"`
	Metrics    Metrics     `json:"metrics"`
	Requested  Requested   `json:"requested"`
	Observed   Matches     `json:"observed"`
	Error      *WaitError  `json:"error,omitempty"`
	Stability
	Fingerprint string `json:"fingerprint,omitempty"` // the last one, for page_change
	Revision    int64  `json:"snapshot_revision"`
	Trace       Trace  `json:"trace"`
}

// Metrics are the measurements of a wait.
type Metrics struct {
	Latency  int64 `json:"latency_ms"`
	Polls    int   `json:"poll_count"`
	Attempts int   `json:"attempts"`
}

// Requested echoes what was waited for.
type Requested struct {
	Selector  *Selector `json:"selector"`
	ElementID string    `json:"element_id,omitempty"`
	Condition string    `json:"condition"`
	Match     *int      `json:"match"`
}

// A WaitError says why a wait failed.
type WaitError struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// A waiting is a running wait.
type waiting struct {
	*verb
	set   Settings
	base  *past
	mark  page.Mark
	sight Sight
	now   *Look
	polls int
	// previous and last are the fingerprints of the page before and of the latest look.
	previous, last string
}

// wait synchronises: its success says that a condition was met, and nothing about the outcome of an
// action.
func (v *verb) wait() (any, *Refusal) {
	if v.req.Wait.For == "ui_change" {
		return v.uiChange()
	}
	w := waiting{verb: v, set: v.settings(false), mark: v.tab.Mark()}
	w.set.Window = v.req.Wait.Timeout
	if v.req.Wait.For == "navigation" || v.req.Wait.For == "page_change" {
		w.baseline()
	}
	var r run
	attempts := 0
	for attempts < max(v.req.Wait.Attempts, 1) {
		if attempts > 0 {
			if err := v.sleep(v.req.Wait.Backoff); err != nil {
				r = run{outcome: cut, err: err}
				break
			}
		}
		attempts++
		r = w.once()
		w.polls += r.attempts
		if r.outcome == holds || r.outcome == cut {
			break
		}
	}
	if refuses(r.err) {
		x := assertion{verb: v}
		return nil, x.refuse(r.err)
	}
	reply := w.reply(r, attempts)
	v.succeeded = reply.Matched
	v.record(nil)
	return reply, nil
}

// baseline determines what a change is measured from: the latest action that no wait has consumed,
// or the page now.
func (w *waiting) baseline() {
	if p := w.unconsumed(); p != nil {
		w.base, w.mark = p, p.mark
		p.consumed = true
	}
	w.previous = w.req.Wait.Fingerprint
	if w.previous == "" && w.base != nil && w.base.before != nil {
		w.previous = w.base.before.Fingerprint
	}
}

func (w *waiting) once() run {
	read := func() (*Look, error) { return w.look([]*Target{w.req.Target}, nil) }
	return w.stabilise(w.set, read, func(l *Look) bool {
		w.now = l
		if w.req.Wait.For == "page_change" {
			return w.changed(l)
		}
		s := Scene{Now: l, Happened: w.tab.Happened(w.mark), Identity: w.opt.Identity}
		w.sight = s.Await(&w.req.Wait, w.req.Target)
		return w.sight.Met
	})
}

// changed compares fingerprints; without a previous one the first becomes it. Two consecutive reads
// have to differ from it.
func (w *waiting) changed(l *Look) bool {
	w.previous, w.last = cmp.Or(w.previous, l.Fingerprint), cmp.Or(l.Fingerprint, w.last)
	return l.Fingerprint != "" && l.Fingerprint != w.previous
}

func (w *waiting) reply(r run, attempts int) *WaitReply {
	out := &WaitReply{Status: "timeout", Matched: r.outcome == holds, Stability: stability(w.set, r),
		Metrics:     Metrics{(w.clock.now() - w.started).Milliseconds(), w.polls, attempts},
		Requested:   Requested{Condition: w.req.Wait.For, Match: w.req.Wait.Index},
		Observed:    Matches{Matched: w.sight.Matched, Satisfied: r.outcome == holds, SelectedIndex: w.sight.SelectedIndex},
		Fingerprint: w.last}
	if t := w.req.Target; t != nil {
		out.Requested.Selector, out.Requested.ElementID = t.Selector, t.ElementID
	}
	if w.now != nil {
		out.Revision = w.now.Revision
		if w.sight.Last != nil {
			last := w.now.Element(w.opt.Identity, w.sight.Last)
			out.Observed.Last = &last
		}
	}
	if f := w.sight.Found; f != nil && out.Matched {
		out.Element, out.Resolution, out.Hint = &f.Element, &f.Resolution, f.Element.Hint
	}
	if out.Matched {
		out.Status = "success"
	} else {
		code := ElementNotFound
		if r.outcome != mismatch {
			code = Timeout
		}
		out.Error = &WaitError{code,
			fmt.Sprintf("%s was not met in %d ms, observed %d match(es)", w.req.Wait.For, out.Metrics.Latency, w.sight.Matched)}
	}
	out.Trace = w.tracer.trace(out.Matched)
	return out
}
