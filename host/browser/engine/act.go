package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxDispatches of one action.
const maxDispatches = 4

// An act is one action while it runs: its result, which grows, its proof, and its
// recovery.
type act struct {
	*verb
	kind verbKind
	res  *Result
	set  Settings // of its proof

	declared *Declared
	repeat   bool // idempotent
	delta    *Predicate
	origin   string // of delta: declared, default or deferred
	// property is what the verb itself changes, where another delta is declared: one that
	// holds already does not take its place.
	property *Predicate

	found  *Found            // the target; nil for none
	skip   map[page.Ref]bool // better candidates that were tried
	ready  page.Readiness
	point  page.Point
	before *Look         // the page before the first dispatch
	after  *Look         // the last one that was seen since
	mark   page.Mark     // of the first dispatch
	sentAt time.Duration // when the latest dispatch began, by the clock

	dispatches int
	trusted    int       // events that arrived
	turned     bool      // the latest dispatch was turned away from another element
	login      [2]string // for the server of an address, by HTTP
	late       bool      // the target has had its time to come
	resume     page.Ref  // what keys go to that go nowhere
	sends      bool      // the page sent something because of it
	refused    *Refusal
	release    func() // staged files
	document   string // that was given them
	blocked    string // why a part of the control could not be used
	proof      proof
	recovery   recovery
	details    map[string]any
	work       any // what the verb's kind keeps between its steps
}

// newAct is an action before anything was done.
func (v *verb) newAct() *act {
	a := &act{verb: v, kind: verbKinds[v.req.Verb], set: v.settings(true), details: map[string]any{}, skip: map[page.Ref]bool{}}
	if v.req.Declared != "" && v.opt.Declared != nil {
		a.declared = v.opt.Declared(v.req.Declared)
	}
	a.repeat = v.req.Repeatable(a.declared)
	a.res = &Result{
		ActionID: v.tracer.id, Action: v.req.Verb, Category: v.req.Verb.Category(), EffectTableVersion: EffectTableVersion,
		Idempotent: a.repeat, Intent: v.req.Intent, Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		Transitions: []Transition{},
	}
	a.res.ActionType, a.res.ActionTypeSource = Effect(v.req.Verb, a.declared, "")
	a.res.Verification = Verification{Result: "not_evaluated", Observed: []Observed{}, Stability: stability(a.set, run{})}
	if v.req.Target != nil {
		a.res.Target = &TargetInfo{ElementID: v.req.Target.ElementID, Selector: v.req.Target.Selector}
	}
	a.recovery = newRecovery(a)
	a.proof.act = a
	return a
}

// settle settles the delta from the element as it is before the dispatch.
func (a *act) settle(n *page.Node) {
	p, origin := Delta(a.req, n)
	if staged, ok := a.work.([]StagedFile); ok && p != nil && origin == OriginDefault {
		p.Names = names(staged)
	}
	if a.declare(p, origin); origin == OriginDeclared {
		a.property = Own(a.req, n)
	}
}

func (a *act) declare(p *Predicate, origin string) {
	a.delta, a.origin = a.own(p), origin
	a.res.Verification.DeltaOrigin = origin
	a.res.Verification.Delta = describe(p)
}

// own has a predicate about the action's own element id mean the node that is acted
// on, whatever the action makes of its name and place.
func (a *act) own(p *Predicate) *Predicate {
	if p == nil || a.req.Target == nil || a.req.Target.ElementID == "" {
		return p
	}
	mine := *p
	if p.Target != nil && p.Target.ElementID == a.req.Target.ElementID {
		mine.Target = nil
	}
	mine.Of = nil
	for i := range p.Of {
		mine.Of = append(mine.Of, *a.own(&p.Of[i]))
	}
	return &mine
}

// perform does the action and recovers it until it is settled, refused or pending.
func (a *act) perform() {
	f := a.pass()
	for f != nil && a.refused == nil {
		strategy, permitted := a.recovery.choose(f)
		if !permitted {
			a.fail(f)
			return
		}
		f = a.recovery.recover(strategy, f)
	}
}

// maxTurned is how often a click that was turned away is aimed again.
const maxTurned = 5

// pass goes through resolution, execution and verification once. A nil fault is
// success, or the wait for an expect. A click that was turned away is one more check
// that failed before a dispatch.
func (a *act) pass() *fault {
	for n := 0; ; n++ {
		if f := a.resolve(); f != nil || a.refused != nil {
			return f
		}
		if n == 0 && !a.move(Resolved) {
			return a.broken()
		}
		if f := a.upheld(); f != nil {
			return f
		}
		if done, f := a.proof.already(); done || f != nil {
			return f
		}
		if waited, f := a.proof.calmed(); f != nil {
			return f
		} else if waited && n < maxTurned { // it may be somewhere else by now
			continue
		}
		f := a.dispatch()
		switch {
		case f == nil && a.refused == nil:
			return a.proof.verify()
		case !a.turned || n == maxTurned:
			return f
		}
	}
}

// move records a state; false for one that the lifecycle does not allow.
func (a *act) move(to string) bool {
	if !CanMove(a.res.State, to, to == Resolved && a.recovery.state.Attempts > 0) {
		return false
	}
	a.res.State = to
	a.res.Transitions = append(a.res.Transitions, Transition{State: to, At: time.Now().UnixMilli(), CycleID: a.tracer.cycle})
	return true
}

// broken is the fault of a host that lost its way: nothing is done any more.
func (a *act) broken() *fault {
	return &fault{code: Unknown, detail: detailInternal, stage: StageDispatch}
}

// mayDispatch is the one permission to act on the page.
func (a *act) mayDispatch() bool {
	if a.dispatches == 0 {
		return true
	}
	return a.again() && a.dispatches < maxDispatches
}

// again reports whether doing it twice does no harm: what the author says of it, else
// what it is by its nature, as long as the page told no server of it.
func (a *act) again() bool {
	switch {
	case a.req.Idempotent != nil:
		return *a.req.Idempotent
	case a.declared != nil && a.declared.Idempotent != nil:
		return *a.declared.Idempotent
	case a.told():
		return a.stepped()
	}
	return a.repeat || a.res.ActionType == LocalState
}

// stepped reports a tick of three states that went from neither to the one that is not
// wanted: the next click is the next step, and no repetition.
func (a *act) stepped() bool {
	if a.req.Verb != Check || a.dispatches != 1 || a.before == nil || a.after == nil {
		return false
	}
	was, is := a.before.Node(a.node()), a.after.Node(a.node())
	return was != nil && is != nil && was.State.Mixed && is.State.Checked != nil && *is.State.Checked != a.req.Check
}

// told reports whether the page sent something since the action was dispatched. What
// was taken for a change of the page alone is a side effect from then on: a form that
// saves itself gets no second request.
func (a *act) told() bool {
	switch a.req.Verb {
	case Navigate, Scroll, Hover: // pages load what comes into view
		return false
	}
	if !a.sends && a.dispatches > 0 && a.tab.Happened(a.mark).Sent > 0 {
		a.sends = true
	}
	if a.sends && a.res.ActionType == LocalState {
		a.res.ActionType, a.res.ActionTypeSource = SideEffect, FromPage
		a.submits()
	}
	return a.sends
}

// dispatch hands the action to the browser, once. A fault or refusal says that
// there is nothing to verify; everything else is for the page to show.
func (a *act) dispatch() *fault {
	if !a.mayDispatch() {
		return &fault{code: VerificationFailed, detail: "not_repeatable", stage: StageVerify}
	}
	if err := a.gate(); err != nil {
		return a.executed(rawFault(err, StageDispatch), page.Delivery{})
	}
	if a.tab.Facts().Dialog != nil {
		return a.executed(rawFault(page.ErrDialog, StageDispatch), page.Delivery{})
	}
	if a.refused = a.spells(); a.refused != nil {
		return nil
	}
	if a.refused = a.identify(); a.refused != nil {
		return nil
	}
	if a.dispatches == 0 {
		a.mark = a.tab.Mark()
		a.remembered()
		a.discharge()
	}
	a.submits()
	a.tracer.attempts++
	a.sentAt = a.now()
	a.blocked = "" // of an attempt before
	d, err := a.kind.send(a)
	if err == nil && d.Sent && !d.Turned {
		a.leave()
	}
	if a.turned = err == nil && d.Turned; a.turned {
		a.tracer.attempts--
		return a.executed(&fault{code: StaleReference, detail: detailMoved, stage: StageResolve}, d)
	}
	if errors.Is(err, page.ErrKey) {
		a.refused = &Refusal{Code: "invalid_request", Message: fmt.Sprintf("keys: %.40q: a page does not get this chord: it is the browser's own, or there is no such key", a.blocked), Verb: a.req.Verb}
		return nil
	}
	if err != nil && !d.Sent && unsent(err) {
		return a.executed(rawFault(err, StageDispatch), d)
	}
	if err == nil && !d.Sent && a.blocked != "" {
		f := a.reject(a.blocked)
		f.stage = StageDispatch
		return a.executed(f, d)
	}
	return a.sent(d, err)
}

// sent goes on from input that reached the browser, or may have.
func (a *act) sent(d page.Delivery, err error) *fault {
	a.dispatches++
	a.res.Dispatched = true
	if a.res.State != Dispatched {
		a.move(Dispatched)
	}
	switch {
	case err != nil && a.fatal(err) != nil:
		return a.executed(rawFault(a.fatal(err), StageDispatch), d)
	case errors.Is(err, page.ErrCertificate), errors.Is(err, page.ErrScheme), errors.Is(err, page.ErrHost):
		return a.executed(rawFault(err, StageDispatch), d)
	}
	if f := refusedFault(a.tab.Happened(a.mark)); f != nil {
		return a.executed(f, d)
	}
	if a.req.Verb == Upload && a.blocked != "" {
		f := a.reject(a.blocked)
		f.stage = StageDispatch
		return a.executed(f, d)
	}
	if a.kind.input && a.found != nil && d.Trusted == 0 && err == nil {
		return a.executed(&fault{code: ActionRejected, detail: detailUntrusted, stage: StageDispatch}, d)
	}
	a.executed(nil, d)
	if !a.move(Pending) {
		return a.broken()
	}
	return nil
}

// executed writes the step down and gives f back.
func (a *act) executed(f *fault, d page.Delivery) *fault {
	m := meta{"trusted": d.Trusted, "sent": d.Sent, "dispatches": a.dispatches}
	if mode := a.mode(); mode != "" {
		m["mode"] = mode
	}
	if f == nil {
		a.tracer.add(stageExecute, stepSuccess, m)
		return nil
	}
	m["code"], m["detail"] = f.code, f.detail
	a.tracer.add(stageExecute, stepFailure, m)
	return f
}

// submits tells of the first side effect on a page that holds a sealed value.
func (a *act) submits() {
	if a.opt.Secrets == nil || a.res.ActionType != SideEffect {
		return
	}
	for ref, s := range a.filled[a.tab.ID()] {
		if !s.submitted && s.document == a.tab.Facts().Document {
			a.opt.Secrets.Submitted()
			s.submitted = true
			a.filled[a.tab.ID()][ref] = s
		}
	}
}
