package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestDelta: the default delta of every verb, and that a declared one is taken, with
// navigate as a join.
func TestDefaultDelta(t *testing.T) {
	const target = `"target":{"element_id":"el_1"}`
	const moved = `{"any":[{"kind":"navigation"},{"kind":"navigation","same_document":true}]}`
	line := &page.Node{Tag: "input", State: page.State{TextValue: pointer("old")}}
	area := &page.Node{Tag: "textarea", Multiline: true}
	list := &page.Node{Tag: "select", Options: []page.Option{{ID: "l", Label: "Light"}, {ID: "d", Label: "Dark"}, {ID: "", Label: "None"}}}
	for _, c := range []struct {
		request string
		n       *page.Node
		origin  string
		want    string
	}{
		{`{"verb":"navigate","url":"https://a.example"}`, nil, "default", moved},
		{`{"verb":"navigate","url":"https://a.example","expect":{"kind":"title","op":"equals","value":"x"}}`, nil, "declared",
			`{"all":[` + moved + `,{"kind":"title","op":"equals","value":"x"}]}`},
		{`{"verb":"click",` + target + `}`, line, "deferred", `null`},
		{`{"verb":"click",` + target + `,"expect":{"kind":"any_change"}}`, line, "declared", `{"kind":"any_change"}`},
		{`{"verb":"press","keys":"Enter"}`, nil, "deferred", `null`},
		{`{"verb":"type",` + target + `,"value":{"plain":"a\r\nb"}}`, line, "default", `{"equals":"a b","kind":"text_value"}`},
		{`{"verb":"type",` + target + `,"value":{"plain":"a\nb"}}`, area, "default", `{"equals":"a\nb","kind":"text_value"}`},
		{`{"verb":"fill",` + target + `,"value":{"plain":"new"},"clear":false}`, line, "default", `{"equals":"oldnew","kind":"text_value"}`},
		{`{"verb":"fill",` + target + `,"value":{"sealed":"sluice-sealed-v1-x"}}`, line, "default", `{"equals":"sluice-sealed-v1-x","kind":"text_value"}`},
		{`{"verb":"clear",` + target + `}`, line, "default", `{"equals":"","kind":"text_value"}`},
		{`{"verb":"select",` + target + `,"option":{"index":1}}`, list, "default", `{"equals":{"id":"d","label":"Dark"},"kind":"selected"}`},
		{`{"verb":"select",` + target + `,"option":{"label":"dark"}}`, list, "default", `{"equals":{"id":"d","label":"Dark"},"kind":"selected"}`},
		{`{"verb":"select",` + target + `,"option":{"id":"x"}}`, list, "default", `{"equals":{"id":"x","label":""},"kind":"selected"}`},
		{`{"verb":"select",` + target + `,"option":{"index":9}}`, list, "default", `{"kind":"selected"}`},
		{`{"verb":"check",` + target + `,"checked":false}`, nil, "default", `{"equals":false,"kind":"checked"}`},
		{`{"verb":"adjust",` + target + `,"value":30,"tolerance":0.5}`, nil, "default", `{"equals":30,"kind":"value","tolerance":0.5}`},
		{`{"verb":"scroll",` + target + `}`, nil, "default", `{"equals":true,"kind":"in_viewport"}`},
		{`{"verb":"scroll","direction":"down"}`, nil, "default", `{"kind":"scrolled"}`},
		{`{"verb":"hover",` + target + `}`, nil, "default", `{"equals":true,"kind":"hovered"}`},
		{`{"verb":"upload",` + target + `,"files":[{"path":"/tmp/a.pdf"},{"handle":3,"name":"b.pdf"},{"path":"/tmp/x","name":"c.pdf"}]}`, nil, "default",
			`{"kind":"files","names":["a.pdf","b.pdf","c.pdf"]}`},
	} {
		r, refusal := engine.Parse([]byte(c.request))
		if refusal != nil {
			t.Fatalf("%s: %v", c.request, refusal)
		}
		p, origin := engine.Delta(r, c.n)
		raw, err := json.Marshal(p)
		if err != nil || origin != c.origin || string(raw) != c.want {
			t.Errorf("%s\n%s %s %v", c.request, origin, raw, err)
		}
	}
}

// TestNothingChosen: an option that is not there is never the chosen one.
func TestNothingChosen(t *testing.T) {
	l := lay(page.Query{}, page.Node{Ref: "s", Tag: "select", State: page.State{Selected: &page.Option{}}})
	s := &engine.Scene{Now: l, Self: "s", Identity: engine.NewIdentity()}
	p, _ := engine.Delta(&engine.Request{Verb: engine.Select, Select: engine.SelectArgs{Index: pointer(3)}}, &l.Nodes[0])
	if got := s.Evaluate(p).Truth; got != engine.Unreadable {
		t.Errorf("%d", got)
	}
}

// TestSignal is what usually follows the use of an element.
func TestSignal(t *testing.T) {
	for _, c := range []struct {
		n    page.Node
		want string
	}{
		{page.Node{Leaves: true, Role: "link"}, "navigation"}, {page.Node{Submits: true}, "navigation"}, {page.Node{Popup: true}, "menu"},
		{page.Node{Tag: "select"}, "selection"}, {page.Node{Role: "radio"}, "selection"}, {page.Node{Role: "switch"}, "value_change"},
		{page.Node{Editable: true}, "value_change"}, {page.Node{Tag: "button", Role: "button"}, "none"},
	} {
		if got := engine.ExpectedSignal(&c.n); got != c.want {
			t.Errorf("%+v: %s", c.n, got)
		}
	}
}
