package engine_test

import (
	"reflect"
	"strings"
	"testing"

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
		{name: "range input", n: page.Node{Tag: "input", Type: "range", Role: "slider", Native: true}, role: "slider", shape: "continuous", acts: "adjust", adjustable: true},
		{name: "slider role without a value", n: page.Node{Tag: "div", Role: "slider"}, role: "slider", shape: "continuous", acts: "adjust", adjustable: true},
		{name: "number input", n: page.Node{Tag: "input", Type: "number", Role: "spinbutton", State: value}, role: "stepper", shape: "discrete", acts: "increment,decrement", adjustable: true},
		{name: "select", n: page.Node{Tag: "select", Role: "combobox"}, role: "dropdown", shape: "semantic", acts: "select"},
		{name: "radio group", n: page.Node{Tag: "div", Role: "radiogroup"}, role: "segmented_control", shape: "discrete", acts: "click"},
		{name: "focusable with a value", n: page.Node{Tag: "div", Tabbable: true, State: value}, role: "custom_adjustable", shape: "continuous", acts: "adjust", adjustable: true},
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
		if s.Role != c.role || s.Shape != c.shape || strings.Join(s.Actions, ",") != c.acts || s.Confidence == "" || s.Reason == "" {
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
		{"date of two selects", []page.Node{{Ref: "g", Tag: "fieldset", Role: "group", Name: "Date"}, {Up: "g", Tag: "select"}, {Up: "g", Tag: "select"}}, "composite_control"},
		{"group without a name", []page.Node{{Ref: "g", Tag: "fieldset", Role: "group"}, {Up: "g", Tag: "select"}, {Up: "g", Tag: "select"}}, ""},
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
