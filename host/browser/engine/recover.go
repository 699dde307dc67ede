package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// recovery is the recovery state of one action.
type recovery struct {
	*act
	state      Recovery
	strategies []string        // in the order tried
	identical  map[string]bool // cycles that may not be repeated
	next       map[Code]int    // position in the row of strategies, by code
	last       *fault          // of the previous pass
}

func newRecovery(a *act) recovery {
	return recovery{act: a, identical: map[string]bool{}, next: map[Code]int{}, strategies: []string{},
		state: Recovery{MaxAttempts: a.req.MaxRecovery, MaxRetryDepth: a.req.MaxRetryDepth}}
}

// failure returns the fault as input for the failure map.
func (r *recovery) failure(f *fault) Fault {
	return Fault{Code: f.code, Detail: f.detail, Stage: f.stage, Dispatched: r.res.Dispatched, Again: r.again(),
		Changed: r.changed() || f.detail == detailReverted, Never: f.detail == detailNever}
}

// note stores the class of the latest failure.
func (r *recovery) note(f *fault) {
	m := r.failure(f).Failure()
	s := &r.state
	s.Class, s.Code, s.RetryAllowed = m.Class, m.Code, &m.Retryable
	r.last = f
}

// choose decides how to recover from a failure: the next permitted strategy of its row that is
// within the budgets and would not repeat a cycle. The decision is recorded in the trace, also when
// there is no strategy.
func (r *recovery) choose(f *fault) (strategy string, permitted bool) {
	r.note(f)
	row := r.situation(f).Permitted()
	why := "none_permitted"
	if f.detail == detailRestless { // further looks would see the same
		row = nil
	}
	if len(row) > 0 {
		strategy, why = r.pick(f, row)
	}
	m := meta{"code": f.code, "class": r.state.Class}
	if f.detail != "" {
		m["detail"] = f.detail
	}
	if strategy == "" {
		m["reason"] = why
		r.tracer.add(stageRecover, stepFailure, m)
		return "", false
	}
	r.begin(strategy, f.code, row)
	r.tracer.cycle = r.state.Attempts
	m["strategy"] = strategy
	r.tracer.add(stageRecover, stepRetry, m)
	return strategy, true
}

func (r *recovery) situation(f *fault) Situation {
	s := Situation{Fault: r.failure(f), MoreModes: hasMoreModes(r.act), Alternates: r.alternates(f)}
	if t := r.req.Target; t != nil {
		s.ByID, s.Rebind = t.ElementID != "", r.req.Rebind
	}
	return s
}

// exactly is the score from which a candidate was named in full. An obscured Save is no licence to
// press Save as.
const exactly = 0.9

// alternates reports whether another candidate may be tried. For an ambiguous target, new evidence
// must have separated them.
func (r *recovery) alternates(f *fault) bool {
	if r.found == nil {
		return false
	}
	c := r.found.Candidates
	return len(c) > 1 && c[1].Score >= exactly && (f.code != AmbiguousTarget || c[0].Score-c[1].Score > 0.05)
}

// pick returns the next strategy of a row, or why there is none.
func (r *recovery) pick(f *fault, row []string) (strategy, why string) {
	if why := r.spent(); why != "" {
		return "", why
	}
	from := r.next[f.code]
	for i := range row {
		s := row[(from+i)%len(row)]
		if s == AlternateCandidate && !r.alternates(f) {
			continue
		}
		if r.resolves(s) && r.state.RetryDepth >= r.state.MaxRetryDepth {
			why = "max_retry_depth"
			continue
		}
		if r.identical[r.fingerprint(s, f)] {
			r.count("identical_retry_blocked_total")
			why = "identical"
			continue
		}
		r.identical[r.fingerprint(s, f)] = true
		return s, ""
	}
	return "", why
}

// spent returns the limit that prevents another cycle, or "" if there is none.
func (r *recovery) spent() string {
	switch {
	case r.state.Attempts >= r.state.MaxAttempts:
		return "max_recovery_attempts"
	case r.ctx.Err() != nil:
		return "deadline"
	}
	return ""
}

// resolves reports whether a strategy runs resolution, which counts towards retry_depth.
func (r *recovery) resolves(strategy string) bool {
	return !(strategy == RetryAdjustment && r.found != nil) && !(strategy == StateRefresh && r.res.Dispatched)
}

// fingerprint returns a text that is equal for identical cycles.
func (r *recovery) fingerprint(strategy string, f *fault) string {
	var node page.Ref
	if r.found != nil {
		node = r.found.Node.Ref
	}
	return fmt.Sprint(strategy, "|", f.code, "|", node, "|", adjustMode(r.act), "|", len(r.skip), "|", r.revision())
}

func (r *recovery) begin(strategy string, code Code, row []string) {
	r.state.Attempts++
	r.state.Strategy = strategy
	r.strategies = append(r.strategies, strategy)
	r.next[code] = slices.Index(row, strategy) + 1
}

// recover carries out a strategy. A dispatched action that may not be repeated is only verified
// again.
func (r *recovery) recover(strategy string, f *fault) *fault {
	if r.resolves(strategy) {
		r.state.RetryDepth++
	}
	got := r.carry(strategy, f)
	result := stepResult(got == nil, stepFailure)
	r.count("recovery_total", "class", r.state.Class, "strategy", strategy, "result", result)
	return got
}

func (r *recovery) carry(strategy string, f *fault) *fault {
	switch strategy {
	case StateRefresh:
		if err := r.settled(); err != nil {
			return rawFault(err, f.stage)
		}
		if r.res.Dispatched {
			return r.reverify()
		}
	case AlternateCandidate:
		if r.found == nil {
			return f
		}
		r.skip[r.found.Node.Ref] = true
	case RetryAdjustment:
		if !nextMode(r.act) {
			return f
		}
		if r.found != nil && r.res.Dispatched {
			return adjustAgain(r.act)
		}
	}
	if r.res.Dispatched && !r.mayDispatch() {
		return r.reverify()
	}
	return r.pass()
}

// reverify verifies the delta again without a dispatch.
func (r *recovery) reverify() *fault {
	if !r.move(Resolved) || !r.move(Pending) {
		return r.broken()
	}
	return r.proof.verify()
}

// maxLoading is how long to wait for a page to finish loading.
const maxLoading = 2 * time.Second

// settled waits until the page no longer counts as loading, at most maxLoading.
func (r *recovery) settled() error {
	_, err := r.watch(maxLoading, nil, func(l *Look) bool { return l.Loading == nil })
	return err
}
