package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Categories of actions. Verbs that are no actions have none.
const (
	Navigation        = "Navigation"
	Input             = "Input"
	Selection         = "Selection"
	Gesture           = "Gesture"
	ControlAdjustment = "ControlAdjustment"
)

// verbs is the table of verbs. A verb without a category reads, waits or manages the
// surface. An empty effect leaves the answer to the handler.
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

// A need says whether a verb has a target.
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

// IsAction reports whether v answers with a Result.
func (v Verb) IsAction() bool { return v.Category() != "" }

// Category is the kind of action that v is, or "".
func (v Verb) Category() string { return verbs[v].category }

// Annotation is the effect that the schema gives v, or "".
func (v Verb) Annotation() string { return verbs[v].annotation }

// Repeatable reports whether doing what r asks twice equals doing it once: the
// request's word, else that of the declared action, else the table's.
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

// DefaultIntent is the intent of an action whose request names none.
func (r *Request) DefaultIntent(role string) string {
	if role == "" {
		return string(r.Verb)
	}
	return string(r.Verb) + " " + role
}

// A verb is one call while it runs.
type verb struct {
	*Engine
	ctx       context.Context // ends with the deadline
	req       *Request
	tab       page.Tab
	tracer    tracer
	started   time.Duration // by the clock
	succeeded bool          // of verbs that are no actions
}

// gate holds a verb while the run is paused, and ends it when nothing more may be
// asked of the page: past its deadline, without a browser, or while the owner is in
// control.
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

// read looks at the page once. A page that does not answer in time gives nil and no
// error: that is no evidence, and the caller looks again. An error ends the
// verb.
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

// reads looks at the page for a verb that does nothing but read: it has all its time for
// that, and looks again until the page answers, which may be slow or be loading. nil
// comes with the error that ended the verb.
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

// fatal is err if it ends the verb, nil if the page may answer the next time.
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

// look reads what the targets and predicates need. nil without an error: no answer.
func (v *verb) look(targets []*Target, predicates []*Predicate, refs ...page.Ref) (*Look, error) {
	return v.lookFor(v.want(targets, predicates, refs...))
}

// watch looks until what was looked for is there; false when that took too long.
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

// want is the query for what the targets and predicates need.
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

// noted keeps the digests of a revision.
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

// settings are those of one check: the request's, else the defaults, each clamped. Proof
// takes two matches at least.
func (v *verb) settings(proof bool) Settings { return v.req.Verify.Clamped(proof) }

// stability is what is told of a run of the routine.
func stability(s Settings, r run) Stability {
	out := Stability{Attempts: r.attempts, WindowMS: s.Window.Milliseconds(), Count: r.stable, Settings: s.Info()}
	if r.age != nil {
		ms := r.age.Milliseconds()
		out.Freshness = &ms
	}
	return out
}
