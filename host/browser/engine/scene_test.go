package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// sheet has one of everything that a predicate can ask for.
func sheet() *engine.Look {
	option := page.Option{ID: "dark", Label: "Dark mode"}
	nodes := []page.Node{
		{Ref: "status", Tag: "p", Role: "status", Text: "All  Saved"},
		{Ref: "slider", Tag: "input", Type: "range", Role: "slider", Native: true,
			State: page.State{Value: pointer(50.0), RawValue: pointer("50%"), Range: &page.Range{Max: 100}}},
		{Ref: "field", Tag: "input", Role: "textbox", NameAtt: "mail", Native: true, Editable: true,
			State: page.State{TextValue: pointer("ada"), Focused: pointer(true), Enabled: pointer(true)}},
		{Ref: "empty", Tag: "textarea", Role: "textbox", NameAtt: "note", Native: true,
			State: page.State{TextValue: pointer("")}},
		{Ref: "box", Tag: "input", Type: "checkbox", Role: "checkbox", Native: true,
			State: page.State{Checked: pointer(false)}, Label: "Agree"},
		{Ref: "menu", Tag: "button", Role: "button", Name: "Menu", Native: true,
			State: page.State{Expanded: pointer(true), Enabled: pointer(false)}, Disabled: true,
			Attributes: map[string]string{"data-state": "open"}},
		{Ref: "theme", Tag: "select", Role: "combobox", Native: true, State: page.State{Selected: &option}},
		{Ref: "tab", Tag: "li", Role: "tab", Text: "Two", State: page.State{Chosen: pointer(true)}, Hovered: true},
		{Ref: "files", Tag: "input", Type: "file", TestID: "upload", Native: true, Files: []string{"a.pdf", "b.pdf"}},
		{Ref: "list", Tag: "div", Role: "list", Scroll: page.Point{Y: 10}, InView: true},
		{Ref: "item1", Up: "list", Tag: "div", Role: "listitem", Text: "One"},
		{Ref: "item2", Up: "list", Tag: "div", Role: "listitem", Text: "Two items"},
		{Ref: "item3", Up: "list", Tag: "div", Role: "listitem", Text: "Unseen", Type: "hidden"},
		{Ref: "gone", Tag: "p", Role: "note", Text: "Hidden", Type: "hidden"},
		{Ref: "password", Tag: "input", Type: "password", TestID: "pw", Native: true, Secret: true,
			State: page.State{TextValue: pointer("s3cret")}},
		{Ref: "rich", Tag: "div", Role: "textbox", TestID: "rich", Editable: true,
			State: page.State{TextValue: pointer("a\u00a0b\n")}},
		{Ref: "label", Tag: "label", Text: "I agree", Labels: "box"},
	}
	return lay(page.Query{}, nodes...)
}

// word reads a predicate as a guest writes it.
func word(t *testing.T, delta string) *engine.Predicate {
	t.Helper()
	r, refusal := engine.Parse([]byte(`{"verb":"expect","target":{"element_id":"el_self"},"expect":`+delta+`}`),
		engine.DefaultSettings)
	if refusal != nil {
		t.Fatalf("%s: %v", delta, refusal)
	}
	return r.Expect
}

const (
	yes  = engine.True
	no   = engine.False
	dark = engine.Unreadable
)

// TestPredicates evaluates every kind of predicate where it holds, where it does not
// and where it cannot be read.
func TestPredicates(t *testing.T) {
	of := func(selector string) string { return `"target":{"selector":` + selector + `}` }
	status, slider, mail := of(`{"role":"status"}`), of(`{"role":"slider"}`), of(`{"query":"mail","exact":true}`)
	menu, theme, tab := of(`{"name":"menu"}`), of(`{"role":"combobox"}`), of(`{"role":"tab"}`)
	none := of(`{"role":"alert"}`)
	for _, c := range []struct {
		delta string
		want  engine.Truth
	}{
		{`{"kind":"text","op":"equals","value":"all saved",` + status + `}`, yes},
		{`{"kind":"text","op":"contains","value":"SAVED",` + status + `}`, yes},
		{`{"kind":"text","op":"matches","value":"Saved$",` + status + `}`, yes},
		{`{"kind":"text","op":"equals","value":"saved",` + status + `}`, no},
		{`{"kind":"text","op":"equals","value":"saved",` + none + `}`, dark},
		{`{"kind":"value","equals":50,` + slider + `}`, yes},
		{`{"kind":"value","equals":"50",` + slider + `}`, yes},
		{`{"kind":"value","equals":"50%",` + slider + `}`, no}, // raw_value is not asserted
		{`{"kind":"value","equals":49.5,"tolerance":0.5,` + slider + `}`, yes},
		{`{"kind":"value","equals":49.4,"tolerance":0.5,` + slider + `}`, no},
		{`{"kind":"value","equals":1,` + mail + `}`, dark},
		{`{"kind":"value","equals":"ada",` + mail + `}`, yes},
		{`{"kind":"value","equals":"dark",` + theme + `}`, yes},
		{`{"kind":"text_value","equals":"ada",` + mail + `}`, yes},
		{`{"kind":"text_value","equals":"Ada",` + mail + `}`, no},
		{`{"kind":"text_value","equals":"",` + of(`{"query":"note","exact":true}`) + `}`, yes},
		{`{"kind":"text_value","equals":"",` + slider + `}`, dark},
		{`{"kind":"text_value","equals":"a b",` + of(`{"test_id":"rich"}`) + `}`, yes},
		{`{"kind":"checked","equals":false,` + of(`{"label":"agree"}`) + `}`, yes},
		{`{"kind":"checked","equals":false,` + of(`{"text":"I agree"}`) + `}`, yes}, // by its label
		{`{"kind":"checked","equals":true,` + of(`{"label":"agree"}`) + `}`, no},
		{`{"kind":"checked","equals":false,` + menu + `}`, dark},
		{`{"kind":"expanded","equals":true,` + menu + `}`, yes},
		{`{"kind":"expanded","equals":false,` + mail + `}`, dark},
		{`{"kind":"enabled","equals":false,` + menu + `}`, yes},
		{`{"kind":"enabled","equals":true,` + menu + `}`, no},
		{`{"kind":"focused","equals":true,` + mail + `}`, yes},
		{`{"kind":"focused","equals":false,` + menu + `}`, dark},
		{`{"kind":"selected","equals":"dark",` + theme + `}`, yes},
		{`{"kind":"selected","equals":"Dark mode",` + theme + `}`, yes},
		{`{"kind":"selected","equals":{"id":"dark","label":"something else"},` + theme + `}`, yes}, // the id comes first
		{`{"kind":"selected","equals":{"id":"light","label":"Dark mode"},` + theme + `}`, no},
		{`{"kind":"selected","equals":{"label":"Dark mode"},` + theme + `}`, yes},
		{`{"kind":"selected","equals":true,` + tab + `}`, yes},
		{`{"kind":"selected","equals":true,` + mail + `}`, dark},
		{`{"kind":"visible",` + status + `}`, yes},
		{`{"kind":"visible",` + of(`{"role":"note"}`) + `}`, no},
		{`{"kind":"visible","equals":false,` + none + `}`, yes},
		{`{"kind":"exists",` + of(`{"role":"note"}`) + `}`, yes},
		{`{"kind":"exists",` + none + `}`, no},
		{`{"kind":"exists","equals":false,` + none + `}`, yes},
		{`{"kind":"in_viewport",` + of(`{"role":"list"}`) + `}`, yes},
		{`{"kind":"in_viewport",` + tab + `}`, no},
		{`{"kind":"hovered",` + tab + `}`, yes},
		{`{"kind":"count","op":"eq","value":3,` + of(`{"role":"listitem"}`) + `}`, yes},
		{`{"kind":"count","op":"gte","value":4,` + of(`{"role":"listitem"}`) + `}`, no},
		{`{"kind":"count","op":"lte","value":0,` + none + `}`, yes},
		{`{"kind":"attribute","name":"data-state","op":"equals","value":"open",` + menu + `}`, yes},
		{`{"kind":"attribute","name":"href","op":"equals","value":"",` + menu + `}`, no},
		{`{"kind":"files","names":["a.pdf","b.pdf"],` + of(`{"test_id":"upload"}`) + `}`, yes},
		{`{"kind":"files","names":["a.pdf"],` + of(`{"test_id":"upload"}`) + `}`, no},
		{`{"kind":"url","op":"equals","value":"https://a.example/p?x=1"}`, yes},
		{`{"kind":"url","op":"equals","value":"https://a.example/p?x=1#top"}`, yes},
		{`{"kind":"url","op":"equals","value":"https://a.example/p?x=1#end"}`, no},
		{`{"kind":"url","op":"prefix","value":"https://a.example/"}`, yes},
		{`{"kind":"title","op":"contains","value":"page"}`, yes},
		{`{"kind":"fingerprint","equals":"fp_1"}`, yes},
		{`{"kind":"fingerprint","changed_from":"fp_1"}`, no},
		// Several that fit equally well have to agree.
		{`{"kind":"text","op":"contains","value":"o",` + of(`{"role":"listitem"}`) + `}`, yes},
		{`{"kind":"text","op":"equals","value":"one",` + of(`{"role":"listitem"}`) + `}`, dark},
		{`{"kind":"text","op":"equals","value":"one",` + of(`{"role":"listitem","index":0}`) + `}`, yes},
		// Three-valued logic.
		{`{"not":{"kind":"exists",` + none + `}}`, yes},
		{`{"not":{"kind":"checked","equals":true,` + menu + `}}`, dark},
		{`{"any":[{"kind":"checked","equals":true,` + menu + `},{"kind":"exists",` + tab + `}]}`, yes},
		{`{"any":[{"kind":"checked","equals":true,` + menu + `},{"kind":"exists",` + none + `}]}`, dark},
		{`{"all":[{"kind":"checked","equals":true,` + menu + `},{"kind":"exists",` + none + `}]}`, no},
		{`{"all":[{"kind":"checked","equals":true,` + menu + `},{"kind":"exists",` + tab + `}]}`, dark},
	} {
		s := &engine.Scene{Now: sheet(), Identity: engine.NewIdentity()}
		if got := s.Evaluate(word(t, c.delta)).Truth; got != c.want {
			t.Errorf("%s: %d", c.delta, got)
		}
	}
}

// TestSinceDispatch: predicates about what happened are false before it.
func TestSinceDispatch(t *testing.T) {
	moved := sheet()
	moved.Digests.Text, moved.Scroll = "t2", page.Point{Y: 5}
	moved.Nodes[9].Scroll.Y = 20
	happened := page.Happened{Loaders: []string{"l2"}, Downloads: []page.Download{
		{Name: "denied.csv", Done: true, Denied: true}, {Name: "broken.csv", Done: true, Failed: "x"}, {Name: "open.csv"},
		{Name: "out.csv", Done: true},
	}}
	list := `"target":{"selector":{"role":"list"}}`
	for _, c := range []struct {
		delta  string
		before engine.Truth
		after  engine.Truth
	}{
		{`{"kind":"navigation"}`, no, yes},
		{`{"kind":"navigation","same_document":true}`, no, no},
		{`{"kind":"download"}`, no, yes},
		{`{"kind":"download","name_matches":"^out"}`, no, yes},
		{`{"kind":"download","name_matches":"^(denied|broken|open)"}`, no, no},
		{`{"kind":"any_change"}`, no, yes},
		{`{"kind":"any_change","kinds":["text_change"]}`, no, yes},
		{`{"kind":"any_change","kinds":["state_change"]}`, no, no},
		{`{"kind":"scrolled",` + list + `}`, no, yes},
		{`{"kind":"scrolled","target":{"selector":{"role":"tab"}}}`, no, no},
	} {
		p, id := word(t, c.delta), engine.NewIdentity()
		if got := (&engine.Scene{Now: sheet(), Identity: id}).Evaluate(p).Truth; got != c.before {
			t.Errorf("%s before: %d", c.delta, got)
		}
		after := &engine.Scene{Now: moved, Before: sheet(), Happened: happened, Identity: id}
		if got := after.Evaluate(p).Truth; got != c.after {
			t.Errorf("%s after: %d", c.delta, got)
		}
	}
	whole := &engine.Scene{Now: moved, Before: sheet(), Identity: engine.NewIdentity()}
	if got := whole.Evaluate(&engine.Predicate{Kind: "scrolled"}).Truth; got != yes {
		t.Errorf("the page: %d", got)
	}
}

// TestTurned: a delta proves a change only if one of the predicates that make it hold
// did not hold before.
func TestTurned(t *testing.T) {
	const a, b = `{"kind":"exists","target":{"selector":{"role":"status"}}}`,
		`{"kind":"exists","target":{"selector":{"role":"alert"}}}`
	const unread = `{"kind":"checked","equals":true,"target":{"selector":{"role":"status"}}}`
	alert := page.Node{Ref: "alert", Tag: "p", Role: "alert", Text: "x", State: page.State{Checked: pointer(true)}}
	before := func() *engine.Look {
		return lay(page.Query{}, page.Node{Ref: "s", Tag: "p", Role: "status", Text: "x"})
	}
	after := func() *engine.Look {
		return lay(page.Query{},
			page.Node{Ref: "s", Tag: "p", Role: "status", Text: "x", State: page.State{Checked: pointer(true)}}, alert)
	}
	for _, c := range []struct {
		delta  string
		turned bool
	}{
		{a, false}, // held before
		{b, true},
		{unread, true}, // unreadable before, true now
		{`{"all":[` + a + `,` + b + `]}`, true},
		{`{"all":[` + a + `,` + a + `]}`, false},
		{`{"any":[` + a + `,` + b + `]}`, true},
		{`{"any":[` + a + `,{"not":` + b + `}]}`, false}, // satisfied by what held already
		{`{"not":` + b + `}`, false},                     // does not hold now
		{`{"not":{"not":` + b + `}}`, true},
	} {
		p, id := word(t, c.delta), engine.NewIdentity()
		was, is := (&engine.Scene{Now: before(), Identity: id}).Evaluate(p),
			(&engine.Scene{Now: after(), Identity: id}).Evaluate(p)
		if got := is.Turned(was); got != c.turned {
			t.Errorf("%s: %t", c.delta, got)
		}
		if is.Truth == yes && !is.Turned(nil) {
			t.Errorf("%s: a deferred action needs no earlier read", c.delta)
		}
	}
}

// TestAmbiguousAndAbsent: what cannot be computed from anything, and what is about
// an element that is not there.
func TestAmbiguousAndAbsent(t *testing.T) {
	const exposed, hidden = `{"kind":"checked","equals":true,"target":{"selector":{"label":"Agree"}}}`,
		`{"kind":"checked","equals":true,"target":{"selector":{"role":"status"}}}`
	for _, c := range []struct {
		delta             string
		ambiguous, absent bool
	}{
		{exposed, false, false},
		{hidden, true, false},
		{`{"all":[` + exposed + `,` + hidden + `]}`, false, false},
		{`{"any":[` + exposed + `,` + hidden + `]}`, false, false},
		{`{"any":[` + hidden + `,` + hidden + `]}`, true, false},
		{`{"kind":"text","op":"equals","value":"one","target":{"selector":{"role":"listitem"}}}`, false, false},
		{`{"kind":"checked","equals":true,"target":{"selector":{"role":"alert"}}}`, true, true},
		{`{"kind":"exists","target":{"selector":{"role":"alert"}}}`, false, true},
		{`{"not":{"kind":"exists","target":{"selector":{"role":"alert"}}}}`, false, false},
		{`{"kind":"navigation"}`, false, false},
	} {
		v := (&engine.Scene{Now: sheet(), Identity: engine.NewIdentity()}).Evaluate(word(t, c.delta))
		if v.Ambiguous() != c.ambiguous || v.Absent() != c.absent {
			t.Errorf("%s: ambiguous %t, absent %t", c.delta, v.Ambiguous(), v.Absent())
		}
	}
}

// TestSelf: a predicate without a target is about the action's own element, and about
// what fits its description once the node is gone.
func TestSelf(t *testing.T) {
	p := word(t, `{"kind":"text_value","equals":"ada"}`)
	s := &engine.Scene{Now: sheet(), Self: "field", Identity: engine.NewIdentity()}
	if got := s.Evaluate(p).Truth; got != yes {
		t.Errorf("by its node: %d", got)
	}
	s.Self, s.Target = "field-before-it-was-rendered-again", by(page.Selector{Query: "mail"})
	if got := s.Evaluate(p).Truth; got != yes {
		t.Errorf("by its description: %d", got)
	}
	s.Target = nil
	if v := s.Evaluate(p); v.Truth != dark || !v.Absent() {
		t.Errorf("by nothing: %d", v.Truth)
	}
}

// TestSecretField: what is in a password field can be compared and is not shown.
func TestSecretField(t *testing.T) {
	s := &engine.Scene{Now: sheet(), Self: "password", Identity: engine.NewIdentity()}
	for delta, want := range map[string]engine.Truth{
		`{"kind":"text_value","equals":"s3cret"}`: yes,
		`{"kind":"text_value","equals":"guess"}`:  no,
		`{"kind":"value","equals":"guess"}`:       no,
	} {
		if v := s.Evaluate(word(t, delta)); v.Truth != want || v.Observed(nil)[0].Value != nil {
			t.Errorf("%s: %d shows %s", delta, v.Truth, v.Observed(nil)[0].Value)
		}
	}
}

// TestObserved: each part says what it saw, whether it held before, and of how many.
func TestObserved(t *testing.T) {
	p := word(t, `{"all":[{"kind":"count","op":"eq","value":3,"target":{"selector":{"role":"listitem"}}},{"not":{"kind":"checked","equals":true,"target":{"selector":{"role":"status"}}}}]}`)
	id := engine.NewIdentity()
	before := (&engine.Scene{Now: lay(page.Query{}, buttonNode("b", "", "B")), Identity: id}).Evaluate(p)
	got := (&engine.Scene{Now: sheet(), Identity: id}).Evaluate(p).Observed(before)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	if o := got[0]; !o.Holds || o.Before == nil || *o.Before || o.Matched != 3 || string(o.Value) != "3" ||
		o.Source != "element_property" {
		t.Errorf("%+v", o)
	}
	if o := got[1]; o.Holds || o.Before != nil || o.Detail != "state_unavailable" || o.Value != nil {
		t.Errorf("%+v", o)
	}
}
