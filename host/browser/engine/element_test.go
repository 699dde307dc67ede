package engine_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestSemantic reproduces the table of adjustable and semantic controls.
func TestSemantic(t *testing.T) {
	value := page.State{Value: pointer(3.0), Range: &page.Range{Min: 0, Max: 10}}
	for _, c := range []struct {
		name               string
		n                  page.Node
		role, shape, acts  string
		adjustable, absent bool
	}{
		{name: "range input", n: page.Node{Tag: "input", Type: "range", Role: "slider", Native: true}, role: "slider",
			shape: "continuous", acts: "adjust", adjustable: true},
		{name: "slider role without a value", n: page.Node{Tag: "div", Role: "slider"}, role: "slider", shape: "continuous",
			acts: "adjust", adjustable: true},
		{name: "number input", n: page.Node{Tag: "input", Type: "number", Role: "spinbutton", State: value}, role: "stepper",
			shape: "discrete", acts: "increment,decrement", adjustable: true},
		{name: "select", n: page.Node{Tag: "select", Role: "combobox"}, role: "dropdown", shape: "semantic", acts: "select"},
		{name: "radio group", n: page.Node{Tag: "div", Role: "radiogroup"}, role: "segmented_control",
			shape: "discrete", acts: "click"},
		{name: "focusable with a value", n: page.Node{Tag: "div", Tabbable: true, State: value}, role: "custom_adjustable",
			shape: "continuous", acts: "adjust", adjustable: true},
		{name: "value that cannot be focused", n: page.Node{Tag: "div", State: value}, absent: true},
		{name: "contradiction", n: page.Node{Tag: "select", Role: "slider"}, absent: true},
		{name: "progress bar", n: page.Node{Tag: "div", Role: "progressbar", Tabbable: true, State: value}},
		{name: "meter", n: page.Node{Tag: "meter", State: value}},
		{name: "button", n: page.Node{Tag: "button", Role: "button", Native: true}},
		{name: "paragraph", n: page.Node{Tag: "p", Text: "x"}, absent: true},
		{name: "cursor alone", n: page.Node{Tag: "div", Cursor: true}, absent: true},
	} {
		l := lay(page.Query{}, c.n)
		s := l.Semantic(&l.Nodes[0])
		if (s == nil) != c.absent {
			t.Errorf("%s: %+v", c.name, s)
			continue
		}
		if s == nil {
			continue
		}
		if s.Role != c.role || s.Shape != c.shape || strings.Join(s.Actions, ",") != c.acts ||
			s.Confidence == "" || s.Reason == "" {
			t.Errorf("%s: %+v", c.name, s)
		}
		if got := s.Adjustable != nil && *s.Adjustable; got != c.adjustable {
			t.Errorf("%s: adjustable %t", c.name, got)
		}
		if again := l.Semantic(&l.Nodes[0]); !reflect.DeepEqual(s, again) {
			t.Errorf("%s: %+v then %+v", c.name, s, again)
		}
	}
}

// TestSemanticOfGroups: what lies in an element says what it is.
func TestSemanticOfGroups(t *testing.T) {
	toggle := func(on bool) page.Node {
		return page.Node{Up: "g", Tag: "button", Role: "button", State: page.State{Chosen: &on}}
	}
	g := page.Node{Ref: "g", Tag: "div"}
	for _, c := range []struct {
		name  string
		nodes []page.Node
		role  string
	}{
		{"one chosen", []page.Node{g, toggle(true), toggle(false)}, "segmented_control"},
		{"none chosen", []page.Node{g, toggle(false), toggle(false)}, ""},
		{"two chosen", []page.Node{g, toggle(true), toggle(true)}, ""},
		{"alone", []page.Node{g, toggle(true)}, ""},
		{"date of two selects", []page.Node{{Ref: "g", Tag: "fieldset", Role: "group", Name: "Date"},
			{Up: "g", Tag: "select"}, {Up: "g", Tag: "select"}}, "composite_control"},
		{"group without a name",
			[]page.Node{{Ref: "g", Tag: "fieldset", Role: "group"}, {Up: "g", Tag: "select"}, {Up: "g", Tag: "select"}}, ""},
	} {
		l := lay(page.Query{}, c.nodes...)
		role := ""
		if s := l.Semantic(&l.Nodes[0]); s != nil {
			role = s.Role
		}
		if role != c.role {
			t.Errorf("%s: %q", c.name, role)
		}
	}
}

func at(n page.Node, x, y, w, h float64) page.Node {
	n.Bounds = page.Box{X: x, Y: y, W: w, H: h}
	return n
}

// TestNearby: a text beside a control that has no other name means the control.
func TestNearby(t *testing.T) {
	text := at(page.Node{Ref: "t", Tag: "span", Text: "Volume", OwnText: true}, 0, 100, 80, 20)
	hears := func(ref string, x, y, w, h float64) page.Node {
		return at(page.Node{Ref: page.Ref(ref), Tag: "div", OwnHear: true}, x, y, w, h)
	}
	slider := func(ref string, x, y, w, h float64) page.Node {
		n := hears(ref, x, y, w, h)
		n.Role = "slider"
		return n
	}
	named := func(n page.Node, name string) page.Node { n.Name = name; return n }
	own := func(n page.Node) page.Node { n.OwnText, n.Text = true, "50 %"; return n }
	for _, c := range []struct {
		name   string
		others []page.Node
		want   page.Ref // "" for none
		reason string
	}{
		{"below", []page.Node{hears("c", 0, 130, 60, 20)}, "c", "nearby_actionable_control"},
		{"beside, as far as it may overlap", []page.Node{hears("c", 112, 95, 60, 20)}, "c", "nearby_actionable_control"},
		{"too far to the side", []page.Node{hears("c", 113, 130, 60, 20)}, "", ""},
		{"too far above", []page.Node{hears("c", 0, 87, 60, 20)}, "", ""},
		{"as far above as it may be", []page.Node{hears("c", 0, 88, 60, 20)}, "c", "nearby_actionable_control"},
		{"too far below", []page.Node{hears("c", 0, 761, 60, 20)}, "", ""},
		{"as far below as it may be", []page.Node{hears("c", 0, 760, 60, 20)}, "c", "nearby_actionable_control"},
		{"nearest", []page.Node{hears("far", 0, 200, 60, 20), hears("c", 0, 130, 60, 20)}, "c", "nearby_actionable_control"},
		{"track before nearest", []page.Node{hears("near", 0, 130, 60, 20), hears("c", 0, 140, 300, 10)}, "c",
			"slider_track_preferred"},
		{"slider by role", []page.Node{slider("c", 0, 130, 60, 20)}, "c", "slider_track_preferred"},
		{"own text is worse", []page.Node{own(hears("near", 0, 120, 60, 20)), hears("c", 0, 140, 60, 20)}, "c",
			"nearby_actionable_control"},
		{"somebody else's control", []page.Node{named(hears("c", 0, 130, 60, 20), "Delete account")}, "", ""},
		{"control with a longer name of the same", []page.Node{named(hears("c", 0, 130, 60, 20), "Volume in percent")}, "c",
			"nearby_actionable_control"},
		{"another frame", []page.Node{func() page.Node { n := hears("c", 0, 130, 60, 20); n.Frame = "f1"; return n }()}, "",
			""},
		{"not seen", []page.Node{func() page.Node { n := hears("c", 0, 130, 60, 20); n.Type = "hidden"; return n }()}, "",
			""},
	} {
		l := lay(page.Query{}, append([]page.Node{text}, c.others...)...)
		if c.want == "" {
			missed(t, l, query("volume"), engine.ActionRejected, "not_executable")
			continue
		}
		f := mustClick(t, l, query("volume"))
		if f.Node.Ref != c.want || f.Resolution.Reason != c.reason {
			t.Errorf("%s: %s %s", c.name, f.Node.Ref, f.Resolution.Reason)
		}
		if (f.Element.Hint != nil) != (c.reason == "slider_track_preferred") {
			t.Errorf("%s: hint %+v", c.name, f.Element.Hint)
		}
	}
}

// TestNearbyEnds: only the next 8 elements that act are looked at.
func TestNearbyEnds(t *testing.T) {
	for _, between := range []int{7, 8} {
		nodes := []page.Node{at(page.Node{Ref: "t", Tag: "span", Text: "Volume"}, 0, 0, 80, 20)}
		for range between {
			nodes = append(nodes, at(page.Node{Tag: "a", Native: true, Role: "link", Name: "Other"}, 0, 30, 10, 10))
		}
		nodes = append(nodes, at(page.Node{Ref: "c", Tag: "div", OwnHear: true}, 0, 60, 10, 10))
		_, miss := clickRequest(lay(page.Query{}, nodes...), query("volume"))
		if (miss == nil) != (between == 7) {
			t.Errorf("%d between: %v", between, miss)
		}
	}
}

// TestHint: the axis of a track is that of its longer side.
func TestHint(t *testing.T) {
	for _, c := range []struct {
		w, h float64
		axis string
	}{{300, 10, "horizontal"}, {10, 300, "vertical"}} {
		l := lay(page.Query{}, at(page.Node{Ref: "t", Tag: "span", Text: "Volume"}, 0, 0, 80, 20),
			at(page.Node{Ref: "c", Tag: "div", OwnHear: true, Role: "slider"}, 0, 30, c.w, c.h))
		f := mustClick(t, l, query("volume"))
		if h := f.Element.Hint; h == nil || h.Kind != "slider" || h.Axis != c.axis || h.Track != f.Node.Bounds {
			t.Errorf("%+v", h)
		}
	}
}

// TestMask: nothing of an observation that a guest can ask about has the value, and
// none of the questions that would spell it out is answered by it.
func TestMask(t *testing.T) {
	const secret, handle = "hunter22", "sluice-sealed-v1-a"
	hide := func(s string) string { return strings.ReplaceAll(s, secret, handle) }
	in := "my " + secret
	l := sheet()
	o := l.Observation
	o.URL, o.Title, o.Frames = "https://"+secret+".example/"+secret+"?q="+secret, in, []page.Subframe{{ID: "f", Name: in}}
	o.Nodes = append(o.Nodes, page.Node{
		Ref: "echo", Tag: "p", ID: in, TestID: in, NameAtt: in, Role: "note", Name: in, AriaLabel: in, Label: in,
		Placeholder: in, Description: in, Text: in, Classes: []string{in}, Files: []string{in},
		URL: "https://a.example/" + secret, Attributes: map[string]string{"title": in},
		Options: []page.Option{{ID: in, Label: in}},
		State:   page.State{RawValue: pointer(in), TextValue: pointer(secret), Selected: &page.Option{ID: in, Label: in}},
		Visible: true, Bounds: page.Box{W: 1, H: 1},
	})
	engine.Mask(o, hide)
	if !strings.HasPrefix(o.URL, "https://"+secret+".example/"+handle+"?") {
		t.Errorf("address %s", o.URL)
	}
	o.URL = strings.Replace(o.URL, secret, "", 1)
	if raw, err := json.Marshal(o); err != nil || strings.Contains(string(raw), secret) {
		t.Errorf("%v %s", err, raw)
	}
	s := &engine.Scene{Now: engine.NewLook(o, page.Query{}), Self: "echo", Identity: engine.NewIdentity()}
	for delta, want := range map[string]engine.Truth{
		`{"kind":"text","op":"contains","value":"hunter"}`:                       no,
		`{"kind":"text","op":"matches","value":"my h"}`:                          no,
		`{"kind":"title","op":"contains","value":"hunt"}`:                        no,
		`{"kind":"url","op":"contains","value":"/hunt"}`:                         no,
		`{"kind":"attribute","name":"title","op":"contains","value":"hunt"}`:     no,
		`{"kind":"exists","target":{"selector":{"query":"hunter"}}}`:             no,
		`{"kind":"exists","target":{"selector":{"label":"hunt","exact":false}}}`: no,
		`{"kind":"text_value","equals":"` + secret + `"}`:                        no,
		`{"kind":"text_value","equals":"` + handle + `"}`:                        yes,
		`{"kind":"text","op":"contains","value":"` + handle + `"}`:               yes,
		`{"kind":"exists","target":{"selector":{"query":"` + handle + `"}}}`:     yes,
	} {
		if got := s.Evaluate(word(t, delta)).Truth; got != want {
			t.Errorf("%s: %d", delta, got)
		}
	}
}

// TestMaskPieces: letters of a value that stand in elements or fields of their own are
// nothing that a guest can ask about.
func TestMaskPieces(t *testing.T) {
	const secret, handle = "hunter22", "sluice-sealed-v1-a"
	hide := func(s string) string { return strings.ReplaceAll(s, secret, handle) }
	o := &page.Observation{Nodes: []page.Node{{Ref: "all", Text: "my h u n t e r 2 2"},
		{Ref: "first", Up: "all", Text: "my"}}}
	for _, c := range secret {
		o.Nodes = append(o.Nodes,
			page.Node{Ref: page.Ref(string(c)), Up: "all", Text: string(c), Name: string(c),
				State: page.State{RawValue: pointer(string(c))}})
	}
	engine.Mask(o, hide)
	for _, n := range o.Nodes[2:] {
		if n.Text != handle || n.Name != handle || *n.State.RawValue != handle {
			t.Errorf("%s: %q, %q, %q", n.Ref, n.Text, n.Name, *n.State.RawValue)
		}
	}
	if all := o.Nodes[0].Text; strings.Contains(all, "h u") || !strings.Contains(all, handle) || o.Nodes[1].Text != "my" {
		t.Errorf("around them: %q, %q", all, o.Nodes[1].Text)
	}
}
