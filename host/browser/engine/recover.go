package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// cycles is the recovery state of one action: what was tried and what is
// left.
type cycles struct {
	state      Recovery
	strategies []string        // in the order tried
	identical  map[string]bool // what may not be done again
	next       map[Code]int    // place in the row of a code
	last       *fault          // of the pass before
}

func newCycles(r *Request) cycles {
	return cycles{identical: map[string]bool{}, next: map[Code]int{}, strategies: []string{},
		state: Recovery{MaxAttempts: r.MaxRecovery, MaxRetryDepth: r.MaxRetryDepth}}
}

// failure is the fault as the failure map sees it.
func (a *act) failure(f *fault) Fault {
	return Fault{Code: f.code, Detail: f.detail, Stage: f.stage, Dispatched: a.res.Dispatched, Again: a.again(),
		Changed: a.changed() || f.detail == detailReverted, Never: f.detail == detailNever}
}

// note keeps the class of the latest failure.
func (a *act) note(f *fault) {
	m := a.failure(f).Failure()
	s := &a.cycles.state
	s.Class, s.Code, s.RetryAllowed = m.Class, m.Code, &m.Retryable
	a.cycles.last = f
}

// choose decides what to do about a failure, if anything: the next strategy of its
// row that is permitted, within the budgets and not the same again.
// The decision is a step of the trace, also when it is that there is none.
func (a *act) choose(f *fault) (strategy string, permitted bool) {
	a.note(f)
	row := a.situation(f).Permitted()
	why := "none_permitted"
	if f.detail == detailRestless { // further looks see more of the same
		row = nil
	}
	if len(row) > 0 {
		strategy, why = a.pick(f, row)
	}
	m := meta{"code": f.code, "class": a.cycles.state.Class}
	if f.detail != "" {
		m["detail"] = f.detail
	}
	if strategy == "" {
		m["reason"] = why
		a.tracer.add(stageRecover, stepFailure, m)
		return "", false
	}
	a.cycles.begin(strategy, f.code, row)
	a.tracer.cycle = a.cycles.state.Attempts
	m["strategy"] = strategy
	a.tracer.add(stageRecover, stepRetry, m)
	return strategy, true
}

func (a *act) situation(f *fault) Situation {
	s := Situation{Fault: a.failure(f), MoreModes: a.moreModes(), Alternates: a.alternates(f)}
	if t := a.req.Target; t != nil {
		s.ByID, s.Rebind = t.ElementID != "", a.req.Rebind
	}
	return s
}

// exactly is the score from which a candidate is meant by name, and not in part:
// an obscured Save is no licence to press Save as.
const exactly = 0.9

// alternates reports whether another candidate may be the one that is meant: for an
// ambiguous target, one that new evidence set apart.
func (a *act) alternates(f *fault) bool {
	if a.found == nil {
		return false
	}
	c := a.found.Candidates
	return len(c) > 1 && c[1].Score >= exactly && (f.code != AmbiguousTarget || c[0].Score-c[1].Score > 0.05)
}

// pick is the strategy of a row that comes next, or why there is none.
func (a *act) pick(f *fault, row []string) (strategy, why string) {
	if why := a.spent(); why != "" {
		return "", why
	}
	from := a.cycles.next[f.code]
	for i := range row {
		s := row[(from+i)%len(row)]
		if s == AlternateCandidate && !a.alternates(f) {
			continue
		}
		if a.resolves(s) && a.cycles.state.RetryDepth >= a.cycles.state.MaxRetryDepth {
			why = "max_retry_depth"
			continue
		}
		if a.cycles.identical[a.fingerprint(s, f)] {
			a.count("identical_retry_blocked_total")
			why = "identical"
			continue
		}
		a.cycles.identical[a.fingerprint(s, f)] = true
		return s, ""
	}
	return "", why
}

// spent says which limit keeps a cycle from being started; "" for none.
func (a *act) spent() string {
	switch {
	case a.cycles.state.Attempts >= a.cycles.state.MaxAttempts:
		return "max_recovery_attempts"
	case a.ctx.Err() != nil:
		return "deadline"
	}
	return ""
}

// resolves reports whether a strategy runs resolution, which retry_depth counts.
func (a *act) resolves(strategy string) bool {
	return !(strategy == RetryAdjustment && a.found != nil) && !(strategy == StateRefresh && a.res.Dispatched)
}

// fingerprint is what makes two cycles identical.
func (a *act) fingerprint(strategy string, f *fault) string {
	var node page.Ref
	if a.found != nil {
		node = a.found.Node.Ref
	}
	return fmt.Sprint(strategy, "|", f.code, "|", node, "|", a.mode(), "|", len(a.skip), "|", a.revision())
}

func (c *cycles) begin(strategy string, code Code, row []string) {
	c.state.Attempts++
	c.state.Strategy = strategy
	c.strategies = append(c.strategies, strategy)
	c.next[code] = slices.Index(row, strategy) + 1
}

// recover carries a strategy out. What was dispatched and may not be again is
// only looked at again.
func (a *act) recover(strategy string, f *fault) *fault {
	if a.resolves(strategy) {
		a.cycles.state.RetryDepth++
	}
	got := a.carry(strategy, f)
	result := stepSuccess
	if got != nil {
		result = stepFailure
	}
	a.count("recovery_total", "class", a.cycles.state.Class, "strategy", strategy, "result", result)
	return got
}

func (a *act) carry(strategy string, f *fault) *fault {
	switch strategy {
	case StateRefresh:
		if err := a.settled(); err != nil {
			return rawFault(err, f.stage)
		}
		if a.res.Dispatched {
			return a.reverify()
		}
	case AlternateCandidate:
		if a.found == nil {
			return f
		}
		a.skip[a.found.Node.Ref] = true
	case RetryAdjustment:
		if !a.nextMode() {
			return f
		}
		if a.found != nil && a.res.Dispatched {
			return a.adjustAgain()
		}
	}
	if a.res.Dispatched && !a.mayDispatch() {
		return a.reverify()
	}
	return a.pass()
}

// reverify decides the delta once more, without a dispatch.
func (a *act) reverify() *fault {
	if !a.move(Resolved) || !a.move(Pending) {
		return a.broken()
	}
	return a.verify()
}

// maxLoading is how long a page is given to end its loading.
const maxLoading = 2 * time.Second

// settled waits until the page does not say that it is loading, and no longer than
// maxLoading.
func (a *act) settled() error {
	for from := a.now(); ; {
		l, err := a.look(nil, nil)
		if err != nil {
			return err
		}
		if l != nil && l.Loading == nil || a.now()-from >= maxLoading {
			return nil
		}
		if err := a.sleep(a.set.Interval); err != nil {
			return err
		}
	}
}
