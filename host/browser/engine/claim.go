package engine

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A claim is a change by which an action was verified. A page can undo it after the proof, so it is
// read again before it matters: in the look before the next effect, before an extract and before
// the surface is released.
type claim struct {
	act      *act
	delta    *Predicate
	was      *Verdict     // the verdict on delta before the action
	look     page.Digests // of the page before the action
	node     page.Ref     // the node that delta is about where it names none
	target   *Target      // of the action, in case its node was redrawn
	document string
	radio    bool
	label    bool // about the label of what was clicked, which may say "Copied" for a while
	field    bool // about the content of a control, which other actions should not change
	at       time.Duration
}

const (
	maxClaims = 32
	// young is how long something that was shown may not vanish. What a person is meant to read
	// stays longer.
	young = 1500 * time.Millisecond
	// doubts is how many looks have to agree that a claim no longer holds. A page that redraws
	// itself may show anything for a moment.
	doubts = 3
)

// detailReverted marks an action that is not begun because the claim of an earlier one no longer
// holds, and that earlier action.
const detailReverted = DetailReverted

// A Reverted names an action whose verdict was withdrawn.
type Reverted struct {
	ActionID string `json:"action_id"`
	Action   Verb   `json:"action"`
	Intent   string `json:"intent"`
	Verdict  string `json:"verification_result"`
	Age      int64  `json:"verified_ms_ago"`
}

// claimed records the claims of a verified action: what the verb itself changed, and its delta.
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
	c := &claim{act: a, delta: p, node: a.node(), target: a.req.Target, document: a.tab.Facts().Document,
		field: field, at: a.now()}
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

// claimsOn returns the claims about the document that a tab shows. Claims about earlier documents
// are void.
func (e *Engine) claimsOn(tab page.Tab) (list []*claim) {
	document := tab.Facts().Document
	for _, c := range e.claims {
		if c.act.tab.ID() == tab.ID() && c.document == document {
			list = append(list, c)
		}
	}
	return list
}

// withClaims extends a query so that the same look also serves the claims.
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

// lapsed returns the claims that a look contradicts. Claims about the content of the element being
// acted on are left out, since the action replaces it.
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

// reverted returns the claims that no longer hold, once several looks agree. A page that does not
// answer contradicts nothing.
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

// upheld checks the claims in the look that precedes a dispatch. A claim that no longer holds fails
// the action before anything is done.
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

// discharge drops the claims that a dispatch ends: those about the same element, and those about
// what was shown rather than entered. A click or a key may change anything on a page, so nothing is
// claimed of what it showed before.
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

// sweeping reports whether the action may change all of its page.
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

// yielded drops the claims that a click on an option, a tab or the like changed as well: they held
// just before and do not hold after the proof.
func (a *act) yielded() {
	if a.req.Verb != Click || a.after == nil {
		return
	}
	gone := a.lapsed(a.after, "")
	a.claims = slices.DeleteFunc(a.claims, func(c *claim) bool { return c.act != a && slices.Contains(gone, c) })
}

// revoke withdraws the verdicts of claims in result and trace, and returns their actions.
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

// revert turns a verified action into a failed one.
func (a *act) revert() {
	f := &fault{code: VerificationFailed, detail: detailReverted, stage: StageVerify}
	m := a.recovery.failure(f).Failure()
	detail := detailReverted
	a.res.State, a.res.Success = Failed, false
	a.res.Transitions = append(a.res.Transitions,
		Transition{State: Failed, At: time.Now().UnixMilli(), CycleID: a.tracer.cycle})
	a.res.FailureCode, a.res.FailureReason, a.res.Retryable, a.res.Detail = &m.Code, &m.Reason, &m.Retryable, &detail
	a.res.Terminal = &Terminal{Class: m.Class, Code: m.Code, Strategies: a.recovery.strategies,
		Attempts: a.recovery.state.Attempts, FinalState: Failed}
	a.res.Verification.Result = ResultReverted
	a.res.Verification.Reason = "it was verified, and does not hold any more"
	a.tracer.add(stageVerify, stepFailure, meta{"reverted": true, "code": m.Code})
	a.tracer.add(stageRecover, stepFailure, meta{"code": m.Code, "detail": detail, "reason": "none_permitted"})
	a.res.Trace = a.tracer.trace(false)
	a.count("actions_reverted_total")
	a.tell(ResultReverted)
	a.amend()
}

// refusal returns the refusal of a verb that follows an action whose verdict was withdrawn.
func (v *verb) refusal(list []*claim) *Refusal {
	all := v.revoke(list)
	first := all[0]
	v.tracer.add(stageVerify, stepFailure, meta{"reverted": len(all), "action_id": first.ActionID})
	v.record(nil)
	return &Refusal{Code: CodeReverted, Verb: v.req.Verb, Message: "action " + first.ActionID + " (" + first.Intent +
		") was verified, and what it brought about does not hold any more; do it again, or look at the page"}
}

// release checks the claims of all tabs before the surface is released. Its refusal names an action
// that did not last; the surface is released all the same.
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

// released does the same for a surface that nobody closed.
func (e *Engine) released() {
	tabs := e.opt.Browser.Tabs()
	if len(e.claims) == 0 || len(tabs) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*readTimeout)
	defer stop()
	v := &verb{Engine: e, ctx: ctx, req: &Request{Verb: Close}, tab: tabs[0], started: e.clock.now(),
		tracer: tracer{id: newID()}}
	_ = v.release() // reported in trace and timeline; the guest is gone
}
