package engine

import (
	"github.com/sluicehost/sluice/host/browser/page"
)

// seen keeps a look: the last one before the first dispatch is what everything after
// it is compared with.
func (a *act) seen(l *Look) {
	if a.dispatches == 0 {
		a.before = l
		return
	}
	a.after = l
}

// scene is what the delta is judged in.
func (a *act) scene(now *Look) *Scene {
	s := &Scene{Now: now, Self: a.node(), Target: a.req.Target, Identity: a.opt.Identity}
	if a.dispatches > 0 {
		s.Before, s.Happened, s.Restless = a.before, a.tab.Happened(a.mark), a.restless
	}
	return s
}

// held is the verdict on the delta in the read that preceded the first dispatch.
func (a *act) held() *Verdict {
	if a.before == nil { // a page that hung is left
		return nil
	}
	s := Scene{Now: a.before, Self: a.node(), Target: a.req.Target, Identity: a.opt.Identity}
	return s.Evaluate(a.delta)
}

// judge says whether a look proves the delta: it holds, and it came about.
// What only has to hold, and may have held all along, is left to already.
func (a *act) judge(now *Look) bool {
	v := a.scene(now).Evaluate(a.delta)
	var before *Verdict
	if a.dispatches > 0 {
		before = a.held()
	}
	a.verdict, a.res.Verification.Observed = v, v.Observed(before)
	holds := v.Truth == True
	switch {
	case a.property != nil:
		own := a.scene(now).Evaluate(a.property)
		a.res.Verification.Observed = append(a.res.Verification.Observed, own.Observed(nil)...)
		holds = holds && (own.Truth == True || a.dispatches > 0 && v.Turned(before))
	case a.dispatches > 0 && !a.kind.settles && !a.preexists():
		holds = v.Turned(before)
	}
	return holds && !a.unanswered()
}

// working reports a page that is in the middle of something, as far as what the delta is
// about shows: it may be different once that is over.
func (a *act) working() bool {
	return a.dispatches > 0 && a.verb.working(a.verdict, a.streak > 0, a.sentAt, a.set)
}

// unanswered reports a delta that may be shown in advance of an answer.
func (a *act) unanswered() bool {
	return a.dispatches > 0 && a.verb.unanswered(a.mark, a.sentAt, a.set)
}

// preexists allows a delta that held before the action. Keys that go on in the
// control that was worked last bring the focus back first, so where it was before
// says nothing.
func (a *act) preexists() bool {
	return a.req.AllowPreexist || a.resume != "" && a.asks("focused", a.delta)
}

// already settles what holds before anything was dispatched, or held by the time
// that it would be dispatched again.
func (a *act) already() (done bool, f *fault) {
	if a.delta == nil || a.before == nil {
		return false, nil
	}
	if a.dispatches > 0 { // a second pass: the first dispatch may have worked late
		if a.after == nil || !a.judge(a.after) {
			return false, nil
		}
		a.move(Pending)
		return true, a.verify()
	}
	if !a.judge(a.before) {
		return false, nil
	}
	switch {
	case a.kind.settles && (!a.req.Force || a.req.Verb == Check):
		if r := a.stabilised(); r.outcome != holds {
			return false, a.cut(r)
		}
		a.details["already_satisfied"] = true
		a.move(Pending)
		a.proved()
		return true, nil
	case a.kind.settles || a.preexists():
		return false, nil
	}
	a.res.Verification.Reason = "the delta held before the action"
	return true, &fault{code: VerificationFailed, detail: detailAlready, stage: StageVerify}
}

// verify decides the delta by the routine, and by richer evidence where that alone
// does not. Without a delta it waits for an expect.
func (a *act) verify() *fault {
	if a.delta == nil {
		return nil
	}
	r := a.stabilised()
	if r.outcome == mismatch && !a.rich {
		a.rich = true
		richer, err := a.richer()
		if err != nil {
			r = run{outcome: cut, err: err}
		} else if richer {
			r = a.stabilised()
		}
	}
	return a.verified(r)
}

// verified makes a run of the routine an outcome.
func (a *act) verified(r run) *fault {
	if r.outcome == cut {
		return a.cut(r)
	}
	if f := refusedFault(a.tab.Happened(a.mark)); f != nil {
		return f
	}
	if r.outcome == holds {
		a.proved()
		return nil
	}
	return a.undecidedBy(r)
}

// undecidedBy is the fault of a run that did not come to hold.
func (a *act) undecidedBy(r run) *fault {
	switch r.outcome {
	case cut:
		return a.cut(r)
	case unreadable:
		return &fault{code: Timeout, stage: StageVerify}
	}
	return a.unproved()
}

// unproved is the fault of a delta that did not come about.
func (a *act) unproved() *fault {
	f := &fault{code: VerificationFailed, stage: StageVerify}
	w, scrolls := a.work.(scrolling)
	switch {
	case a.req.Verb == Adjust && a.origin == OriginDefault:
		f.code = ConvergenceFailed
	case len(a.restless) > 0:
		f.detail = detailRestless
	case scrolls && w.unchanged:
		f.detail = "scroll_no_change"
	case a.verdict != nil && a.verdict.Absent():
		f.detail = detailAbsent
	case a.req.Verb == Navigate && a.origin == OriginDefault:
		f.detail = "navigation_no_change"
	case a.verdict != nil && a.verdict.Truth == Unreadable:
		f.detail = detailUnread
	}
	return f
}

// cut is the fault of a routine that could not go on; nil for one that could.
func (a *act) cut(r run) *fault {
	if r.outcome != cut {
		return nil
	}
	return rawFault(r.err, StageVerify)
}

func (a *act) proved() {
	a.yielded()
	a.claimed()
	a.move(Verified)
	a.res.Success = true
	a.res.Verification.Result = "verified"
	a.res.Verification.Reason = "the delta was observed"
}

// stabilised runs the routine on the delta and writes it down.
func (a *act) stabilised() run {
	r := a.decided(a.set, wait{a.unanswered, a.working}, a.proof)
	a.res.Verification.Stability = stability(a.set, r)
	return r
}

// proof runs the routine on the delta once.
func (a *act) proof() run {
	return a.stabilise(a.set, func() (*Look, bool, error) {
		q := a.want([]*Target{a.req.Target}, []*Predicate{a.delta}, a.refs()...)
		q.Again = true // the target was resolved in a look of its own
		l, err := a.lookFor(q)
		if l == nil {
			return nil, false, err
		}
		if l.Age() > a.set.Stale {
			return l, false, nil
		}
		a.seen(l)
		match := a.judge(l)
		if match && a.working() {
			a.streak = 0
			return l, false, nil
		}
		return l, a.steady(match), nil
	})
}

// wary is how many further looks have to agree on a delta that went away once: what
// comes and goes is not proved by two looks that happen to see it.
const wary = 3

// steady passes a match on, unless it has gone away before and not stayed since. It
// has also gone away if it did so between two looks that both saw it.
func (a *act) steady(match bool) bool {
	waves := 0
	if a.verdict != nil {
		waves = a.verdict.Waves()
	}
	waved := waves > a.waves
	a.waves = waves
	if !match || waved && a.streak > 0 {
		if a.streak > 0 && a.dispatches > 0 {
			a.flips++
		}
		a.streak = 0
		return false
	}
	a.streak++
	return a.flips == 0 || a.streak > wary
}

// refs are the nodes that a look has to hold beside what the targets describe.
func (a *act) refs() []page.Ref {
	if ref := a.node(); ref != "" {
		return []page.Ref{ref}
	}
	return nil
}

// richer looks for better evidence of the same delta: all of the page, then the
// target once more. true: the delta is evaluable there, and holds.
func (a *act) richer() (bool, error) {
	q := Want(a.opt.Identity, []*Target{a.req.Target}, []*Predicate{a.delta})
	q.All, q.Refs = true, append(q.Refs, a.refs()...)
	o, err := a.read(q)
	if o == nil {
		return false, err
	}
	l := NewLook(o, q)
	if l.Age() > a.set.Stale {
		return false, nil
	}
	a.seen(l)
	if a.judge(l) {
		return true, nil
	}
	if a.req.Target == nil || l.Node(a.node()) != nil {
		return false, nil
	}
	found, _ := l.Resolve(a.opt.Identity, a.req.Target, ResolveOptions{Rebind: true})
	if found == nil {
		return false, nil
	}
	was := a.found
	if a.found = found; a.judge(l) {
		return true, nil
	}
	a.found = was
	return false, nil
}

// stabilise runs the routine over looks and writes its reads and its end down.
func (v *verb) stabilise(s Settings, take func() (*Look, bool, error)) run {
	r := stabilise(s, &uneven{verb: v}, func() (reading, error) {
		if err := v.arrive(s); err != nil {
			return reading{}, err
		}
		l, match, err := take()
		if err != nil {
			return reading{}, err
		}
		got := reading{read: l != nil, match: match}
		result, m := stepRetry, meta{"read": l != nil}
		if l != nil {
			got.age = l.Age()
			m["revision"], m["age_ms"] = l.Revision, got.age.Milliseconds()
			if got.age > s.Stale {
				v.count("stale_reads_total")
			}
		}
		if match {
			result = stepSuccess
		}
		v.tracer.add(stageVerify, result, m)
		return got, nil
	})
	result := stepSuccess
	if r.outcome != holds {
		result = stepFailure
	}
	v.tracer.add(stageStabilize, result, meta{"attempts": r.attempts, "stable": r.stable, "window_ms": s.Window.Milliseconds(), "outcome": r.outcome.String()})
	return r
}

func (o outcome) String() string {
	return [...]string{holds: "holds", mismatch: "mismatch", unreadable: "unreadable", cut: "cut"}[o]
}

// digests are of the page as it was seen last.
func (a *act) digests() page.Digests {
	for _, l := range []*Look{a.after, a.before} {
		if l != nil {
			return l.Digests
		}
	}
	return page.Digests{}
}
