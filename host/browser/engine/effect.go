package engine

import (
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A Declared action is declared in the manifest and was reviewed with it. "" and nil leave a
// property undeclared.
type Declared = abi.DeclaredAction

// Sources of an effect.
const (
	FromSchema  = "schema"
	FromHandler = "handler"
	FromTable   = "table"
	// FromPage means that the page sent something because of an action that is local by nature.
	FromPage = "page"
)

// Effect returns the effect of v and its source: the schema (the declared action, then the verb's
// annotation), then the handler, then the table. An unknown effect counts as a side effect.
func Effect(v Verb, d *Declared, handler string) (effect, source string) {
	switch {
	case d != nil && d.ActionType != "":
		return orSide(d.ActionType), FromSchema
	case v.Annotation() != "":
		return orSide(v.Annotation()), FromSchema
	case handler != "":
		return orSide(handler), FromHandler
	}
	return orSide(ByName(string(v))), FromTable
}

func orSide(effect string) string {
	if effect == LocalState {
		return LocalState
	}
	return SideEffect
}

// localNames lists the names in the fallback table that stay in the page. Every other name is a
// side effect.
var localNames = []string{
	"type", "fill", "clear", "select", "check", "adjust", "scroll", "hover",
	"tap", "tap_element", "tap_toggle", "toggle_switch", "swipe", "drag_slider", "pick", "type_text", "enter_text",
	"scroll_to_element", "switch_tab", "expand", "collapse", "press_back",
}

// ByName returns the effect that the fallback table gives a name. It considers nothing but the
// name.
func ByName(name string) string {
	if slices.Contains(localNames, strings.ToLower(strings.TrimSpace(name))) {
		return LocalState
	}
	return SideEffect
}

// Handler returns the effect that follows from the resolved node before the dispatch, or "" if that
// is unknown. For press, n is the focused node, or nil if there is none; label is the control that
// n labels, or nil.
func Handler(r *Request, n, label *page.Node) string {
	switch r.Verb {
	case Click:
		return ofClick(n, label)
	case Press:
		return ofPress(r.Press.Chords, n)
	}
	return ""
}

func ofClick(n, label *page.Node) string {
	if n == nil {
		return ""
	}
	switch effect := natural(n); {
	case effect != "":
		return effect
	case label != nil && natural(label) == LocalState:
		return LocalState
	}
	return ""
}

// natural returns the default effect of a click on n. Submitting and leaving are checked first: a
// link that also claims to expand still leaves.
func natural(n *page.Node) string {
	switch {
	case n.Submits, n.Leaves, n.Role == "link" && !n.Fragment:
		return SideEffect
	case n.Fragment, n.Popup, n.State.Expanded != nil, n.Tag == "summary":
		return LocalState
	case slices.Contains([]string{"checkbox", "radio", "switch", "option", "tab", "slider", "spinbutton"}, n.Role):
		return LocalState
	case n.Tag == "input" && slices.Contains([]string{"checkbox", "radio", "range", "number"}, n.Type), n.Tag == "option":
		return LocalState
	}
	return ""
}

// ofPress returns the effect of a sequence of chords. One that submits decides; it is local only if
// all chords are harmless.
func ofPress(chords []string, n *page.Node) string {
	quiet := len(chords) > 0
	for _, c := range chords {
		c, _ := page.ParseChord(c)
		switch plain := c.Plain(page.Shift); {
		case c.Key.Code == "Enter" && n != nil && n.InForm:
			return SideEffect
		case plain && c.Key.Moves:
		case plain && c.Key.Code == "Space" && n != nil && natural(n) == LocalState:
		default:
			quiet = false
		}
	}
	if quiet {
		return LocalState
	}
	return ""
}
