package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Categories of actions. Other verbs have none.
const (
	Navigation        = "Navigation"
	Input             = "Input"
	Selection         = "Selection"
	Gesture           = "Gesture"
	ControlAdjustment = "ControlAdjustment"
)

// verbs is the table of verbs. A verb without a category reads, waits or manages the surface. With
// an empty annotation the handler decides the effect.
var verbs = map[Verb]struct {
	category   string
	annotation string
	idempotent bool
	target     need
}{
	Open:       {},
	Navigate:   {category: Navigation, annotation: SideEffect, idempotent: true},
	Click:      {category: Selection, target: required},
	Type:       {category: Input, annotation: LocalState, idempotent: true, target: required},
	Fill:       {category: Input, annotation: LocalState, idempotent: true, target: required},
	Clear:      {category: Input, annotation: LocalState, idempotent: true, target: required},
	Press:      {category: Input, target: optional},
	Select:     {category: Selection, annotation: LocalState, idempotent: true, target: required},
	Check:      {category: Selection, annotation: LocalState, idempotent: true, target: required},
	Adjust:     {category: ControlAdjustment, annotation: LocalState, idempotent: true, target: required},
	Scroll:     {category: Gesture, annotation: LocalState, idempotent: true, target: optional},
	Hover:      {category: Gesture, annotation: LocalState, idempotent: true, target: required},
	Drag:       {category: Gesture, annotation: SideEffect, target: required},
	Upload:     {category: Input, annotation: SideEffect, target: required},
	Wait:       {target: optional},
	Expect:     {target: optional},
	Extract:    {},
	Snapshot:   {},
	Screenshot: {target: optional},
	Cookies:    {},
	Mark:       {},
	Close:      {},
}

// A need says whether a verb takes a target.
type need int

const (
	none need = iota
	optional
	required
)

// Known reports whether v is a verb.
func (v Verb) Known() bool {
	_, ok := verbs[v]
	return ok
}

// IsAction reports whether the reply of v is a Result.
func (v Verb) IsAction() bool { return v.Category() != "" }

// Category returns the category of an action, or "" for other verbs.
func (v Verb) Category() string { return verbs[v].category }

// Annotation returns the effect that the schema declares for v, or "".
func (v Verb) Annotation() string { return verbs[v].annotation }

// Repeatable reports whether doing r twice equals doing it once: by the request, else the declared
// action, else the table.
func (r *Request) Repeatable(d *Declared) bool {
	switch {
	case r.Idempotent != nil:
		return *r.Idempotent
	case d != nil && d.Idempotent != nil:
		return *d.Idempotent
	case r.Verb == Navigate && r.Navigate.History == "reload":
		return false
	}
	return verbs[r.Verb].idempotent
}

// DefaultIntent returns the intent of an action whose request has none.
func (r *Request) DefaultIntent(role string) string {
	if role == "" {
		return string(r.Verb)
	}
	return string(r.Verb) + " " + role
}

// A verb is one running call.
type verb struct {
	*Engine
	ctx       context.Context // ends with the deadline
	req       *Request
	tab       page.Tab
	tracer    tracer
	started   time.Duration // on the engine's clock
	succeeded bool          // for verbs that are no actions
}

// gate blocks while the run is paused. It returns an error when nothing more may be asked of the
// page: after the deadline, without a browser, or while the owner is in control.
func (v *verb) gate() error {
	if err := v.clock.hold(v.ctx); err != nil {
		return err
	}
	select {
	case <-v.lost:
		return errLost
	default:
	}
	if v.opt.Controlled != nil && v.opt.Controlled() {
		return errLease
	}
	return nil
}

// read takes one look at the page. If the page does not answer in time, both results are nil: that
// is no evidence, and the caller looks again. An error ends the verb.
func (v *verb) read(q page.Query) (*page.Observation, error) {
	if err := v.gate(); err != nil {
		return nil, err
	}
	most := readTimeout
	if q.Patient {
		most *= 4
	}
	ctx, cancel := context.WithTimeout(v.ctx, most)
	defer cancel()
	o, err := v.tab.Read(ctx, q)
	if err != nil {
		return nil, v.fatal(err)
	}
	v.conceal(o)
	v.noted(o)
	return o, nil
}

// reads is read for verbs that only read: it retries until the page answers, within the deadline. A
// nil observation comes with the error that ended the verb.
func (v *verb) reads(q page.Query) (*page.Observation, error) {
	q.Patient = true
	for {
		o, err := v.read(q)
		if o != nil || err != nil {
			return o, err
		}
		if err := v.sleep(DefaultSettings.Interval); err != nil {
			return nil, err
		}
	}
}

// fatal returns err if it ends the verb, or nil if the page may answer the next time.
func (v *verb) fatal(err error) error {
	switch {
	case errors.Is(err, page.ErrLost):
		return errLost
	case errors.Is(err, page.ErrSelector):
		return err
	}
	if cause := context.Cause(v.ctx); cause != nil {
		return cause
	}
	select {
	case <-v.lost:
		return errLost
	default:
		return nil
	}
}

// look reads what the targets and predicates need. Both results are nil if the page did not answer.
func (v *verb) look(targets []*Target, predicates []*Predicate, refs ...page.Ref) (*Look, error) {
	return v.lookFor(v.want(targets, predicates, refs...))
}

// watch looks repeatedly until there reports true. It reports false if that takes longer than most.
func (a *act) watch(most time.Duration, targets []*Target, there func(*Look) bool) (bool, error) {
	for from := a.now(); ; {
		l, err := a.look(targets, nil, a.proof.refs()...)
		if err != nil {
			return false, err
		}
		if l != nil && there(l) {
			return true, nil
		}
		if a.now()-from >= most {
			return false, nil
		}
		if err := a.sleep(a.set.Interval); err != nil {
			return false, err
		}
	}
}

// want returns the query that the targets and predicates need.
func (v *verb) want(targets []*Target, predicates []*Predicate, refs ...page.Ref) page.Query {
	q := Want(v.opt.Identity, targets, predicates)
	q.Refs = append(q.Refs, refs...)
	return q
}

func (v *verb) lookFor(q page.Query) (*Look, error) {
	o, err := v.read(q)
	if o == nil {
		return nil, err
	}
	return NewLook(o, q), nil
}

func (v *verb) sleep(d time.Duration) error { return sleep(v.ctx, d, v.lost) }

func (v *verb) now() time.Duration { return v.clock.now() }

// count raises a counter of the host.
func (e *Engine) count(name string, labels ...string) {
	if e.opt.Count != nil {
		e.opt.Count(name, labels...)
	}
}

// noted stores the digests of a revision.
func (v *verb) noted(o *page.Observation) {
	h := v.history[v.tab.ID()]
	if h == nil {
		h = &History{}
		v.history[v.tab.ID()] = h
	}
	if o.Digests != (page.Digests{}) {
		h.Add(o)
		v.changes(o.Digests)
	}
}

// settings returns the settings of one check, the request's or the defaults, clamped. Proof needs
// at least two matches.
func (v *verb) settings(proof bool) Settings { return v.req.Verify.Clamped(proof) }

// stability returns the report on a run of the routine.
func stability(s Settings, r run) Stability {
	out := Stability{Attempts: r.attempts, WindowMS: s.Window.Milliseconds(), Count: r.stable, Settings: s.Info()}
	if r.age != nil {
		ms := r.age.Milliseconds()
		out.Freshness = &ms
	}
	return out
}
