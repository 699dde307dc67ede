package engine

import (
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// deferredFor is how long an action without a delta waits for its expect, in counted time.
const deferredFor = 30 * time.Second

// A past is what is kept of a dispatched action, for later waits and expects to compare with.
type past struct {
	id       string
	tab      string
	before   *Look
	mark     page.Mark
	act      *act
	consumed bool // by a wait for its change
}

// A deferred is an action that is proved by a later expect, or by nothing.
type deferred struct {
	act  *act
	stop func()
}

// put keeps an action until its expect comes.
func (e *Engine) put(a *act) {
	d := &deferred{act: a}
	e.open = d
	d.stop = e.clock.after(deferredFor, func() {
		e.work.Lock() // a running expect decides first
		defer e.work.Unlock()
		e.expire(d)
	})
}

// expire fails an action that nothing proved.
func (e *Engine) expire(d *deferred) {
	e.settle(d, &fault{code: VerificationFailed, detail: detailNever, stage: StageVerify})
}

// abandon expires the open action, if there is one, because another one starts or the surface
// closes.
func (e *Engine) abandon() {
	if d := e.take(""); d != nil {
		d.stop()
		e.expire(d)
	}
}

// take returns the open action if it has that id, or any for "".
func (e *Engine) take(id string) *deferred {
	d := e.open
	if d == nil || id != "" && d.act.res.ActionID != id {
		return nil
	}
	return d
}

// settle records the end of a deferred action, once.
func (e *Engine) settle(d *deferred, f *fault) {
	if e.open != d {
		return
	}
	e.open = nil
	a := d.act
	if f == nil {
		a.proof.proved()
		a.res.Verification.Reason = "an expect proved it"
	} else {
		a.tracer.add(stageRecover, stepFailure, meta{"code": f.code, "detail": f.detail, "reason": "none_permitted"})
		a.fail(f)
	}
	a.report()
}
