package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/host/browser/page"
)

// ExpectReply is the reply of expect.
type ExpectReply struct {
	Success       bool          `json:"success"`
	ActionID      string        `json:"action_id"`
	ElementID     *string       `json:"element_id"`
	ExpectedState ExpectedState `json:"expected_state"`
	ObservedState ObservedState `json:"observed_state"`
	Observed      Matches       `json:"observed"`
	Predicates    []Observed    `json:"predicates"`
	Comparison    Comparison    `json:"comparison"`
	Reason        string        `json:"reason"`
	FailureCode   *Code         `json:"failure_code,omitempty"`
	FailureReason string        `json:"failure_reason,omitempty"`
	Detail        string        `json:"detail,omitempty"`
	Retryable     *bool         `json:"retryable,omitempty"`
	Confidence    *int          `json:"confidence,omitempty"`
	Stability
	Revision int64 `json:"snapshot_revision"`
	Trace    Trace `json:"trace"`
	// Downloads lists downloads that the action began, or that ended since the last reply, and
	// whose end was not reported before.
	Downloads []any `json:"downloads,omitempty"`
}

// ExpectedState is the state that was asserted.
type ExpectedState struct {
	Property string          `json:"property"`
	Expected json.RawMessage `json:"expected"`
}

// ObservedState is the observed state for the first part of the predicate.
type ObservedState struct {
	Property string          `json:"property"`
	Value    json.RawMessage `json:"value"`
	RawValue *string         `json:"raw_value,omitempty"`
}

// Matches describes what a target matched.
type Matches struct {
	Matched       int      `json:"matched_count"`
	Satisfied     bool     `json:"condition_satisfied"`
	SelectedIndex *int     `json:"selected_index"`
	Last          *Element `json:"last_matched_element"`
}

// Comparison says what was compared.
type Comparison struct {
	Basis   string `json:"basis"` // state, fingerprint, screen or none
	Matched bool   `json:"matched"`
	Reason  string `json:"reason"`
}

// An assertion is a running expect.
type assertion struct {
	*verb
	set     Settings
	about   *deferred // the action that it decides; may be nil
	base    *past     // what it compares with; may be nil
	now     *Look
	verdict *Verdict
	held    bool // in the latest look
	self    page.Ref
	target  *Target
}

// expect decides about an outcome authoritatively. It recovers nothing, since it has done nothing.
func (v *verb) expect() (any, *Refusal) {
	x := assertion{verb: v, set: v.settings(false), about: v.take(v.req.ExpectArgs.ActionID),
		base: v.past(v.req.ExpectArgs.ActionID), target: v.req.Target}
	if x.about != nil {
		v.tracer.id = x.about.act.res.ActionID
		x.self = x.about.act.node()
		x.target = cmp.Or(x.target, x.about.act.req.Target)
	} else if id := v.req.ExpectArgs.ActionID; id != "" {
		v.tracer.id = id
	}
	from := v.now()
	r := v.decided(x.set, wait{x.unanswered, x.working}, x.once)
	for r.outcome != holds && r.outcome != cut && v.now()-from < v.req.ExpectArgs.Timeout {
		r = x.once()
	}
	if refuses(r.err) {
		return nil, x.refuse(r.err)
	}
	reply := x.reply(r)
	v.succeeded = reply.Success
	if x.about != nil {
		x.decide(r, reply)
	}
	v.record(nil)
	return reply, nil
}

// refuses reports whether an error ends a check without a verdict.
func refuses(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, errLease) || errors.Is(err, page.ErrSelector)
}

// refuse ends a check that could not be made. Its action stays undecided, unless the surface is
// lost.
func (x *assertion) refuse(err error) *Refusal {
	x.tracer.add(stageVerify, stepFailure, meta{"cut": err.Error()})
	x.record(nil)
	if errors.Is(err, errLease) {
		return x.owned()
	}
	if errors.Is(err, page.ErrSelector) {
		return x.unselected()
	}
	return lostRefusal(x.req.Verb)
}

func (x *assertion) once() run {
	return x.stabilise(x.set, func() (*Look, error) {
		var refs []page.Ref
		if x.self != "" {
			refs = append(refs, x.self)
		}
		q := x.want([]*Target{x.target}, []*Predicate{x.req.Expect}, refs...)
		q.Again = true
		return x.lookFor(q)
	}, func(l *Look) bool {
		x.now = l
		s := Scene{Now: l, Self: x.self, Target: x.target, Identity: x.opt.Identity}
		if x.base != nil {
			s.Before, s.Happened = x.base.before, x.tab.Happened(x.base.mark)
		}
		x.verdict = s.Evaluate(x.req.Expect)
		x.held = x.verdict.Truth == True && !x.unanswered() && !x.working()
		return x.held
	})
}

// working reports whether what is asserted is still in the middle of a change.
func (x *assertion) working() bool {
	return x.base != nil && x.base.act != nil && x.verb.working(x.verdict, x.held, x.base.act.sentAt, x.set)
}

// unanswered reports whether the action may show something before its server answered.
func (x *assertion) unanswered() bool {
	return x.base != nil && x.base.act != nil && x.verb.unanswered(x.base.mark, x.base.act.sentAt, x.set)
}

// decide settles the deferred action that the expect is about.
func (x *assertion) decide(r run, reply *ExpectReply) {
	a := x.about.act
	x.about.stop()
	a.res.Verification.Delta, a.res.Verification.Observed = describe(x.req.Expect), reply.Predicates
	a.res.Verification.Stability = reply.Stability
	a.tracer.steps = append(a.tracer.steps, x.tracer.steps...)
	for i := range a.tracer.steps {
		a.tracer.steps[i].Index = i
	}
	if x.now != nil {
		a.after = x.now
	}
	a.proof.verdict, a.delta = x.verdict, x.req.Expect
	var f *fault
	if r.outcome != holds {
		f = a.proof.undecidedBy(r)
	}
	x.settle(x.about, f)
}

func (x *assertion) reply(r run) *ExpectReply {
	p := x.req.Expect
	leaf := p
	for len(leaf.Of) > 0 {
		leaf = &leaf.Of[0]
	}
	out := &ExpectReply{Success: r.outcome == holds, ActionID: x.tracer.id, Predicates: []Observed{},
		Stability:     stability(x.set, r),
		ExpectedState: ExpectedState{leaf.Kind, wantedState(leaf)},
		ObservedState: ObservedState{Property: leaf.Kind, Value: json.RawMessage("null")},
		Comparison:    Comparison{Basis: basis(leaf.Kind), Matched: r.outcome == holds}}
	if x.verdict != nil {
		out.Predicates = x.verdict.Observed(nil)
		first := out.Predicates[0]
		if first.Value != nil {
			out.ObservedState.Value = first.Value
		}
		out.Observed.Matched, out.Detail = first.Matched, first.Detail
	}
	out.Observed.Satisfied = out.Success
	x.element(leaf, out)
	if x.now != nil {
		out.Revision = x.now.Revision
	}
	out.Reason = reasonOf(leaf, out)
	out.Comparison.Reason = out.Reason
	if out.Comparison.Basis == "fingerprint" || out.Comparison.Basis == "screen" {
		sure := 0
		if out.Success {
			sure = 1
		}
		out.Confidence = &sure
	}
	if !out.Success {
		x.fail(r, leaf, out)
	}
	out.Trace = x.tracer.trace(out.Success)
	if x.base != nil {
		out.Downloads = x.offered(x.tab, x.base.mark)
	} else {
		out.Downloads = x.ended()
	}
	return out
}

// fail fills in why an expectation was not met.
func (x *assertion) fail(r run, leaf *Predicate, out *ExpectReply) {
	code := ExpectMismatch
	switch {
	case r.outcome != mismatch, leaf.Kind == "visible", leaf.Kind == "exists":
		code = Timeout
	case x.verdict.Absent():
		code = ElementNotFound
	}
	f := Fault{Code: code, Stage: StageVerify}.Failure()
	yes := true // an expect only reads
	out.FailureCode, out.FailureReason, out.Retryable = &f.Code, f.Reason, &yes
}

// element fills in what the target of the first part matched.
func (x *assertion) element(leaf *Predicate, out *ExpectReply) {
	t := cmp.Or(leaf.Target, x.target)
	if t == nil || x.now == nil {
		return
	}
	found, _ := x.now.Resolve(x.opt.Identity, t, ResolveOptions{Hidden: true})
	if found == nil {
		return
	}
	out.ElementID, out.Observed.Last = &found.Element.ElementID, &found.Element
	out.ObservedState.RawValue = found.Node.State.RawValue
	if found.Node.Secret {
		out.ObservedState.RawValue = nil
	}
}

// basis returns what a kind of predicate compares.
func basis(kind string) string {
	switch kind {
	case "fingerprint", "any_change":
		return "fingerprint"
	case "url", "title", "navigation":
		return "screen"
	case "download", "tab":
		return "none"
	}
	return "state"
}

// wantedState returns what a predicate asserts: its equals member, or all of it but its target.
func wantedState(p *Predicate) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(describe(p), &members) != nil {
		return null
	}
	if equals, ok := members["equals"]; ok {
		return equals
	}
	delete(members, "kind")
	delete(members, "target")
	if len(members) == 0 {
		return json.RawMessage("true")
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return null
	}
	return raw
}

// reasonOf says briefly why an expectation ended as it did.
func reasonOf(p *Predicate, out *ExpectReply) string {
	switch {
	case out.Success && p.Kind == "visible":
		return "selector is visible"
	case out.Success:
		return p.Kind + " matches expected value"
	case bytes.Equal(out.ObservedState.Value, []byte("null")):
		return p.Kind + " state unavailable"
	}
	return fmt.Sprintf("%s expected %s, observed %s", p.Kind, out.ExpectedState.Expected, out.ObservedState.Value)
}
