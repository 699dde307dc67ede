package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Element returns what a snapshot shows of n. Its id stays valid until 256 other elements have been
// resolved.
func (l *Look) Element(id *Identity, n *page.Node) Element { return l.element(n, id.keep(l, n)) }

// element returns what a snapshot shows of n, under the given id.
func (l *Look) element(n *page.Node, id string) Element {
	return Element{
		ElementID: id, StableID: StableID(n), Role: n.Role, Label: labelOf(n), Text: n.Text, TestTag: n.TestID,
		Selector: l.elementSelector(n), State: stateOf(n), Semantic: l.Semantic(n), Bounds: n.Bounds, Frame: n.Frame,
		Actionable: Executable(n) && n.Visible && !n.Disabled,
	}
}

// elementSelector returns a description of n with its confidence, which is at most 0.90 without a
// stable id.
func (l *Look) elementSelector(n *page.Node) *ElementSelector {
	s := ElementSelector{Value: selectorOf(n)}
	switch stable := StableID(n); {
	case stable == "" && n.Name != "":
		s.Confidence = Confidence{Score: 0.9, Reason: "no_stable_id"}
	case stable == "":
		s.Confidence = Confidence{Score: 0.5, Reason: "no_stable_id"}
	case l.stable[stable] > 1:
		s.Confidence = Confidence{Score: 0.5, Reason: "stable_id_shared"}
	default:
		s.Confidence = Confidence{Score: float64(exactID.score) / 1000, Reason: exactID.reason}
	}
	return &s
}

// stateOf returns the state of n, without what was typed into a password field.
func stateOf(n *page.Node) *page.State {
	s := n.State
	if n.Secret {
		s.TextValue, s.RawValue, s.Value = nil, nil, nil
	}
	if s == (page.State{}) {
		return nil
	}
	return &s
}

// labelOf returns what people would call n.
func labelOf(n *page.Node) string {
	return cmp.Or(n.Name, n.AriaLabel, n.Label, n.Placeholder, n.Text)
}

// cutText shortens text to at most n bytes, between two characters.
func cutText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// ExpectedSignal returns what usually follows an action on n. It is advice, never proof.
func ExpectedSignal(n *page.Node) string {
	switch {
	case n.Leaves, n.Submits:
		return "navigation"
	case n.Popup:
		return "menu"
	case n.Tag == "select", n.Role == "option", n.Role == "radio", n.Role == "tab", n.Role == "listbox",
		n.Role == "combobox":
		return "selection"
	case n.Editable, n.Role == "slider", n.Role == "spinbutton", n.Role == "checkbox", n.Role == "switch":
		return "value_change"
	}
	return "none"
}

// A shape is how a kind of control is described to guests.
type shape struct {
	role       string
	shape      string
	actions    []string
	adjustable bool
	reason     string
}

var (
	slider     = shape{"slider", "continuous", []string{"adjust"}, true, "range input or slider role"}
	stepper    = shape{"stepper", "discrete", []string{"increment", "decrement"}, true, "number input or spinbutton role"}
	dropdown   = shape{"dropdown", "semantic", []string{"select"}, false, "select element, combobox or listbox role"}
	segmented  = shape{"segmented_control", "discrete", []string{"click"}, false, "one of several toggles is chosen"}
	adjustable = shape{"custom_adjustable", "continuous", []string{"adjust"}, true,
		"focusable with a value and its bounds"}
)

// containers lists roles of elements that contain others.
var containers = []string{
	"article", "banner", "complementary", "contentinfo", "dialog", "feed", "figure", "form", "grid", "group", "list",
	"listbox", "main", "menu", "menubar", "navigation", "radiogroup", "region", "rowgroup", "search", "table",
	"tablist", "toolbar", "tree",
}

// Semantic returns what n seems to be, by fixed rules, for ranking and planning only. It is nil
// where the signs are weak or contradictory.
func (l *Look) Semantic(n *page.Node) *Semantic {
	s := &Semantic{Clickable: owns(n) || n.OwnHear, Container: slices.Contains(containers, n.Role)}
	if n.Role == "progressbar" || n.Role == "meter" || n.Tag == "progress" || n.Tag == "meter" {
		no := false
		s.Adjustable, s.Confidence, s.Reason = &no, "high", "it shows a value and takes none"
		return s
	}
	kinds := kindsOf(n)
	if len(kinds) > 1 {
		return nil
	}
	if len(kinds) == 1 {
		return as(s, kinds[0], "high")
	}
	if l.segments(n) {
		return as(s, segmented, "medium")
	}
	if (n.Tabbable || n.Native) && n.State.Value != nil && n.State.Range != nil {
		return as(s, adjustable, "medium")
	}
	if actions := l.parts(n); actions != nil {
		return as(s, shape{"composite_control", "semantic", actions, false, "one labelled group of several controls"}, "low")
	}
	switch {
	case n.Native || slices.Contains(interactive, n.Role):
		s.Confidence, s.Reason = "high", "native control or interactive role"
	case s.Clickable:
		s.Confidence, s.Reason = "medium", "it can be focused or listens"
	case s.Container:
		s.Confidence, s.Reason = "high", "its role holds others"
	default:
		return nil
	}
	return s
}

// as fills in s from a kind of control.
func as(s *Semantic, k shape, confidence string) *Semantic {
	yes := k.adjustable
	s.Role, s.Shape, s.Actions, s.Adjustable, s.Confidence, s.Reason = k.role, k.shape, k.actions, &yes,
		confidence, k.reason
	return s
}

// kindsOf returns the kinds that the element's own tag and role imply. More than one is a
// contradiction.
func kindsOf(n *page.Node) []shape {
	var out []shape
	for _, k := range []struct {
		on bool
		is shape
	}{
		{n.Tag == "input" && n.Type == "range" || n.Role == "slider", slider},
		{n.Tag == "input" && n.Type == "number" || n.Role == "spinbutton", stepper},
		{n.Tag == "select" || n.Role == "combobox" || n.Role == "listbox", dropdown},
		{n.Role == "radiogroup" || n.Role == "tablist", segmented},
	} {
		if k.on {
			out = append(out, k.is)
		}
	}
	return out
}

// segments reports whether n has two or more toggles as children, one of them chosen.
func (l *Look) segments(n *page.Node) bool {
	toggles, chosen := 0, 0
	for _, i := range l.tree.children[l.at[n.Ref]] {
		if on, is := toggled(&l.Nodes[i]); is {
			toggles++
			if on {
				chosen++
			}
		}
	}
	return toggles >= 2 && chosen == 1
}

func toggled(n *page.Node) (on, is bool) {
	for _, b := range []*bool{n.State.Checked, n.State.Chosen} {
		if b != nil {
			return *b, true
		}
	}
	return false, false
}

// maxParts is how many nodes of a group are looked at.
const maxParts = 64

// parts returns the actions of a labelled group with two or more controls, or nil for anything
// else.
func (l *Look) parts(n *page.Node) []string {
	if n.Role != "group" && n.Tag != "fieldset" || n.Name == "" {
		return nil
	}
	var actions []string
	count := 0
	for _, i := range l.tree.below(l.at[n.Ref], maxParts) {
		kinds := kindsOf(&l.Nodes[i])
		if len(kinds) != 1 {
			continue
		}
		count++
		for _, a := range kinds[0].actions {
			if !slices.Contains(actions, a) {
				actions = append(actions, a)
			}
		}
	}
	if count < 2 {
		return nil
	}
	return actions
}

// Geometry of a control and the label beside it, in CSS pixels.
const (
	nearbyMost   = 8 // actionable elements considered
	gapLeast     = -32
	gapMost      = 640
	overlapLeast = -32
)

// nearby returns the control beside a passive text, or nil if there is none. A control with another
// name belongs to another label.
func (l *Look) nearby(label *page.Node) (*page.Node, string) {
	var best *page.Node
	cost, seen := math.Inf(1), 0
	for i := l.at[label.Ref] + 1; i < len(l.Nodes) && seen < nearbyMost; i++ {
		n := &l.Nodes[i]
		if n.Frame != label.Frame || !n.Visible || !Executable(n) || l.inside(label, n) || l.control(n) != nil {
			continue
		}
		seen++
		if !adjoins(label.Bounds, n.Bounds) || !unclaimed(n, label) {
			continue
		}
		if c := l.cost(label, n); c < cost {
			best, cost = n, c
		}
	}
	switch {
	case best == nil:
		return nil, ""
	case l.track(best, label):
		return best, "slider_track_preferred"
	}
	return best, "nearby_actionable_control"
}

func adjoins(label, b page.Box) bool {
	gap := b.Y - (label.Y + label.H)
	overlap := min(label.X+label.W, b.X+b.W) - max(label.X, b.X)
	return gap >= gapLeast && gap <= gapMost && overlap >= overlapLeast
}

// unclaimed reports whether a control has no name or one that mentions the label.
func unclaimed(n, label *page.Node) bool {
	name, text := fold(n.Name), fold(label.Text)
	return name == "" || text != "" && (strings.Contains(name, text) || strings.Contains(text, name))
}

// cost ranks the controls beside a label; the lowest wins.
func (l *Look) cost(label, n *page.Node) float64 {
	c := math.Abs(n.Bounds.Y - (label.Bounds.Y + label.Bounds.H))
	if l.track(n, label) {
		c -= 30
	}
	if n.OwnText {
		c += 20
	} else {
		c -= 18
	}
	if slices.Contains([]string{"", "generic", "group", "presentation", "none"}, n.Role) {
		c -= 10
	}
	if n.Bounds.W > 1.5*label.Bounds.W {
		c -= 8
	}
	return c
}

// track reports whether n looks like the track of a slider.
func (l *Look) track(n, label *page.Node) bool {
	if n.Role == "slider" || n.Tag == "input" && n.Type == "range" {
		return true
	}
	if n.Native || n.Editable || n.OwnText {
		return false // a long button or field is not a track
	}
	w, h := n.Bounds.W, n.Bounds.H
	view, of := float64(l.Viewport.Width), label.Bounds.W
	if h > w {
		view, of = float64(l.Viewport.Height), label.Bounds.H
	}
	return max(w, h) >= max(220, 0.18*view, 1.5*of) && min(w, h) <= max(180, 0.08*view)
}

func hintOf(n *page.Node) *Hint {
	axis := "horizontal"
	if n.Bounds.H > n.Bounds.W {
		axis = "vertical"
	}
	return &Hint{Kind: "slider", Axis: axis, Track: n.Bounds}
}
