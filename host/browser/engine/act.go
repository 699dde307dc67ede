package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxDispatches of one action.
const maxDispatches = 4

// An act is a running action with its result, proof and recovery.
type act struct {
	*verb
	kind verbKind
	res  *Result
	set  Settings // of the proof

	declared *Declared
	repeat   bool // idempotent
	delta    *Predicate
	origin   string // of delta: declared, default or deferred
	// property is the change that the verb makes by itself, where another delta is declared. A
	// property that held before is no substitute for that delta.
	property *Predicate

	found  *Found            // the target; nil for none
	skip   map[page.Ref]bool // better candidates that were tried already
	ready  page.Readiness
	point  page.Point
	before *Look         // the page before the first dispatch
	after  *Look         // the latest look since then
	mark   page.Mark     // of the first dispatch
	sentAt time.Duration // start of the latest dispatch, by the clock

	dispatches int
	trusted    int       // events that arrived at the target
	turned     bool      // the latest dispatch would have hit another element
	login      [2]string // user name and password for HTTP authentication
	late       bool      // the target has had its time to appear
	resume     page.Ref  // where keys go when nothing has the focus
	sends      bool      // the page sent something because of it
	refused    *Refusal
	release    func() // releases staged files
	document   string // the document that they were given to
	blocked    string // why part of the control could not be used
	proof      proof
	recovery   recovery
	details    map[string]any
	work       any // state that the verb's kind keeps between its steps
}

// newAct returns an action of which nothing has been done yet.
func (v *verb) newAct() *act {
	a := &act{verb: v, kind: verbKinds[v.req.Verb], set: v.settings(true), details: map[string]any{},
		skip: map[page.Ref]bool{}}
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

// settle determines the delta from the element as it is before the dispatch.
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

// own makes a predicate about the action's own element id refer to the node that is acted on, even
// if the action changes the node's name or place.
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

// perform carries the action out and recovers it until it has succeeded, failed, been refused or is
// pending.
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

// maxTurned bounds how often a click that would have hit another element is aimed again.
const maxTurned = 5

// pass runs resolution, execution and verification once. A nil fault means success, or that an
// expect is awaited. A click that would have hit another element counts as a failed check before
// the dispatch.
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
		} else if waited && n < maxTurned { // it may have moved
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

// move records a transition. It reports false for one that the lifecycle does not allow.
func (a *act) move(to string) bool {
	if !CanMove(a.res.State, to, to == Resolved && a.recovery.state.Attempts > 0) {
		return false
	}
	a.res.State = to
	a.res.Transitions = append(a.res.Transitions,
		Transition{State: to, At: time.Now().UnixMilli(), CycleID: a.tracer.cycle})
	return true
}

// broken returns the fault for an internal error of the host, after which nothing more is done.
func (a *act) broken() *fault {
	return &fault{code: Unknown, detail: detailInternal, stage: StageDispatch}
}

// mayDispatch reports whether the action may be sent to the page. It is the only gate.
func (a *act) mayDispatch() bool {
	if a.dispatches == 0 {
		return true
	}
	return a.again() && a.dispatches < maxDispatches
}

// again reports whether the action may be repeated: the author's declaration decides, otherwise the
// nature of the verb, unless the page has sent something to a server because of it.
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

// stepped reports whether a check box with three states went from mixed to the unwanted state. The
// next click then is the next step and not a repetition.
func (a *act) stepped() bool {
	if a.req.Verb != Check || a.dispatches != 1 || a.before == nil || a.after == nil {
		return false
	}
	was, is := a.before.Node(a.node()), a.after.Node(a.node())
	return was != nil && is != nil && was.State.Mixed && is.State.Checked != nil && *is.State.Checked != a.req.Check
}

// told reports whether the page sent something since the dispatch. What was taken for a local
// change counts as a side effect from then on, so a form that saves itself gets no second request.
func (a *act) told() bool {
	switch a.req.Verb {
	case Navigate, Scroll, Hover: // pages load what scrolls into view
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

// dispatch sends the action to the browser once. A fault or refusal means that there is nothing to
// verify; everything else has to be read from the page.
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
	a.blocked = "" // of an earlier attempt
	d, err := a.kind.send(a)
	if err == nil && d.Sent && !d.Turned {
		a.leave()
	}
	if a.turned = err == nil && d.Turned; a.turned {
		a.tracer.attempts--
		return a.executed(&fault{code: StaleReference, detail: detailMoved, stage: StageResolve}, d)
	}
	if errors.Is(err, page.ErrKey) {
		a.refused = &Refusal{Code: "invalid_request",
			Message: fmt.Sprintf("keys: %.40q: a page does not get this chord: it is the browser's own, or there is no such key",
				a.blocked), Verb: a.req.Verb}
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

// sent continues after input that reached the browser, or may have.
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

// executed adds the execute step to the trace and returns f.
func (a *act) executed(f *fault, d page.Delivery) *fault {
	m := meta{"trusted": d.Trusted, "sent": d.Sent, "dispatches": a.dispatches}
	if mode := adjustMode(a); mode != "" {
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

// submits reports the first side effect on a page that holds a sealed value.
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
