package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// fail ends an action that cannot be recovered.
func (a *act) fail(f *fault) {
	a.told()
	a.recovery.note(f)
	m := a.recovery.failure(f).Failure()
	a.move(Failed)
	a.res.FailureCode, a.res.FailureReason, a.res.Retryable = &m.Code, &m.Reason, &m.Retryable
	if f.detail != "" {
		a.res.Detail = &f.detail
	}
	s := &a.recovery.state
	s.Terminal = true
	a.res.Terminal = &Terminal{Class: m.Class, Code: m.Code, Strategies: a.recovery.strategies,
		Attempts: s.Attempts, FinalState: Failed}
	if a.res.Target != nil {
		a.res.Terminal.Target = a.res.Target.Resolved
	}
	a.nearMisses(f)
	a.diagnose(f)
}

// maxNear bounds how many elements are searched for near misses.
const maxNear = 1000

// nearMisses lists elements that may have been meant where nothing matched.
func (a *act) nearMisses(f *fault) {
	t := a.req.Target
	if f.code != ElementNotFound || f.detail != "" || t == nil || t.Selector == nil || a.res.Target == nil {
		return
	}
	if r := a.res.Target.Resolution; r != nil && len(r.Alternates) > 0 {
		return
	}
	l, err := a.lookFor(page.Query{All: true, Limit: maxNear, Patient: true})
	if err != nil || l == nil { // the failure is reported without them
		return
	}
	if near := l.NearMisses(a.opt.Identity, t.Selector); len(near) > 0 {
		a.res.Target.Resolution = &Resolution{Alternates: near}
	}
}

// diagnose records why an action failed, once nothing more will be tried. Traffic and logs are read
// only where the effect allows it.
func (a *act) diagnose(f *fault) {
	v := &a.res.Verification
	if f.stage != StageVerify && !a.res.Dispatched {
		return
	}
	v.Result = "inconclusive"
	if v.Reason == "" || f.detail == detailNever {
		v.Reason = reason(f)
	}
	v.Ambiguous = a.proof.verdict != nil && a.proof.verdict.Ambiguous()
	e := Evidence{Failed: true, Changed: a.changed(), Action: a.req.Verb, ActionType: a.res.ActionType}
	switch {
	case a.res.ActionType == LocalState:
		v.Diagnostics = withheld("local_state")
	case !v.Ambiguous:
		v.Diagnostics = withheld("not_ambiguous")
	default:
		d := a.inspect(a.tab, a.mark, a.res.ActionType)
		v.Diagnostics, e.Requests, e.LogErrors = d, d.Requests, d.LogErrors
	}
	v.Classification = Classify(e)
}

func withheld(why string) any { return map[string]string{"withheld": why} }

// Diagnostics lists a page's requests as a hint.
type Diagnostics struct {
	Requests  []page.RequestSeen `json:"requests"`
	LogErrors int                `json:"log_errors"`
	Since     int64              `json:"since"`
}

// inspect reads traffic and logs. Its counter stays 0 for local_state.
func (e *Engine) inspect(tab page.Tab, since page.Mark, effect string) Diagnostics {
	e.count("network_inspections_total", "action_type", effect)
	d := Diagnostics{Requests: tab.Requests(since), Since: int64(since)}
	if d.Requests == nil {
		d.Requests = []page.RequestSeen{}
	}
	for _, l := range tab.Console(maxConsole) {
		if l.Level == "error" {
			d.LogErrors++
		}
	}
	return d
}

func reason(f *fault) string { return cmp.Or(f.detail, string(f.code)) }

// changed reports whether the page, or for adjust the value, differs from before the dispatch.
func (a *act) changed() bool {
	if w, ok := a.work.(*adjusting); ok {
		n := a.current()
		return n != nil && n.State.Value != nil && !same64(*n.State.Value, w.pre)
	}
	return a.before != nil && a.after != nil && a.before.Digests != a.after.Digests
}

// current returns the target as last seen, or nil if it was not seen.
func (a *act) current() *page.Node {
	for _, l := range []*Look{a.after, a.before} {
		if l != nil {
			if n := l.Node(a.node()); n != nil {
				return n
			}
		}
	}
	return nil
}

// lastLook returns the latest look at the page, or nil if there is none.
func (a *act) lastLook() *Look { return cmp.Or(a.after, a.before) }

func (a *act) revision() int64 {
	if l := a.lastLook(); l != nil {
		return l.Revision
	}
	return 0
}

// finish fills in the parts of the reply beside the outcome.
func (a *act) finish() {
	a.told()
	if a.res.State == Pending {
		a.res.Verification.Result, a.res.Verification.Reason = "deferred", "no delta declared"
		a.res.Verification.Classification = Classify(Evidence{Action: a.req.Verb, ActionType: a.res.ActionType})
	}
	if a.res.Intent == "" {
		a.res.Intent = a.req.DefaultIntent("")
	}
	if a.kind.tell != nil {
		a.kind.tell(a)
	}
	a.tellHappened()
	a.details["dispatches"] = a.dispatches
	a.res.Details = a.details
	a.res.FingerprintBefore, a.res.FingerprintAfter = fingerprint(a.before), fingerprint(a.after)
	a.res.SnapshotRevision = a.revision()
	if s := a.recovery.state; s.Code != "" {
		a.res.Recovery = &s
	}
	if a.res.Verification.Delta == nil {
		a.res.Verification.Delta = json.RawMessage("null")
	}
	a.res.Tabs = a.tabs(a.tab)
	a.res.Trace = a.tracer.trace(a.res.Success)
}

// maxTab is how long to wait for a tab that the page asked for.
const maxTab = 2 * time.Second

// went returns what happened on the tab, once the tabs that it asked for are open.
func (a *act) went() page.Happened {
	from := a.now()
	_ = a.during(func() bool { // if cut short, what is known is reported
		h := a.tab.Happened(a.mark)
		return h.Opening > len(h.Popups) && a.now()-from < maxTab && a.now() < a.latest(a.set)
	})
	return a.tab.Happened(a.mark)
}

// tellHappened adds what happened on the tab to the details.
func (a *act) tellHappened() {
	if a.dispatches == 0 {
		return
	}
	h := a.went()
	if a.req.Verb == Click || len(h.Popups) > 0 {
		a.details["popups"] = append([]page.Popup{}, h.Popups...)
	}
	if a.req.Verb == Click {
		a.details["dialog"] = nil
	}
	if n := len(h.Dialogs); n > 0 {
		d := h.Dialogs[n-1]
		a.details["dialog"] = map[string]any{"type": d.Type, "message_length": d.Length, "answer": d.Answer}
	}
	if list := a.offered(a.tab, a.mark); a.req.Verb == Click || len(list) > 0 {
		a.details["downloads"] = list
	}
	if h.Dropped > 0 {
		a.details["external_protocols_dropped"] = h.Dropped
	}
}

func fingerprint(l *Look) *string {
	if l == nil || l.Fingerprint == "" {
		return nil
	}
	return &l.Fingerprint
}

// report counts a finished action and signals it.
func (a *act) report() {
	result := "verified"
	if a.res.FailureCode != nil {
		result = "failed"
	}
	a.count("actions_total", "action", string(a.res.Action), "category", a.res.Category, "action_type",
		a.res.ActionType, "result", result)
	if a.res.Success && a.recovery.state.Attempts == 0 {
		a.count("first_pass_verified_total")
	}
	a.tell(a.res.Verification.Result)
	a.record(a.res)
}

// tell signals how an action ended.
func (a *act) tell(result string) {
	if a.opt.Signal == nil {
		return
	}
	s := Signal{
		ActionID: a.res.ActionID, Action: a.res.Action, Category: a.res.Category, ActionType: a.res.ActionType,
		Transitions: a.res.Transitions, Verification: result, Attempts: a.tracer.trace(false).Attempts,
		DurationMS: (a.now() - a.started).Milliseconds(), Revision: a.revision(), URLHost: a.tab.Facts().Host,
	}
	if a.found != nil {
		s.TargetID, s.Role = cmp.Or(a.found.Element.StableID, a.found.Element.ElementID), a.found.Element.Role
	}
	if a.res.FailureCode != nil {
		s.Code, s.Reason, s.Class = *a.res.FailureCode, *a.res.FailureReason, a.res.Terminal.Class
	}
	a.opt.Signal(s)
}

// amend hands over the trace of an action again, after its reported outcome changed.
func (a *act) amend() {
	if a.opt.Trace != nil {
		a.opt.Trace(Record{Verb: a.req.Verb, Tab: a.tab.ID(), URLHost: a.tab.Facts().Host, Result: a.res,
			Trace: a.res.Trace, Amended: true})
	}
}

// record hands over the trace of a verb once its outcome is settled.
func (v *verb) record(r *Result) {
	if v.opt.Trace == nil {
		return
	}
	rec := Record{Verb: v.req.Verb, Tab: v.tab.ID(), URLHost: v.tab.Facts().Host, Result: r}
	if rec.Trace = v.tracer.trace(r != nil && r.Success); r == nil && v.succeeded {
		rec.Trace.Outcome = stepSuccess
	}
	v.opt.Trace(rec)
}

// The stages and results of steps.
const (
	stageResolve   = "resolve"
	stageExecute   = "execute"
	stageVerify    = "verify"
	stageStabilize = "stabilize"
	stageRecover   = "recover"

	stepSuccess = "success"
	stepFailure = "failure"
	stepRetry   = "retry"
)

const (
	maxMeta  = 2 << 10 // bytes of JSON of one step's metadata
	maxSteps = 400     // steps of one trace; the last one says how many were left out
)

// meta is the metadata of a step: ids, codes, counts and timings, and no text of the page or the
// guest.
type meta = map[string]any

// A tracer collects the steps of one verb in memory and has no other effect.
type tracer struct {
	id       string
	steps    []Step
	attempts int // passes through execution
	cycle    int
	omitted  int
}

// add appends a step. Once there are too many, reads that decide nothing are left out and counted.
func (t *tracer) add(stage, result string, m meta) {
	if stage == stageVerify && result == stepRetry && len(t.steps) >= maxSteps {
		t.omitted++
		return
	}
	if t.omitted > 0 && stage == stageStabilize {
		m["omitted"] = t.omitted
	}
	t.steps = append(t.steps, Step{Stage: stage, At: time.Now().UnixMilli(), Result: result,
		Index: len(t.steps), CycleID: t.cycle, Meta: bounded(m)})
}

// trace returns the collected steps.
func (t *tracer) trace(success bool) Trace {
	outcome := stepResult(success, stepFailure)
	return Trace{ActionID: t.id, Steps: t.steps, Outcome: outcome, Attempts: max(t.attempts, 1)}
}

// stepResult returns success or the other result.
func stepResult(success bool, otherwise string) string {
	if success {
		return stepSuccess
	}
	return otherwise
}

// bounded drops members until the metadata fits: extra first, then from the end of the alphabet.
func bounded(m meta) meta {
	for len(m) > 0 && metaSize(m) > maxMeta {
		if _, ok := m["extra"]; ok {
			delete(m, "extra")
			continue
		}
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		delete(m, slices.Max(keys))
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

func metaSize(m meta) int {
	b, err := json.Marshal(m)
	if err != nil {
		return maxMeta + 1
	}
	return len(b)
}
