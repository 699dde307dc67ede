package engine_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

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
	list := &page.Node{Tag: "select",
		Options: []page.Option{{ID: "l", Label: "Light"}, {ID: "d", Label: "Dark"}, {ID: "", Label: "None"}}}
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
		{`{"verb":"type",` + target + `,"value":{"plain":"a\r\nb"}}`, line, "default",
			`{"equals":"a b","kind":"text_value"}`},
		{`{"verb":"type",` + target + `,"value":{"plain":"a\nb"}}`, area, "default", `{"equals":"a\nb","kind":"text_value"}`},
		{`{"verb":"fill",` + target + `,"value":{"plain":"new"},"clear":false}`, line, "default",
			`{"equals":"oldnew","kind":"text_value"}`},
		{`{"verb":"fill",` + target + `,"value":{"sealed":"sluice-sealed-v1-x"}}`, line, "default",
			`{"equals":"sluice-sealed-v1-x","kind":"text_value"}`},
		{`{"verb":"clear",` + target + `}`, line, "default", `{"equals":"","kind":"text_value"}`},
		{`{"verb":"select",` + target + `,"option":{"index":1}}`, list, "default",
			`{"equals":{"id":"d","label":"Dark"},"kind":"selected"}`},
		{`{"verb":"select",` + target + `,"option":{"label":"dark"}}`, list, "default",
			`{"equals":{"id":"d","label":"Dark"},"kind":"selected"}`},
		{`{"verb":"select",` + target + `,"option":{"id":"x"}}`, list, "default",
			`{"equals":{"id":"x","label":""},"kind":"selected"}`},
		{`{"verb":"select",` + target + `,"option":{"index":9}}`, list, "default", `{"kind":"selected"}`},
		{`{"verb":"check",` + target + `,"checked":false}`, nil, "default", `{"equals":false,"kind":"checked"}`},
		{`{"verb":"adjust",` + target + `,"value":30,"tolerance":0.5}`, nil, "default",
			`{"equals":30,"kind":"value","tolerance":0.5}`},
		{`{"verb":"scroll",` + target + `}`, nil, "default", `{"equals":true,"kind":"in_viewport"}`},
		{`{"verb":"scroll","direction":"down"}`, nil, "default", `{"kind":"scrolled"}`},
		{`{"verb":"hover",` + target + `}`, nil, "default", `{"equals":true,"kind":"hovered"}`},
		{`{"verb":"upload",` + target +
			`,"files":[{"path":"/tmp/a.pdf"},{"handle":3,"name":"b.pdf"},{"path":"/tmp/x","name":"c.pdf"}]}`, nil, "default",
			`{"kind":"files","names":["a.pdf","b.pdf","c.pdf"]}`},
	} {
		r, refusal := engine.Parse([]byte(c.request), engine.DefaultSettings)
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
		{page.Node{Leaves: true, Role: "link"}, "navigation"}, {page.Node{Submits: true}, "navigation"},
		{page.Node{Popup: true}, "menu"}, {page.Node{Tag: "select"}, "selection"}, {page.Node{Role: "radio"}, "selection"},
		{page.Node{Role: "switch"}, "value_change"}, {page.Node{Editable: true}, "value_change"},
		{page.Node{Tag: "button", Role: "button"}, "none"},
	} {
		if got := engine.ExpectedSignal(&c.n); got != c.want {
			t.Errorf("%+v: %s", c.n, got)
		}
	}
}

func TestChanges(t *testing.T) {
	base := page.Digests{Hierarchy: "h", Text: "t", State: "s"}
	for _, c := range []struct {
		now  page.Digests
		want []string
	}{
		{base, nil},
		{page.Digests{Hierarchy: "h2", Text: "t", State: "s"}, []string{"hierarchy_diff"}},
		{page.Digests{Hierarchy: "h", Text: "t2", State: "s"}, []string{"text_change"}},
		{page.Digests{Hierarchy: "h", Text: "t", State: "s2"}, []string{"state_change"}},
		{page.Digests{Hierarchy: "h2", Text: "t2", State: "s2"}, []string{"hierarchy_diff", "text_change", "state_change"}},
	} {
		if got := engine.Changes(base, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c.now, got)
		}
	}
}

// TestHistory: the last 16 revisions keep their digests.
func TestHistory(t *testing.T) {
	var h engine.History
	for i := range 20 {
		h.Add(&page.Observation{Revision: int64(i), Digests: page.Digests{Text: string(rune('a' + i))}})
		h.Add(&page.Observation{Revision: int64(i), Digests: page.Digests{Text: "later"}})
	}
	if _, ok := h.At(3); ok {
		t.Error("the 17th is remembered")
	}
	if d, ok := h.At(4); !ok || d.Text != "e" {
		t.Errorf("%+v %t", d, ok)
	}
	if _, ok := h.At(20); ok {
		t.Error("a revision that was never")
	}
}

// TestSettling: a change counts once it has stayed for the window, and one that is
// taken back does not count at all.
func TestSettling(t *testing.T) {
	base, text, both := page.Digests{Text: "a"}, page.Digests{Text: "b"}, page.Digests{Text: "b", State: "x"}
	type read struct {
		ms int
		d  page.Digests
	}
	for _, c := range []struct {
		name    string
		kind    string
		reads   []read
		at      int // of the read that settles it, -1 for none
		changed string
	}{
		{"stays", "", []read{{0, base}, {100, text}, {200, text}, {349, text}, {350, text}}, 4, "text_change"},
		{"goes on changing", "", []read{{0, text}, {200, both}, {400, both}, {450, both}}, 3, "text_change"},
		{"taken back", "", []read{{0, text}, {200, base}, {500, base}, {900, base}}, -1, ""},
		{"another kind", "state_change", []read{{0, text}, {300, text}, {400, both}, {650, both}}, 3, "state_change"},
		{"nothing", "", []read{{0, base}, {900, base}}, -1, ""},
	} {
		s := engine.Settling{Baseline: base, Kind: c.kind, Stable: 250 * time.Millisecond}
		start, settled := time.Unix(1000, 0), -1
		for i, r := range c.reads {
			kind, ok := s.Take(r.d, start.Add(time.Duration(r.ms)*time.Millisecond))
			if ok && settled < 0 {
				settled = i
				if kind != c.changed {
					t.Errorf("%s: %s", c.name, kind)
				}
			}
		}
		if settled != c.at {
			t.Errorf("%s: settled at read %d", c.name, settled)
		}
	}
}
