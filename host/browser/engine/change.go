package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Kinds of change in a page.
const (
	HierarchyDiff = "hierarchy_diff"
	TextChange    = "text_change"
	StateChange   = "state_change"
)

// ChangeKinds are all kinds, the widest first.
var ChangeKinds = []string{HierarchyDiff, TextChange, StateChange}

// ByChange reports a predicate that any change of the page could make true.
func ByChange(p *Predicate) bool {
	return p != nil && (p.Kind == "any_change" || p.Kind == "fingerprint" && p.ChangedFrom != "" ||
		slices.ContainsFunc(p.Of, func(of Predicate) bool { return ByChange(&of) }))
}

// Changes are the kinds in which two reads differ, the widest first.
func Changes(before, now page.Digests) []string {
	var out []string
	if before.Hierarchy != now.Hierarchy {
		out = append(out, HierarchyDiff)
	}
	if before.Text != now.Text {
		out = append(out, TextChange)
	}
	if before.State != now.State {
		out = append(out, StateChange)
	}
	return out
}

// maxRevisions keep their digests.
const maxRevisions = 16

// A History has the digests of the last revisions of a tab. The zero History is
// empty. It is not for use by several goroutines.
type History struct {
	seen []revision
}

type revision struct {
	number  int64
	digests page.Digests
}

// Add notes what a read saw; a revision that is there already keeps its first digests.
func (h *History) Add(o *page.Observation) {
	if n := len(h.seen); n > 0 && h.seen[n-1].number >= o.Revision {
		return
	}
	h.seen = append(h.seen, revision{o.Revision, o.Digests})
	if len(h.seen) > maxRevisions {
		h.seen = h.seen[1:]
	}
}

// At are the digests of a revision; false when they are forgotten.
func (h *History) At(number int64) (page.Digests, bool) {
	for _, r := range h.seen {
		if r.number == number {
			return r.digests, true
		}
	}
	return page.Digests{}, false
}

// A Settling waits for a change that stays: the digests differ from Baseline in the
// wanted way and have been equal for Stable.
type Settling struct {
	Baseline page.Digests
	Kind     string // "": any
	Stable   time.Duration

	last  page.Digests
	since time.Time
}

// Take looks at one more read, made at a time. It returns the kind of change once
// one has settled.
func (s *Settling) Take(d page.Digests, at time.Time) (kind string, settled bool) {
	if s.since.IsZero() || d != s.last {
		s.last, s.since = d, at
	}
	for _, k := range Changes(s.Baseline, d) {
		if s.Kind == "" || s.Kind == k {
			return k, at.Sub(s.since) >= s.Stable
		}
	}
	return "", false
}

// ChangeReply is the answer of wait for ui_change.
type ChangeReply struct {
	Success  bool          `json:"success"`
	Observed *string       `json:"observed_change"`
	Revision int64         `json:"snapshot_revision"`
	Timeout  bool          `json:"timeout"`
	Elapsed  int64         `json:"elapsed_ms"`
	Expected string        `json:"expected_change,omitempty"`
	Loading  *LoadingState `json:"loading_state"`
	Reason   string        `json:"reason"`
	Trace    Trace         `json:"trace"`
}

// A changing waits for a change of the page that stays.
type changing struct {
	*verb
	set      Settings
	settling Settling
	based    bool
	last     *Look
	kind     string
}

func (v *verb) uiChange() (any, *Refusal) {
	c := changing{verb: v, set: v.settings(false)}
	c.settling = Settling{Kind: v.req.Wait.Change, Stable: v.req.Wait.Stability}
	c.baseline()
	settled, err := c.poll()
	if errors.Is(err, errLost) || errors.Is(err, errLease) {
		x := assertion{verb: v}
		return nil, x.refuse(err)
	}
	v.tracer.add(stageStabilize, stepResult(settled, stepFailure), meta{"change": c.kind})
	v.succeeded = settled
	v.record(nil)
	return c.reply(settled), nil
}

// baseline is the revision that was asked for, else what the page was before the
// latest action that no wait has consumed, else what it is now.
func (c *changing) baseline() {
	p := c.unconsumed()
	if p != nil {
		p.consumed = true
	}
	if s := c.req.Wait.Since; s != nil {
		if h := c.history[c.tab.ID()]; h != nil {
			if d, ok := h.At(*s); ok {
				c.settling.Baseline, c.based = d, true
				return
			}
		}
	}
	if p != nil && p.before != nil {
		c.settling.Baseline, c.based = p.before.Digests, true
	}
}

// poll reads until a change has settled or the time is over.
func (c *changing) poll() (settled bool, err error) {
	for from := c.now(); ; {
		l, err := c.look(nil, nil)
		if err != nil && !errors.Is(err, errDeadline) {
			return false, err
		}
		if c.take(l) {
			return true, nil
		}
		if err != nil || c.now()-from >= c.req.Wait.Timeout {
			return false, nil
		}
		if err := c.sleep(c.set.Interval); err != nil {
			if errors.Is(err, errDeadline) {
				return false, nil
			}
			return false, err
		}
	}
}

func (c *changing) take(l *Look) bool {
	if l == nil || l.Age() > c.set.Stale {
		c.tracer.add(stageVerify, stepRetry, meta{"read": l != nil})
		return false
	}
	c.last = l
	if !c.based {
		c.settling.Baseline, c.based = l.Digests, true
	}
	kind, settled := c.settling.Take(l.Digests, l.Arrived)
	c.kind = kind
	c.tracer.add(stageVerify, stepResult(settled, stepRetry), meta{"revision": l.Revision, "change": kind})
	return settled
}

func (c *changing) reply(settled bool) *ChangeReply {
	out := &ChangeReply{Success: settled, Timeout: !settled, Elapsed: (c.now() - c.started).Milliseconds(), Expected: c.req.Wait.Change, Reason: "no change settled"}
	if c.last != nil {
		out.Revision, out.Loading = c.last.Revision, LoadingOf(c.last.Observation)
	}
	if settled {
		out.Observed, out.Reason = &c.kind, "the page changed and the change stayed"
	} else if c.kind != "" {
		out.Reason = "the page kept changing"
	}
	out.Trace = c.tracer.trace(settled)
	return out
}

// maxPasts are remembered.
const maxPasts = 16

// remembered keeps what later waits and asserts of this action compare with.
func (a *act) remembered() {
	p := &past{id: a.res.ActionID, tab: a.tab.ID(), before: a.before, mark: a.mark, act: a}
	a.pasts = append(a.pasts, p)
	if len(a.pasts) > maxPasts {
		a.pasts = slices.Delete(a.pasts, 0, 1)
	}
}

// past is the action that is named, else the latest one on the tab; nil for none.
func (v *verb) past(id string) *past {
	for _, p := range slices.Backward(v.pasts) {
		if p.tab == v.tab.ID() && (id == "" || p.id == id) {
			return p
		}
	}
	return nil
}

// unconsumed is the latest action on the tab, unless a wait has seen to it.
func (v *verb) unconsumed() *past {
	if p := v.past(""); p != nil && !p.consumed {
		return p
	}
	return nil
}

// focusedNow is the selector of what has the focus.
var focusedNow = &Target{Selector: &Selector{Selector: page.Selector{CSS: ":focus"}}}

// focused is the element that has the focus; nil for none.
func focused(l *Look) *page.Node {
	if l == nil {
		return nil
	}
	var last *page.Node
	for i := range l.Nodes {
		if f := l.Nodes[i].State.Focused; f != nil && *f {
			last = &l.Nodes[i]
		}
	}
	return last
}
