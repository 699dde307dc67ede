package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Do carries out one verb that works on a page: an action, wait, expect, extract, snapshot or
// screenshot. The reply is JSON that a guest may see once sealed values are replaced by handles.
// Exactly one of the results is not nil. A call while another one runs is refused as surface_busy.
func (e *Engine) Do(ctx context.Context, req *Request) (any, *Refusal) {
	if !e.busy.CompareAndSwap(false, true) {
		return nil, &Refusal{Code: "surface_busy", Message: "another verb is running", Verb: req.Verb}
	}
	defer e.busy.Store(false)
	e.work.Lock()
	defer e.work.Unlock()
	e.forgetTouched()
	tab, refused := e.chosen(req)
	if refused != nil {
		return nil, refused
	}
	e.dropEnded()
	ctx, stop := e.clock.within(ctx, cmp.Or(req.Deadline, 10*time.Second))
	defer stop()
	v := &verb{Engine: e, ctx: ctx, req: req, tab: tab, started: e.clock.now(), tracer: tracer{id: newID()}}
	if req.Verb.IsAction() {
		return v.act()
	}
	switch req.Verb {
	case Wait:
		return v.wait()
	case Expect:
		return v.expect()
	}
	if e.opt.Controlled != nil && e.opt.Controlled() {
		return nil, v.owned()
	}
	switch req.Verb {
	case Close:
		return nil, v.release()
	case Extract:
		return v.extract()
	case Snapshot:
		return v.snapshot()
	case Screenshot:
		return v.screenshot()
	}
	return nil, &Refusal{Code: "unknown_verb", Message: "the engine has no such verb", Verb: req.Verb}
}

// chosen returns the tab that a verb addresses.
func (e *Engine) chosen(req *Request) (page.Tab, *Refusal) {
	select {
	case <-e.lost:
		return nil, lostRefusal(req.Verb)
	default:
	}
	tabs := e.opt.Browser.Tabs()
	if len(tabs) == 0 {
		return nil, lostRefusal(req.Verb)
	}
	if req.Tab == "" {
		return tabs[0], nil
	}
	for _, t := range tabs {
		if t.ID() == req.Tab {
			return t, nil
		}
	}
	return nil, &Refusal{Code: "invalid_request", Message: "missing or invalid string argument: tab", Verb: req.Verb}
}

func lostRefusal(verb Verb) *Refusal {
	return &Refusal{Code: "surface_lost", Message: "the browser is lost", Verb: verb}
}

func (v *verb) owned() *Refusal {
	return &Refusal{Code: "owner_in_control", Message: "the owner is in control of the browser", Verb: v.req.Verb}
}

// act carries out an action and returns its result.
func (v *verb) act() (any, *Refusal) {
	v.abandon()
	a := v.newAct()
	defer v.outside()
	a.guarded(func() {
		if f := a.front(); f != nil {
			a.fail(a.undecided(f))
			return
		}
		a.perform()
	})
	defer keepUploads(a)
	if a.refused != nil {
		a.tracer.add(stageResolve, stepFailure, meta{"refused": a.refused.Code})
		a.record(nil)
		return nil, a.refused
	}
	a.guarded(a.finish)
	if a.res.State == Pending {
		v.put(a)
	} else {
		a.report()
	}
	res := *a.res // the guest's copy; a later expect does not change it
	return &res, nil
}

// front brings the tab to the front, where its page is rendered, and sets what happens to dialogs.
func (a *act) front() *fault {
	policy := page.DialogDismiss
	if a.req.AcceptDialog {
		policy = page.DialogAccept
	}
	if err := a.gate(); err != nil {
		return rawFault(err, StageResolve)
	}
	a.tab.OnDialog(policy, a.req.DialogText)
	if tabs := a.opt.Browser.Tabs(); len(tabs) > 0 && tabs[0].ID() != a.tab.ID() {
		if err := a.opt.Browser.Activate(a.ctx, a.tab.ID()); err != nil {
			return rawFault(err, StageResolve)
		}
	}
	return nil
}

// outside sets what happens to dialogs when no action runs.
func (v *verb) outside() {
	policy := page.DialogDismiss
	switch {
	case v.opt.Dialogs != nil:
		policy = v.opt.Dialogs()
	case v.opt.Controlled != nil && v.opt.Controlled():
		policy = page.DialogKeep
	}
	v.tab.OnDialog(policy, nil)
}

// undecided records that an action ended before anything was tried.
func (a *act) undecided(f *fault) *fault {
	a.resolved(f, stepFailure)
	a.recovery.choose(f)
	return f
}

// guarded turns a panic into the failure of the action.
func (a *act) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			a.broke(fmt.Errorf("panic in %s: %v", a.req.Verb, p))
			if !Final(a.res.State) {
				a.tracer.add(stageRecover, stepFailure, meta{"code": Unknown, "detail": detailInternal})
				a.fail(a.broken())
			}
		}
	}()
	f()
}

// broke reports an internal error for the log.
func (e *Engine) broke(err error) {
	if e.opt.Broke != nil {
		e.opt.Broke(err)
	}
}

// newID returns a random action id.
func newID() string {
	var b [10]byte
	rand.Read(b[:])
	return "act_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// Pause stops the engine's clock until the matching Resume, while the run is paused or waits for
// its owner. Nothing new is asked of the page meanwhile. Pauses may be nested.
func (e *Engine) Pause() { e.clock.pause() }

// Resume ends a pause.
func (e *Engine) Resume() { e.clock.resume() }

// Released tells the engine that the owner's control lease ended: all element ids become stale, and
// claims about pages that the owner worked on are dropped.
func (e *Engine) Released() {
	e.opt.Identity.Forget()
	e.touched.Store(true)
}

// forgetTouched drops what was verified before the owner had the page.
func (e *Engine) forgetTouched() {
	if e.touched.Swap(false) {
		e.claims = nil
	}
}

// Close waits for the running verb and expires what waits for an expect. The engine must not be
// used afterwards.
func (e *Engine) Close() {
	e.work.Lock()
	defer e.work.Unlock()
	e.forgetTouched()
	e.released()
	e.abandon()
	e.drop(func(uploaded) bool { return true })
}
