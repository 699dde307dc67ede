package engine

import (
	"github.com/sluicehost/sluice/host/browser/page"
)

// A proof shows that an action's delta came about, or why that is unknown.
type proof struct {
	*act
	verdict  *Verdict // the latest verdict on the delta
	flips    int      // how often the delta held and then did not
	streak   int      // consecutive looks in which it held
	waves    int      // the previous verdict's count
	calmly   bool     // calmed has waited
	restless []string // kinds of change that the page makes by itself
	rich     bool     // a richer look was tried
}

// seen stores a look. The last one before the first dispatch is the reference for everything after
// it.
func (p *proof) seen(l *Look) {
	if p.dispatches == 0 {
		p.before = l
		return
	}
	p.after = l
}

// scene returns the scene in which the delta is evaluated.
func (p *proof) scene(now *Look) *Scene {
	s := &Scene{Now: now, Self: p.node(), Target: p.req.Target, Identity: p.opt.Identity}
	if p.dispatches > 0 {
		s.Before, s.Happened, s.Restless = p.before, p.tab.Happened(p.mark), p.restless
	}
	return s
}

// held returns the verdict on the delta in the read that preceded the first dispatch.
func (p *proof) held() *Verdict {
	if p.before == nil { // the previous page hung
		return nil
	}
	s := Scene{Now: p.before, Self: p.node(), Target: p.req.Target, Identity: p.opt.Identity}
	return s.Evaluate(p.delta)
}

// judge reports whether a look proves the delta: it holds now and did not before. already handles a
// delta that may have held all along.
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

// working reports whether what the delta is about is still in the middle of a change.
func (p *proof) working() bool {
	return p.dispatches > 0 && p.verb.working(p.verdict, p.streak > 0, p.sentAt, p.set)
}

// unanswered reports whether the delta may be shown before the server answered.
func (p *proof) unanswered() bool {
	return p.dispatches > 0 && p.verb.unanswered(p.mark, p.sentAt, p.set)
}

// preexists reports whether the delta may have held before the action. Keys that continue in the
// control used last restore its focus first, so the earlier focus says nothing.
func (p *proof) preexists() bool {
	return p.req.AllowPreexist || p.resume != "" && p.asks("focused", p.delta)
}

// already handles a delta that holds before the first dispatch, or by the time of another one.
func (p *proof) already() (done bool, f *fault) {
	if p.delta == nil || p.before == nil {
		return false, nil
	}
	if p.dispatches > 0 { // on a second pass the first dispatch may have worked late
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

// verify decides the delta by the routine, and by richer evidence if that alone does not suffice.
// Without a delta the action waits for an expect.
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

// verified turns a run of the routine into an outcome.
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

// undecidedBy returns the fault of a run in which the delta did not hold.
func (p *proof) undecidedBy(r run) *fault {
	switch r.outcome {
	case cut:
		return p.cut(r)
	case unreadable:
		return &fault{code: Timeout, stage: StageVerify}
	}
	return p.unproved()
}

// unproved returns the fault of a delta that did not come about.
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

// cut returns the fault of a routine that was cut short, or nil for one that was not.
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

// stabilised runs the routine on the delta and records its report.
func (p *proof) stabilised() run {
	r := p.decided(p.set, wait{p.unanswered, p.working}, p.prove)
	p.res.Verification.Stability = stability(p.set, r)
	return r
}

// prove runs the routine on the delta once.
func (p *proof) prove() run {
	return p.stabilise(p.set, func() (*Look, error) {
		q := p.want([]*Target{p.req.Target}, []*Predicate{p.delta}, p.refs()...)
		q.Again = true // the target was resolved in another look
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

// wary is how many further looks have to agree on a delta that went away once. What comes and goes
// is not proved by two looks that happen to see it.
const wary = 3

// steady passes a match on, unless the delta went away before and has not stayed since. It also
// went away if it changed and changed back between two looks that both saw it.
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

// refs returns the nodes that a look needs beside those that the targets describe.
func (p *proof) refs() []page.Ref {
	if ref := p.node(); ref != "" {
		return []page.Ref{ref}
	}
	return nil
}

// richer looks for better evidence: the whole page, then the target again. It reports whether the
// delta can be evaluated there and holds.
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

// stabilise runs the routine over looks and records its reads and its end in the trace. A look that
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

// digests returns the digests of the latest look.
func (p *proof) digests() page.Digests {
	if l := p.lastLook(); l != nil {
		return l.Digests
	}
	return page.Digests{}
}
