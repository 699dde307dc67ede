package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// waits are the pauses before each retry of the checks that precede a dispatch; the last one
// repeats.
var waits = []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond,
	500 * time.Millisecond}

// maxUnstable is after how many unequal pairs of frames an element that keeps moving is acted on
// anyway.
const maxUnstable = 10

// inCycle bounds the checks within a recovery cycle.
const inCycle = 500 * time.Millisecond

// settled is how long to wait for a control that acts by itself before accepting a text for which
// the document may listen.
const settled = time.Second

// resolve finds the target and waits until it can be acted on. Each failed try is a step; the last
// one's fault is the action's.
func (a *act) resolve() *fault {
	limit, from := a.req.Actionable, a.now()
	if a.recovery.state.Attempts > 0 {
		limit = min(limit, inCycle)
	}
	if a.req.Verb != Navigate { // navigation is the way out of a page that does not arrive
		if err := a.arrive(a.set); err != nil {
			return a.resolved(rawFault(err, StageResolve), stepFailure)
		}
		from = a.now()
	}
	t := try{act: a}
	for i := 0; ; i++ {
		a.late = a.now()-from >= min(limit/2, settled)
		f, err := t.once()
		if errors.Is(err, page.ErrSelector) && a.dispatches == 0 {
			a.refused = a.unselected()
			return nil
		}
		if err != nil {
			f = rawFault(err, StageResolve)
			return a.resolved(f, stepFailure)
		}
		if f == nil || a.refused != nil {
			return a.resolved(nil, stepSuccess)
		}
		pause := waits[min(i+1, len(waits)-1)]
		if f.detail == "unstable" { // look more often at what never rests
			pause = min(pause, waits[2])
		}
		if !passes(f) || a.now()-from+pause > limit {
			return a.resolved(f, stepFailure)
		}
		a.resolved(f, stepRetry)
		if err := a.sleep(pause); err != nil {
			if errors.Is(err, errDeadline) {
				return a.resolved(f, stepFailure)
			}
			return a.resolved(rawFault(err, StageResolve), stepFailure)
		}
	}
}

// passes reports whether another try may succeed: the element is missing, does not answer, changes
// or is not ready yet.
func passes(f *fault) bool {
	switch f.code {
	case ElementNotFound, Timeout:
		return true
	case StaleReference:
		return f.detail == detailMoved
	case ActionRejected:
		return !slices.Contains([]string{detailDialog, detailOwner, "low_confidence"}, f.detail)
	}
	return false
}

// detailMoved means that the element changed between its resolution and the hit test.
const detailMoved = "changed_before_dispatch"

// resolved adds the resolve step to the trace and returns f.
func (a *act) resolved(f *fault, result string) *fault {
	m := meta{"revision": a.revision()}
	if r := a.res.Target; r != nil && r.Resolved != nil {
		m["element_id"] = r.Resolved.ElementID
		m["role"] = cutText(r.Resolved.Role, 80)
		if r.Resolution != nil {
			m["confidence"], m["reason"] = r.Resolution.Confidence, r.Resolution.Reason
		}
	}
	if t := a.req.Target; t != nil {
		m["selector"] = selectorKind(t)
	}
	if f != nil {
		m["code"] = f.code
		if f.detail != "" {
			m["detail"] = f.detail
		}
	}
	a.tracer.add(stageResolve, result, m)
	return f
}

// A try is the repeated attempt to reach the target.
type try struct {
	*act
	unequal int  // unequal pairs of frames
	shown   bool // scrolled to because it was covered
}

// once reads, resolves and checks. An error ends the verb.
func (t *try) once() (*fault, error) {
	target, delta := t.req.Target, t.req.Expect
	if t.forgotten() {
		return &fault{code: StaleReference, stage: StageResolve}, nil
	}
	targets := []*Target{target, t.req.Scroll.Within}
	if t.req.Verb == Press && target == nil {
		targets = append(targets, focusedNow)
	}
	q := t.want(targets, []*Predicate{delta}, t.proof.refs()...)
	if t.dispatches == 0 {
		q = t.withClaims(q)
	}
	if ref := t.worked[t.tab.ID()]; ref != "" && t.req.Verb == Press && target == nil {
		q.Refs = append(q.Refs, ref)
	}
	l, err := t.lookFor(q)
	if err != nil {
		return nil, err
	}
	if l == nil || l.Age() > t.set.Stale {
		if l != nil {
			t.count("stale_reads_total")
		}
		if t.tab.Facts().Dialog != nil {
			return rawFault(page.ErrDialog, StageResolve), nil
		}
		if t.req.Verb == Navigate { // navigation is the way out of a page that hangs
			t.prepare(nil)
			return nil, nil
		}
		return &fault{code: Timeout, stage: StageResolve}, nil
	}
	t.proof.seen(l)
	if target == nil {
		t.prepare(t.focus(l))
		return nil, nil
	}
	if f := t.find(l); f != nil {
		if f.code == ElementNotFound && t.req.Verb == Scroll { // it may be created while scrolling
			t.prepare(nil)
			return nil, nil
		}
		return f, nil
	}
	if f := t.suits(); f != nil || t.refused != nil {
		return f, nil
	}
	if !t.kind.hits && !opensChooser(t.act) {
		return nil, nil
	}
	return t.reach()
}

// focus returns the element that receives keys without a target, or nil for other verbs.
func (t *try) focus(l *Look) *page.Node {
	if t.req.Verb != Press {
		return nil
	}
	if n := focused(l); n != nil {
		return n
	}
	return t.resumed(l)
}

// forgotten reports whether the element id is stale, in which case the page is not read at all.
func (t *try) forgotten() bool {
	id := ""
	if t.req.Target != nil {
		id = t.req.Target.ElementID
	}
	return id != "" && !t.req.Rebind && !t.opt.Identity.Holds(id, t.tab.Facts().Document)
}

// find resolves the target in a look.
func (a *act) find(l *Look) *fault {
	rebind := a.req.Rebind && a.recovery.state.Attempts > 0
	found, miss := l.Resolve(a.opt.Identity, a.req.Target, ResolveOptions{Verb: a.req.Verb, Rebind: rebind, Skip: a.skip,
		Hidden: a.req.Verb == Upload, Delegated: a.late && a.req.Verb == Click})
	if miss != nil {
		a.found = nil
		a.res.Target.Resolved, a.res.Target.Resolution = nil, &miss.Resolution
		return &fault{code: miss.Code, detail: miss.Detail, stage: StageResolve}
	}
	a.found = found
	a.res.Target.Resolved, a.res.Target.Resolution = &found.Element, &found.Resolution
	if found.Rebound {
		a.details["rebound"] = true
	}
	if found.Resolution.Confidence < threshold {
		return a.reject("low_confidence")
	}
	return nil
}

func (a *act) reject(detail string) *fault {
	return &fault{code: ActionRejected, detail: detail, stage: StageResolve}
}

// suits determines effect and delta from the element before anything is dispatched.
func (t *try) suits() *fault {
	n := t.found.State()
	if t.kind.fits != nil {
		if f := t.kind.fits(t.act, n); f != nil {
			return f
		}
	}
	t.prepare(n)
	return nil
}

// prepare determines what depends on the node that was found.
func (a *act) prepare(n *page.Node) {
	var label *page.Node
	if n != nil && n.Labels != "" && a.before != nil {
		label = a.before.Node(n.Labels)
	}
	a.res.ActionType, a.res.ActionTypeSource = Effect(a.req.Verb, a.declared, Handler(a.req, n, label))
	a.told()
	if a.dispatches == 0 {
		a.settle(n)
	}
	if a.res.Intent == "" {
		role := ""
		if n != nil {
			role = n.Role
		}
		a.res.Intent = a.req.DefaultIntent(role)
	}
}

// places are the positions to scroll an element to, in turn, until nothing covers it: bars stay at
// the ends of the viewport, sheets in its middle.
var places = []page.Place{page.Middle, page.Start, page.End}

// reach runs the checks before an input and compares the node that was hit with the one that was
// chosen.
func (t *try) reach() (*fault, error) {
	ref, scrolled := t.found.Node.Ref, false
	r, err := t.check(ref)
	for _, to := range places {
		covered := r.Fault == "obscured" && !t.shown // maybe by something fixed in place
		if err != nil || r.Fault != "outside_viewport" && !covered {
			break
		}
		scrolled = true
		if err = t.tab.ScrollTo(t.ctx, ref, to, t.aim()); err == nil {
			r, err = t.check(ref)
		}
	}
	t.shown = t.shown || scrolled && r.Fault == "obscured"
	if err != nil {
		return t.unready(err)
	}
	if f := t.fault(r); f != nil {
		return f, nil
	}
	if !same(t.found.Node, &r.Node, scrolled || r.Fault == "unstable") {
		return &fault{code: StaleReference, detail: detailMoved, stage: StageResolve}, nil
	}
	t.ready, t.point = r, r.Point
	return nil, nil
}

func (t *try) check(ref page.Ref) (page.Readiness, error) {
	ctx, cancel := context.WithTimeout(t.ctx, readTimeout)
	defer cancel()
	return t.tab.Ready(ctx, ref, t.aim())
}

// unready returns the fault of a check that could not be made and may be retried, or the error that
// ends the verb.
func (t *try) unready(err error) (*fault, error) {
	if end := t.fatal(err); end != nil {
		return nil, end
	}
	f := rawFault(err, StageResolve)
	if f.code == StaleReference {
		f.detail = detailMoved
	}
	return f, nil
}

// fault returns the first failed check, or nil if the element can be acted on or merely moves.
func (t *try) fault(r page.Readiness) *fault {
	switch r.Fault {
	case "":
		return nil
	case "detached":
		return &fault{code: StaleReference, detail: detailMoved, stage: StageResolve}
	case "readonly":
		if !t.kind.edits {
			return nil
		}
	case "unstable":
		if t.unequal++; t.unequal >= maxUnstable && r.Else == "" && r.Owner != "" {
			t.details["unstable"] = true
			return nil
		}
	case "obscured":
		t.details["obscured_by"] = cutText(r.By, 80)
	}
	return t.reject(r.Fault)
}

// same compares an element as it was chosen with the one that the hit test found: what it is, what
// a click on it does by nature, and its position unless it was scrolled.
func same(was, is *page.Node, scrolled bool) bool {
	if was.Role != is.Role || was.Name != is.Name || was.Tag != is.Tag || was.OwnHear != is.OwnHear ||
		was.Submits != is.Submits || was.Leaves != is.Leaves {
		return false
	}
	a, b := was.Bounds.Center(), is.Bounds.Center()
	return scrolled || math.Abs(a.X-b.X) <= 1 && math.Abs(a.Y-b.Y) <= 1
}

// selectorKind returns the names of a target's members without their values.
func selectorKind(t *Target) string {
	if t.Selector == nil {
		return "element_id"
	}
	s, kind := t.Selector, ""
	for _, m := range []struct{ name, value string }{
		{"test_id", s.TestID}, {"id", s.ID}, {"role", s.Role}, {"name", s.Name}, {"label", s.Label}, {"text", s.Text},
		{"placeholder", s.Placeholder}, {"css", s.CSS}, {"query", s.Query},
	} {
		if m.value != "" {
			kind += "+" + m.name
		}
	}
	return kind[min(1, len(kind)):]
}
