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

// ChangeKinds lists all kinds, the widest first.
var ChangeKinds = []string{HierarchyDiff, TextChange, StateChange}

// ByChange reports whether any change of the page could make a predicate true.
func ByChange(p *Predicate) bool {
	return p != nil && (p.Kind == "any_change" || p.Kind == "fingerprint" && p.ChangedFrom != "" ||
		slices.ContainsFunc(p.Of, func(of Predicate) bool { return ByChange(&of) }))
}

// Changes returns the kinds in which two reads differ, the widest first.
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

// maxRevisions bounds the revisions whose digests are kept.
const maxRevisions = 16

// A History holds the digests of a tab's latest revisions. The zero History is empty. It is not
// safe for concurrent use.
type History struct {
	seen []revision
}

type revision struct {
	number  int64
	digests page.Digests
}

// Add records what a read saw. A revision that was recorded before keeps its first digests.
func (h *History) Add(o *page.Observation) {
	if n := len(h.seen); n > 0 && h.seen[n-1].number >= o.Revision {
		return
	}
	h.seen = append(h.seen, revision{o.Revision, o.Digests})
	if len(h.seen) > maxRevisions {
		h.seen = h.seen[1:]
	}
}

// At returns the digests of a revision. It reports false if they are no longer kept.
func (h *History) At(number int64) (page.Digests, bool) {
	for _, r := range h.seen {
		if r.number == number {
			return r.digests, true
		}
	}
	return page.Digests{}, false
}

// A Settling waits for a lasting change: the digests differ from Baseline in the wanted kind and
// have been equal for Stable.
type Settling struct {
	Baseline page.Digests
	Kind     string // "" means any kind
	Stable   time.Duration

	last  page.Digests
	since time.Time
}

// Take adds one read made at a time. It returns the kind of change once one has settled.
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

// ChangeReply is the reply of wait for ui_change.
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

// A changing is a running wait for a lasting change of the page.
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

// baseline returns the digests to compare with: those of the requested revision, otherwise of the
// page before the latest action that no wait has consumed, otherwise of the page now.
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

// poll reads until a change has settled or the time is up.
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
	out := &ChangeReply{Success: settled, Timeout: !settled, Elapsed: (c.now() - c.started).Milliseconds(),
		Expected: c.req.Wait.Change, Reason: "no change settled"}
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

// maxPasts bounds how many actions are remembered.
const maxPasts = 16

// remembered keeps what later waits and expects of this action compare with.
func (a *act) remembered() {
	p := &past{id: a.res.ActionID, tab: a.tab.ID(), before: a.before, mark: a.mark, act: a}
	a.pasts = append(a.pasts, p)
	if len(a.pasts) > maxPasts {
		a.pasts = slices.Delete(a.pasts, 0, 1)
	}
}

// past returns the action with that id, or the latest one on the tab for "". It returns nil if
// there is none.
func (v *verb) past(id string) *past {
	for _, p := range slices.Backward(v.pasts) {
		if p.tab == v.tab.ID() && (id == "" || p.id == id) {
			return p
		}
	}
	return nil
}

// unconsumed returns the latest action on the tab, unless a wait has consumed it.
func (v *verb) unconsumed() *past {
	if p := v.past(""); p != nil && !p.consumed {
		return p
	}
	return nil
}

// focusedNow selects the element that has the focus.
var focusedNow = &Target{Selector: &Selector{Selector: page.Selector{CSS: ":focus"}}}

// focused returns the element that has the focus, or nil if there is none.
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
