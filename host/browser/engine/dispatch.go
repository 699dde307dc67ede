package engine

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/host/browser/page"
)

// dispatch hands the action to the browser, once. A fault or refusal says that
// there is nothing to verify; everything else is for the page to show (B57).
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

// submits tells of the first side effect on a page that holds a sealed value (B41).
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
