package engine

import (
	"github.com/sluicehost/sluice/host/browser/page"
)

// proof shows that the delta of one action came about, or why that is not known.
type proof struct {
	*act
	verdict  *Verdict // on the delta, the latest
	flips    int      // how often the delta held and then did not
	streak   int      // looks in a row in which it held
	waves    int      // what the verdict before counted
	calmly   bool     // calmed has waited
	restless []string // kinds in which the page changes by itself
	rich     bool     // a richer look was tried
}

// seen keeps a look: the last one before the first dispatch is what everything after
// it is compared with.
func (p *proof) seen(l *Look) {
	if p.dispatches == 0 {
		p.before = l
		return
	}
	p.after = l
}

// scene is what the delta is judged in.
func (p *proof) scene(now *Look) *Scene {
	s := &Scene{Now: now, Self: p.node(), Target: p.req.Target, Identity: p.opt.Identity}
	if p.dispatches > 0 {
		s.Before, s.Happened, s.Restless = p.before, p.tab.Happened(p.mark), p.restless
	}
	return s
}

// held is the verdict on the delta in the read that preceded the first dispatch.
func (p *proof) held() *Verdict {
	if p.before == nil { // a page that hung is left
		return nil
	}
	s := Scene{Now: p.before, Self: p.node(), Target: p.req.Target, Identity: p.opt.Identity}
	return s.Evaluate(p.delta)
}

// judge says whether a look proves the delta: it holds, and it came about. What only
// has to hold, and may have held all along, is left to already.
func (p *proof) judge(now *Look) bool {
	v := p.scene(now).Evaluate(p.delta)
	var before *Verdict
	if p.dispatches > 0 {
		before = p.held()
	}
	p.verdict, p.res.Verification.Observed = v, v.Observed(before)
	holds := v.Truth == True
	switch {
	case p.property != nil:
		own := p.scene(now).Evaluate(p.property)
		p.res.Verification.Observed = append(p.res.Verification.Observed, own.Observed(nil)...)
		holds = holds && (own.Truth == True || p.dispatches > 0 && v.Turned(before))
	case p.dispatches > 0 && !p.kind.settles && !p.preexists():
		holds = v.Turned(before)
	}
	return holds && !p.unanswered()
}

// working reports a page that is in the middle of something, as far as what the delta is
// about shows: it may be different once that is over.
func (p *proof) working() bool {
	return p.dispatches > 0 && p.verb.working(p.verdict, p.streak > 0, p.sentAt, p.set)
}

// unanswered reports a delta that may be shown in advance of an answer.
func (p *proof) unanswered() bool {
	return p.dispatches > 0 && p.verb.unanswered(p.mark, p.sentAt, p.set)
}

// preexists allows a delta that held before the action. Keys that go on in the
// control that was worked last bring the focus back first, so where it was before
// says nothing.
func (p *proof) preexists() bool {
	return p.req.AllowPreexist || p.resume != "" && p.asks("focused", p.delta)
}

// already settles what holds before anything was dispatched, or held by the time
// that it would be dispatched again.
func (p *proof) already() (done bool, f *fault) {
	if p.delta == nil || p.before == nil {
		return false, nil
	}
	if p.dispatches > 0 { // a second pass: the first dispatch may have worked late
		if p.after == nil || !p.judge(p.after) {
			return false, nil
		}
		p.move(Pending)
		return true, p.verify()
	}
	if !p.judge(p.before) {
		return false, nil
	}
	switch {
	case p.kind.settles && (!p.req.Force || p.req.Verb == Check):
		if r := p.stabilised(); r.outcome != holds {
			return false, p.cut(r)
		}
		p.details["already_satisfied"] = true
		p.move(Pending)
		p.proved()
		return true, nil
	case p.kind.settles || p.preexists():
		return false, nil
	}
	p.res.Verification.Reason = "the delta held before the action"
	return true, &fault{code: VerificationFailed, detail: detailAlready, stage: StageVerify}
}

// verify decides the delta by the routine, and by richer evidence where that alone
// does not. Without a delta it waits for an expect.
func (p *proof) verify() *fault {
	if p.delta == nil {
		return nil
	}
	r := p.stabilised()
	if r.outcome == mismatch && !p.rich {
		p.rich = true
		richer, err := p.richer()
		if err != nil {
			r = run{outcome: cut, err: err}
		} else if richer {
			r = p.stabilised()
		}
	}
	return p.verified(r)
}

// verified makes a run of the routine an outcome.
func (p *proof) verified(r run) *fault {
	if r.outcome == cut {
		return p.cut(r)
	}
	if f := refusedFault(p.tab.Happened(p.mark)); f != nil {
		return f
	}
	if r.outcome == holds {
		p.proved()
		return nil
	}
	return p.undecidedBy(r)
}

// undecidedBy is the fault of a run that did not come to hold.
func (p *proof) undecidedBy(r run) *fault {
	switch r.outcome {
	case cut:
		return p.cut(r)
	case unreadable:
		return &fault{code: Timeout, stage: StageVerify}
	}
	return p.unproved()
}

// unproved is the fault of a delta that did not come about.
func (p *proof) unproved() *fault {
	f := &fault{code: VerificationFailed, stage: StageVerify}
	w, scrolls := p.work.(scrolling)
	switch {
	case p.req.Verb == Adjust && p.origin == OriginDefault:
		f.code = ConvergenceFailed
	case len(p.restless) > 0:
		f.detail = detailRestless
	case scrolls && w.unchanged:
		f.detail = "scroll_no_change"
	case p.verdict != nil && p.verdict.Absent():
		f.detail = detailAbsent
	case p.req.Verb == Navigate && p.origin == OriginDefault:
		f.detail = "navigation_no_change"
	case p.verdict != nil && p.verdict.Truth == Unreadable:
		f.detail = detailUnread
	}
	return f
}

// cut is the fault of a routine that could not go on; nil for one that could.
func (p *proof) cut(r run) *fault {
	if r.outcome != cut {
		return nil
	}
	return rawFault(r.err, StageVerify)
}

func (p *proof) proved() {
	p.yielded()
	p.claimed()
	p.move(Verified)
	p.res.Success = true
	p.res.Verification.Result = "verified"
	p.res.Verification.Reason = "the delta was observed"
}

// stabilised runs the routine on the delta and writes it down.
func (p *proof) stabilised() run {
	r := p.decided(p.set, wait{p.unanswered, p.working}, p.prove)
	p.res.Verification.Stability = stability(p.set, r)
	return r
}

// prove runs the routine on the delta once.
func (p *proof) prove() run {
	return p.stabilise(p.set, func() (*Look, error) {
		q := p.want([]*Target{p.req.Target}, []*Predicate{p.delta}, p.refs()...)
		q.Again = true // the target was resolved in a look of its own
		return p.lookFor(q)
	}, func(l *Look) bool {
		p.seen(l)
		match := p.judge(l)
		if match && p.working() {
			p.streak = 0
			return false
		}
		return p.steady(match)
	})
}

// wary is how many further looks have to agree on a delta that went away once: what
// comes and goes is not proved by two looks that happen to see it.
const wary = 3

// steady passes a match on, unless it has gone away before and not stayed since. It
// has also gone away if it did so between two looks that both saw it.
func (p *proof) steady(match bool) bool {
	waves := 0
	if p.verdict != nil {
		waves = p.verdict.Waves()
	}
	waved := waves > p.waves
	p.waves = waves
	if !match || waved && p.streak > 0 {
		if p.streak > 0 && p.dispatches > 0 {
			p.flips++
		}
		p.streak = 0
		return false
	}
	p.streak++
	return p.flips == 0 || p.streak > wary
}

// refs are the nodes that a look has to hold beside what the targets describe.
func (p *proof) refs() []page.Ref {
	if ref := p.node(); ref != "" {
		return []page.Ref{ref}
	}
	return nil
}

// richer looks for better evidence of the same delta: all of the page, then the
// target once more. true: the delta is evaluable there, and holds.
func (p *proof) richer() (bool, error) {
	q := Want(p.opt.Identity, []*Target{p.req.Target}, []*Predicate{p.delta})
	q.All, q.Refs = true, append(q.Refs, p.refs()...)
	o, err := p.read(q)
	if o == nil {
		return false, err
	}
	l := NewLook(o, q)
	if l.Age() > p.set.Stale {
		return false, nil
	}
	p.seen(l)
	if p.judge(l) {
		return true, nil
	}
	if p.req.Target == nil || l.Node(p.node()) != nil {
		return false, nil
	}
	found, _ := l.Resolve(p.opt.Identity, p.req.Target, ResolveOptions{Rebind: true})
	if found == nil {
		return false, nil
	}
	was := p.found
	if p.found = found; p.judge(l) {
		return true, nil
	}
	p.found = was
	return false, nil
}

// stabilise runs the routine over looks and writes its reads and its end down. A look that
// is too old is not judged.
func (v *verb) stabilise(s Settings, take func() (*Look, error), judge func(*Look) bool) run {
	r := stabilise(s, &uneven{verb: v}, func() (reading, error) {
		if err := v.arrive(s); err != nil {
			return reading{}, err
		}
		l, err := take()
		if err != nil {
			return reading{}, err
		}
		match := l != nil && l.Age() <= s.Stale && judge(l)
		got := reading{read: l != nil, match: match}
		m := meta{"read": l != nil}
		if l != nil {
			got.age = l.Age()
			m["revision"], m["age_ms"] = l.Revision, got.age.Milliseconds()
			if got.age > s.Stale {
				v.count("stale_reads_total")
			}
		}
		v.tracer.add(stageVerify, stepResult(match, stepRetry), m)
		return got, nil
	})
	v.tracer.add(stageStabilize, stepResult(r.outcome == holds, stepFailure), meta{
		"attempts": r.attempts, "stable": r.stable, "window_ms": s.Window.Milliseconds(), "outcome": r.outcome.String(),
	})
	return r
}

func (o outcome) String() string {
	return [...]string{holds: "holds", mismatch: "mismatch", unreadable: "unreadable", cut: "cut"}[o]
}

// digests are of the page as it was seen last.
func (p *proof) digests() page.Digests {
	if l := p.lastLook(); l != nil {
		return l.Digests
	}
	return page.Digests{}
}
