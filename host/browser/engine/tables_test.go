package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// verbTable is the table of verbs as docs/spec/browser.md writes it: category,
// annotation, idempotence. A change here raises EffectTableVersion.
const verbTable = `
open - - false
navigate Navigation side_effect true
click Selection - false
type Input local_state true
fill Input local_state true
clear Input local_state true
press Input - false
select Selection local_state true
check Selection local_state true
adjust ControlAdjustment local_state true
scroll Gesture local_state true
hover Gesture local_state true
upload Input side_effect false
wait - - false
expect - - false
extract - - false
snapshot - - false
screenshot - - false
cookies - - false
mark - - false
close - - false
`

func TestVerbTable(t *testing.T) {
	var got strings.Builder
	got.WriteByte('\n')
	for _, line := range strings.Fields(strings.ReplaceAll(strings.TrimSpace(verbTable), " ", "/")) {
		v := engine.Verb(strings.Split(line, "/")[0])
		if !v.Known() {
			t.Errorf("%s is no verb", v)
		}
		r := engine.Request{Verb: v}
		fmt.Fprintf(&got, "%s %s %s %t\n", v, or(v.Category()), or(v.Annotation()), r.Repeatable(nil))
	}
	if got.String() != verbTable {
		t.Errorf("verb table is\n%s", got.String())
	}
	if engine.Verb("eval").Known() || engine.Verb("").Known() {
		t.Error("a verb that does not exist is known")
	}
}

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// TestIdempotence: the request's word counts first, then the declared action's, then
// the table's.
func TestIdempotence(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name     string
		r        engine.Request
		declared *engine.Declared
		want     bool
	}{
		{"table", engine.Request{Verb: engine.Navigate}, nil, true},
		{"reload", engine.Request{Verb: engine.Navigate, Navigate: engine.NavigateArgs{History: "reload"}}, nil, false},
		{"back", engine.Request{Verb: engine.Navigate, Navigate: engine.NavigateArgs{History: "back"}}, nil, true},
		{"declared", engine.Request{Verb: engine.Click}, &engine.Declared{Idempotent: &yes}, true},
		{"request over declared", engine.Request{Verb: engine.Click, Idempotent: &no},
			&engine.Declared{Idempotent: &yes}, false},
		{"request over table", engine.Request{Verb: engine.Type, Idempotent: &no}, nil, false},
	} {
		if got := c.r.Repeatable(c.declared); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestEffectSources: schema, then handler, then table; a word that is none of the two
// effects is a side effect.
func TestEffectSources(t *testing.T) {
	for _, c := range []struct {
		name           string
		v              engine.Verb
		d              *engine.Declared
		handler        string
		effect, source string
	}{
		{"annotation", engine.Type, nil, engine.SideEffect, engine.LocalState, engine.FromSchema},
		{"declared over annotation", engine.Type, &engine.Declared{ActionType: engine.SideEffect}, "",
			engine.SideEffect, engine.FromSchema},
		{"declared over handler", engine.Click, &engine.Declared{ActionType: engine.LocalState}, engine.SideEffect,
			engine.LocalState, engine.FromSchema},
		{"declared without an effect", engine.Click, &engine.Declared{Name: "save"}, engine.LocalState, engine.LocalState,
			engine.FromHandler},
		{"handler", engine.Click, nil, engine.LocalState, engine.LocalState, engine.FromHandler},
		{"table", engine.Click, nil, "", engine.SideEffect, engine.FromTable},
		{"wrong word of the manifest", engine.Click, &engine.Declared{ActionType: "harmless"}, engine.LocalState,
			engine.SideEffect, engine.FromSchema},
		{"wrong word of a handler", engine.Click, nil, "none", engine.SideEffect, engine.FromHandler},
	} {
		if effect, source := engine.Effect(c.v, c.d, c.handler); effect != c.effect || source != c.source {
			t.Errorf("%s: %s by %s", c.name, effect, source)
		}
	}
}

// TestFallbackTable freezes the fallback table of effects.
func TestFallbackTable(t *testing.T) {
	local := "type, fill, clear, select, check, adjust, scroll, hover, tap, tap_element, tap_toggle, toggle_switch, swipe, drag_slider, pick, type_text, enter_text, scroll_to_element, switch_tab, expand, collapse, press_back"
	side := "open, navigate, click, press, upload, submit, submit_form, save, sync, search, refresh, login, purchase, start_app, restart_app, terminate_app, reset_app_data, install_app"
	for _, name := range strings.Split(local, ", ") {
		if got := engine.ByName(" " + strings.ToUpper(name) + "\n"); got != engine.LocalState {
			t.Errorf("%s is a %s", name, got)
		}
	}
	for _, name := range append(strings.Split(side, ", "), "", "typed", "tap tap", "eval") {
		if got := engine.ByName(name); got != engine.SideEffect {
			t.Errorf("%q is a %s", name, got)
		}
	}
	if engine.EffectTableVersion != 1 || engine.FailureMapVersion != 1 || engine.TraceVersion != 1 {
		t.Error("a version changed: change the tables of this test with it")
	}
}

// TestHandler reproduces the table of handlers row by row.
func TestHandler(t *testing.T) {
	yes := true
	expanded := page.State{Expanded: &yes}
	click := &engine.Request{Verb: engine.Click}
	for _, c := range []struct {
		name  string
		n     page.Node
		label *page.Node
		want  string
	}{
		{"submit button", page.Node{Tag: "button", Role: "button", Submits: true}, nil, engine.SideEffect},
		{"link away", page.Node{Tag: "a", Role: "link", Leaves: true}, nil, engine.SideEffect},
		{"role of a link", page.Node{Tag: "span", Role: "link"}, nil, engine.SideEffect},
		{"link that expands and leaves", page.Node{Tag: "a", Role: "link", Leaves: true, State: expanded},
			nil, engine.SideEffect},
		{"fragment link", page.Node{Tag: "a", Role: "link", Fragment: true}, nil, engine.LocalState},
		{"checkbox", page.Node{Tag: "input", Type: "checkbox", Role: "checkbox"}, nil, engine.LocalState},
		{"switch", page.Node{Role: "switch"}, nil, engine.LocalState},
		{"tab", page.Node{Role: "tab"}, nil, engine.LocalState},
		{"spin button", page.Node{Role: "spinbutton"}, nil, engine.LocalState},
		{"summary", page.Node{Tag: "summary"}, nil, engine.LocalState},
		{"menu button", page.Node{Tag: "button", Role: "button", Popup: true}, nil, engine.LocalState},
		{"accordion", page.Node{Tag: "button", Role: "button", State: expanded}, nil, engine.LocalState},
		{"label of a checkbox", page.Node{Tag: "label"}, &page.Node{Role: "checkbox"}, engine.LocalState},
		{"label of a text field", page.Node{Tag: "label"}, &page.Node{Role: "textbox"}, ""},
		{"label of a submit button", page.Node{Tag: "label"}, &page.Node{Submits: true}, ""},
		{"plain button", page.Node{Tag: "button", Role: "button"}, nil, ""},
		{"div with a listener", page.Node{Tag: "div", OwnHear: true}, nil, ""},
	} {
		if got := engine.Handler(click, &c.n, c.label); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if got := engine.Handler(&engine.Request{Verb: engine.Type}, &page.Node{Submits: true}, nil); got != "" {
		t.Errorf("type has a handler: %q", got)
	}
}

func TestHandlerOfPress(t *testing.T) {
	field, toggle := &page.Node{Role: "textbox", InForm: true}, &page.Node{Role: "checkbox"}
	for _, c := range []struct {
		chords string
		n      *page.Node
		want   string
	}{
		{"Enter", field, engine.SideEffect},
		{"Tab Enter", field, engine.SideEffect},
		{"Control+Enter", field, engine.SideEffect},
		{"Enter", &page.Node{Role: "textbox"}, ""},
		{"Enter", nil, ""},
		{"Space", toggle, engine.LocalState},
		{"Space", field, ""},
		{"Tab", nil, engine.LocalState},
		{"Shift+Tab", nil, engine.LocalState},
		{"ArrowDown ArrowDown End", field, engine.LocalState},
		{"Escape", nil, engine.LocalState},
		{"Control+Home", nil, ""},
		{"a", nil, ""},
		{"Tab x", nil, ""},
	} {
		r := &engine.Request{Verb: engine.Press, Press: engine.PressArgs{Chords: strings.Fields(c.chords)}}
		if got := engine.Handler(r, c.n, nil); got != c.want {
			t.Errorf("%s: %q", c.chords, got)
		}
	}
}

// failureMap is the map of failures. Columns: code, detail, stage, flags (d dispatched, a
// again, c changed, n never), then class, reason, retryable.
const failureMap = `
ELEMENT_NOT_FOUND - 0 - TargetResolutionFailure target_resolution_failure true
STALE_REFERENCE - 0 - TargetResolutionFailure target_resolution_failure true
AMBIGUOUS_TARGET - 0 - TargetResolutionFailure target_resolution_failure false
TIMEOUT - 0 - ExecutionFailure target_resolution_failure true
TIMEOUT - 1 - ExecutionFailure dispatch_failure true
TIMEOUT - 1 d ExecutionFailure dispatch_failure false
TIMEOUT - 2 d ExecutionFailure verification_timeout false
TIMEOUT - 2 da ExecutionFailure verification_timeout true
ACTION_REJECTED not_visible 0 - ExecutionFailure dispatch_failure true
ACTION_REJECTED zero_size 0 - ExecutionFailure dispatch_failure true
ACTION_REJECTED obscured 0 - ExecutionFailure dispatch_failure true
ACTION_REJECTED outside_viewport 0 - ExecutionFailure dispatch_failure true
ACTION_REJECTED dialog_open 0 - ExecutionFailure dispatch_failure true
ACTION_REJECTED owner_in_control 0 - ExecutionFailure dispatch_failure true
ACTION_REJECTED disabled 0 - ExecutionFailure dispatch_failure false
ACTION_REJECTED readonly 0 - ExecutionFailure dispatch_failure false
ACTION_REJECTED not_executable 0 - ExecutionFailure dispatch_failure false
ACTION_REJECTED low_confidence 0 - ExecutionFailure dispatch_failure false
ACTION_REJECTED out_of_range 0 - ExecutionFailure dispatch_failure false
ACTION_REJECTED scheme_denied 1 - ExecutionFailure dispatch_failure false
ACTION_REJECTED host_denied 1 - ExecutionFailure dispatch_failure false
ACTION_REJECTED no_trusted_events 1 d ExecutionFailure dispatch_failure false
ACTION_REJECTED - 1 - ExecutionFailure dispatch_failure false
VERIFICATION_FAILED - 2 d VerificationFailure no_state_change false
VERIFICATION_FAILED - 2 da VerificationFailure no_state_change true
VERIFICATION_FAILED - 2 dac VerificationFailure unexpected_state_delta true
VERIFICATION_FAILED - 2 dcn VerificationFailure verification_timeout false
EXPECT_STATE_MISMATCH - 2 - VerificationFailure no_state_change true
EXPECT_STATE_MISMATCH - 2 c VerificationFailure unexpected_state_delta true
CONTROL_CONVERGENCE_FAILED - 2 d ControlConvergenceFailure no_state_change true
CONTROL_CONVERGENCE_FAILED - 2 dc ControlConvergenceFailure unexpected_state_delta true
SEMANTIC_MISMATCH - 0 - SemanticMismatchFailure unexpected_state_delta false
UNKNOWN surface_lost 1 d ExecutionFailure dispatch_failure false
`

func TestFailureMap(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(failureMap), "\n") {
		var code, detail, flags, class, reason string
		var stage int
		var retryable bool
		if _, err := fmt.Sscan(line, &code, &detail, &stage, &flags, &class, &reason, &retryable); err != nil {
			t.Fatal(line, err)
		}
		f := engine.Fault{Code: engine.Code(code), Detail: strings.Trim(detail, "-"), Stage: engine.Stage(stage),
			Dispatched: strings.Contains(flags, "d"), Again: strings.Contains(flags, "a"), Changed: strings.Contains(flags, "c"),
			Never: strings.Contains(flags, "n")}
		if got, want := f.Failure(),
			(engine.Failure{Code: f.Code, Class: class, Reason: reason, Retryable: retryable}); got != want {
			t.Errorf("%s\n got %+v", line, got)
		}
	}
	want := engine.Failure{Code: engine.Unknown, Class: engine.ExecutionFailure, Reason: engine.ReasonDispatch}
	for _, code := range []engine.Code{"", "surface_lost", "timeout", "element_not_found"} {
		if got := (engine.Fault{Code: code, Again: true}).Failure(); got != want {
			t.Errorf("code %q: %+v", code, got)
		}
	}
}

// TestLifecycle tries every pair of states.
func TestLifecycle(t *testing.T) {
	allowed := []string{
		">resolved", ">failed", "resolved>dispatched", "resolved>failed", "resolved>pending_verification",
		"dispatched>pending_verification", "dispatched>failed", "pending_verification>verified",
		"pending_verification>failed",
	}
	again := []string{">resolved", "resolved>resolved", "dispatched>resolved", "pending_verification>resolved"}
	states := []string{"", "resolved", "dispatched", "pending_verification", "verified", "failed", "done"}
	for _, from := range states {
		for _, to := range states {
			move := from + ">" + to
			if got := engine.CanMove(from, to, false); got != slices.Contains(allowed, move) {
				t.Errorf("%s: %t", move, got)
			}
			if from == "done" {
				continue
			}
			want := slices.Contains(allowed, move) || slices.Contains(again, move)
			if got := engine.CanMove(from, to, true); got != want {
				t.Errorf("%s in a new cycle: %t", move, got)
			}
		}
	}
	for _, s := range states {
		if got := engine.Final(s); got != (s == "verified" || s == "failed") {
			t.Errorf("%q final: %t", s, got)
		}
	}
}

// TestClassify reproduces the classifier, first match wins, with one row for each line and the
// lines that lose to an earlier one.
func TestClassify(t *testing.T) {
	yes, no := true, false
	good, bad := page.RequestSeen{Endpoint: "/save", Status: 200, Verdict: "success"},
		page.RequestSeen{Endpoint: "/save", Status: 500, Verdict: "retryable"}
	for _, c := range []struct {
		name, outcome, says string
		e                   engine.Evidence
	}{
		{"expected visible", "success", "expected_visible",
			engine.Evidence{ExpectedVisible: &yes, Changed: true, Requests: []page.RequestSeen{bad}}},
		{"changed", "success", "ui_changed",
			engine.Evidence{Changed: true, ExpectedVisible: &no, Requests: []page.RequestSeen{bad}}},
		{"nothing known of the action", "unknown", "not supplied", engine.Evidence{Requests: []page.RequestSeen{bad}}},
		{"failing request", "backend_failure", "/save answered with status 500",
			engine.Evidence{Action: engine.Click, Requests: []page.RequestSeen{good, bad}}},
		{"failing request of a local action", "backend_failure", "/save",
			engine.Evidence{ActionType: engine.LocalState, Requests: []page.RequestSeen{bad}}},
		{"local", "no_op", "expect", engine.Evidence{ActionType: engine.LocalState}},
		{"side effect without requests", "unknown", "not supplied", engine.Evidence{ActionType: engine.SideEffect}},
		{"side effect with none made", "no_op", "no requests",
			engine.Evidence{ActionType: engine.SideEffect, Requests: []page.RequestSeen{}}},
		{"all good", "ui_failure", "succeeded",
			engine.Evidence{ActionType: engine.SideEffect, Requests: []page.RequestSeen{good}}},
		{"else", "unknown", "clear",
			engine.Evidence{ActionType: engine.SideEffect, Requests: []page.RequestSeen{{Verdict: "pending"}}}},
		{"log errors", "no_op", "logged 2", engine.Evidence{ActionType: engine.LocalState, LogErrors: 2}},
	} {
		got := engine.Classify(c.e)
		if got.Outcome != c.outcome || !strings.Contains(got.Reasoning, c.says) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := engine.Classify(engine.Evidence{ActionType: engine.LocalState}).Reasoning; strings.Contains(got,
		"request") || strings.Contains(got, "network") {
		t.Errorf("a local action is told to look at traffic: %s", got)
	}
}

// strategyTable is the strategies of recovery with their gates. Columns: code, detail,
// flags (d dispatched, a again, i by id, r rebind, A alternates, m more modes), then
// what is permitted.
const strategyTable = `
ELEMENT_NOT_FOUND - - state_refresh,re_resolve
STALE_REFERENCE - - re_resolve,state_refresh
STALE_REFERENCE - i -
STALE_REFERENCE - ir re_resolve,state_refresh
AMBIGUOUS_TARGET - - re_resolve
AMBIGUOUS_TARGET - A re_resolve
AMBIGUOUS_TARGET - Aa re_resolve,alternate_candidate
TIMEOUT - - state_refresh
TIMEOUT - m state_refresh,retry_adjustment
TIMEOUT - dm state_refresh
TIMEOUT - dam state_refresh,retry_adjustment
UNKNOWN - - state_refresh,re_resolve
UNKNOWN - d -
UNKNOWN - da state_refresh,re_resolve
UNKNOWN surface_lost da -
UNKNOWN internal - -
ACTION_REJECTED obscured - state_refresh,alternate_candidate
ACTION_REJECTED not_visible - state_refresh
ACTION_REJECTED zero_size - state_refresh
ACTION_REJECTED outside_viewport - state_refresh
ACTION_REJECTED dialog_open - -
ACTION_REJECTED owner_in_control - -
ACTION_REJECTED disabled - -
ACTION_REJECTED no_trusted_events da -
VERIFICATION_FAILED - d state_refresh
VERIFICATION_FAILED - da state_refresh,step_back
EXPECT_STATE_MISMATCH - da state_refresh,step_back
CONTROL_CONVERGENCE_FAILED - dam retry_adjustment
CONTROL_CONVERGENCE_FAILED - da -
CONTROL_CONVERGENCE_FAILED - dm -
SEMANTIC_MISMATCH - - state_refresh
SEMANTIC_MISMATCH - A state_refresh,alternate_candidate
`

func TestStrategies(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(strategyTable), "\n") {
		f := strings.Fields(line)
		has := func(c string) bool { return strings.Contains(f[2], c) }
		s := engine.Situation{Fault: engine.Fault{Code: engine.Code(f[0]), Detail: strings.Trim(f[1], "-"),
			Dispatched: has("d"), Again: has("a")},
			ByID: has("i"), Rebind: has("r"), Alternates: has("A"), MoreModes: has("m")}
		if got := strings.Join(s.Permitted(), ","); got != strings.Trim(f[3], "-") {
			t.Errorf("%s\n got %s", line, got)
		}
	}
}

// TestNeverTwice: whatever went wrong, no strategy that dispatches is permitted for an
// action that was dispatched and may not be again.
func TestNoSecondEffect(t *testing.T) {
	codes := []engine.Code{engine.ElementNotFound, engine.StaleReference, engine.AmbiguousTarget, engine.Timeout,
		engine.ActionRejected,
		engine.VerificationFailed, engine.ExpectMismatch, engine.ConvergenceFailed, engine.SemanticMismatch,
		engine.Unknown, "ELSE"}
	for _, code := range codes {
		for _, detail := range []string{"", "obscured", "not_visible", "internal"} {
			s := engine.Situation{Fault: engine.Fault{Code: code, Detail: detail, Dispatched: true}, Alternates: true,
				MoreModes: true, Rebind: true}
			for _, name := range s.Permitted() {
				dispatches := name == engine.StepBack || name == engine.RetryAdjustment || name == engine.AlternateCandidate
				if dispatches {
					t.Errorf("%s %s: %s", code, detail, name)
				}
			}
		}
	}
}
