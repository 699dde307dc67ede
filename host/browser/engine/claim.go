package engine

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A claim is what an action was verified by. A page can take it back later, when the
// proof is long over: so it is read again before it matters, in the look that precedes
// the next effect, an extract or the release of the surface.
type claim struct {
	act      *act
	delta    *Predicate
	was      *Verdict     // on delta, before the action
	look     page.Digests // of the page, before the action
	node     page.Ref     // that delta is about where it names no other
	target   *Target      // of the action, for when its node was drawn anew
	document string
	radio    bool
	label    bool // of what was clicked: it says "Copied" for a while
	field    bool // what a control holds, which no action elsewhere is to change
	at       time.Duration
}

const (
	maxClaims = 32
	// young is how long something that was shown may not vanish: what was to be read by
	// a person stays longer.
	young = 1500 * time.Millisecond
	// doubts are how many looks have to agree that a claim does not hold any more: a page
	// that draws itself anew may show anything for a moment.
	doubts = 3
)

// detailReverted is of an action that is not begun, since what an earlier one was
// verified by does not hold any more; and of that earlier one.
const detailReverted = DetailReverted

// A Reverted names an action whose verdict was taken back.
type Reverted struct {
	ActionID string `json:"action_id"`
	Action   Verb   `json:"action"`
	Intent   string `json:"intent"`
	Verdict  string `json:"verification_result"`
	Age      int64  `json:"verified_ms_ago"`
}

// claimed keeps what an action was verified by: what the verb itself changed, and what
// it was to bring about.
func (a *act) claimed() {
	if a.property != nil && a.holdsNow(a.property) {
		a.keep(a.property, true)
	}
	if a.delta != nil && !Fleeting(a.delta) && a.req.Verb != Scroll && a.req.Verb != Hover {
		a.keep(a.delta, a.origin == OriginDefault || OfControl(a.delta))
	}
}

// holdsNow reports whether p holds in the latest look.
func (a *act) holdsNow(p *Predicate) bool {
	l := a.lastLook()
	return l != nil && a.proof.scene(l).Evaluate(p).Truth == True
}

func (a *act) keep(p *Predicate, field bool) {
	c := &claim{act: a, delta: p, node: a.node(), target: a.req.Target, document: a.tab.Facts().Document, field: field, at: a.now()}
	if a.before != nil {
		s := Scene{Now: a.before, Self: c.node, Target: c.target, Identity: a.opt.Identity}
		c.was, c.look = s.Evaluate(p), a.before.Digests
	}
	if a.found != nil {
		c.radio = isRadio(a.found.State())
		c.label = a.req.Verb == Click && About(p, a.req.Target)
	}
	a.claims = append(a.claims, c)
	if len(a.claims) > maxClaims {
		a.claims = slices.Delete(a.claims, 0, 1)
	}
}

func isRadio(n *page.Node) bool { return n.Type == "radio" || n.Role == "radio" }

// claimsOn are the claims about the document that a tab shows. Those about one that is
// gone went with it.
func (e *Engine) claimsOn(tab page.Tab) (list []*claim) {
	document := tab.Facts().Document
	for _, c := range e.claims {
		if c.act.tab.ID() == tab.ID() && c.document == document {
			list = append(list, c)
		}
	}
	return list
}

// withClaims has a query ask for what the claims are about as well, so that one look
// serves them too.
func (v *verb) withClaims(q page.Query) page.Query {
	for _, c := range v.claimsOn(v.tab) {
		w := Want(v.opt.Identity, []*Target{c.target}, []*Predicate{c.delta})
		if c.node != "" {
			w.Refs = append(w.Refs, c.node)
		}
		q = Also(q, w)
	}
	return q
}

// lapsed are the claims that a look contradicts. Those about the element that is acted
// on now are about to be replaced, whatever they say.
func (v *verb) lapsed(l *Look, but page.Ref) (list []*claim) {
	for _, c := range v.claimsOn(v.tab) {
		if c.label && !c.field || but != "" && c.node == but && c.field {
			continue
		}
		s := Scene{Now: l, Self: c.node, Target: c.target, Identity: v.opt.Identity}
		back := l.Digests.Hierarchy == c.look.Hierarchy && l.Digests.Text == c.look.Text && v.now()-c.at < young
		if s.Evaluate(c.delta).Lapsed(c.was, back) {
			list = append(list, c)
		}
	}
	return list
}

// reverted are the claims that do not hold any more: a first look says so, and those
// after it agree. A page that does not answer contradicts nothing.
func (v *verb) reverted(l *Look, but page.Ref) ([]*claim, error) {
	if l == nil {
		return nil, nil
	}
	list := v.lapsed(l, but)
	for n := 1; n < doubts && len(list) > 0; n++ {
		if err := v.sleep(v.settings(true).Interval); err != nil {
			return nil, err
		}
		again, err := v.lookFor(v.withClaims(page.Query{Digests: true}))
		if err != nil {
			return nil, err
		}
		if again == nil {
			return nil, nil
		}
		still := v.lapsed(again, but)
		list = slices.DeleteFunc(list, func(c *claim) bool { return !slices.Contains(still, c) })
	}
	return list, nil
}

// upheld reads the claims of the page in the look that precedes a dispatch. One that
// does not hold any more fails the action before anything is done.
func (a *act) upheld() *fault {
	switch {
	case a.dispatches > 0, a.req.Verb == Scroll, a.req.Verb == Hover:
		return nil
	}
	list, err := a.reverted(a.before, a.node())
	if err != nil {
		return rawFault(err, StageResolve)
	}
	if len(list) == 0 {
		return nil
	}
	a.details["reverted"] = a.revoke(list)
	a.res.Verification.Reason = "what an earlier action was verified by does not hold any more"
	return &fault{code: VerificationFailed, detail: detailReverted, stage: StageResolve}
}

// discharge lets go of the claims that a dispatch puts an end to: those about the same
// element, and what was shown rather than entered. A click or key may do anything to a
// page, so nothing is claimed of what was before it.
func (a *act) discharge() {
	switch a.req.Verb {
	case Scroll, Hover:
		return
	}
	here := a.claimsOn(a.tab)
	radio := a.found != nil && isRadio(a.found.State())
	a.claims = slices.DeleteFunc(a.claims, func(c *claim) bool {
		switch {
		case c.act.tab.ID() != a.tab.ID():
			return false
		case !slices.Contains(here, c), !c.field, a.sweeping():
			return true
		}
		return c.node == a.node() && c.node != "" || c.radio && radio
	})
}

// sweeping reports an action that may change all of its page.
func (a *act) sweeping() bool {
	switch a.req.Verb {
	case Click:
		return a.res.ActionType == SideEffect
	case Press:
		return slices.ContainsFunc(a.req.Press.Chords, func(c string) bool { return c != "Tab" && c != "Shift+Tab" })
	case Navigate:
		return true
	}
	return false
}

// yielded lets go of the claims that a click of a page's own control, such as an option
// or a tab, changed with it: they held just before, and do not hold now that it is
// proved.
func (a *act) yielded() {
	if a.req.Verb != Click || a.after == nil {
		return
	}
	gone := a.lapsed(a.after, "")
	a.claims = slices.DeleteFunc(a.claims, func(c *claim) bool { return c.act != a && slices.Contains(gone, c) })
}

// revoke takes verdicts back, in result and trace, and says whose.
func (e *Engine) revoke(list []*claim) []Reverted {
	out := []Reverted{}
	for _, c := range list {
		e.claims = slices.DeleteFunc(e.claims, func(o *claim) bool { return o == c })
		a := c.act
		if a.res.Verification.Result != ResultReverted {
			a.revert()
		}
		out = append(out, Reverted{ActionID: a.res.ActionID, Action: a.res.Action, Intent: a.res.Intent,
			Verdict: ResultReverted, Age: (e.clock.now() - c.at).Milliseconds()})
	}
	return out
}

// revert is the end of an action that was verified once.
func (a *act) revert() {
	f := &fault{code: VerificationFailed, detail: detailReverted, stage: StageVerify}
	m := a.recovery.failure(f).Failure()
	detail := detailReverted
	a.res.State, a.res.Success = Failed, false
	a.res.Transitions = append(a.res.Transitions, Transition{State: Failed, At: time.Now().UnixMilli(), CycleID: a.tracer.cycle})
	a.res.FailureCode, a.res.FailureReason, a.res.Retryable, a.res.Detail = &m.Code, &m.Reason, &m.Retryable, &detail
	a.res.Terminal = &Terminal{Class: m.Class, Code: m.Code, Strategies: a.recovery.strategies, Attempts: a.recovery.state.Attempts, FinalState: Failed}
	a.res.Verification.Result = ResultReverted
	a.res.Verification.Reason = "it was verified, and does not hold any more"
	a.tracer.add(stageVerify, stepFailure, meta{"reverted": true, "code": m.Code})
	a.tracer.add(stageRecover, stepFailure, meta{"code": m.Code, "detail": detail, "reason": "none_permitted"})
	a.res.Trace = a.tracer.trace(false)
	a.count("actions_reverted_total")
	a.tell(ResultReverted)
	a.amend()
}

// refusal is that of a verb that comes after an action whose verdict was taken back.
func (v *verb) refusal(list []*claim) *Refusal {
	all := v.revoke(list)
	first := all[0]
	v.tracer.add(stageVerify, stepFailure, meta{"reverted": len(all), "action_id": first.ActionID})
	v.record(nil)
	return &Refusal{Code: CodeReverted, Verb: v.req.Verb, Message: "action " + first.ActionID + " (" + first.Intent +
		") was verified, and what it brought about does not hold any more; do it again, or look at the page"}
}

// release reads the claims of all tabs before the surface is given back. The refusal
// says which action did not last; the surface is given back all the same.
func (v *verb) release() *Refusal {
	var list []*claim
	for _, tab := range v.opt.Browser.Tabs() {
		if len(v.claimsOn(tab)) == 0 {
			continue
		}
		at := *v
		at.tab = tab
		l, err := at.lookFor(at.withClaims(page.Query{Digests: true}))
		if err != nil {
			continue // a page that is gone contradicts nothing
		}
		gone, err := at.reverted(l, "")
		if err == nil {
			list = append(list, gone...)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return v.refusal(list)
}

// released is release for a surface that nobody closed.
func (e *Engine) released() {
	tabs := e.opt.Browser.Tabs()
	if len(e.claims) == 0 || len(tabs) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*readTimeout)
	defer stop()
	v := &verb{Engine: e, ctx: ctx, req: &Request{Verb: Close}, tab: tabs[0], started: e.clock.now(), tracer: tracer{id: newID()}}
	_ = v.release() // told in the trace and the timeline; the guest is gone
}
