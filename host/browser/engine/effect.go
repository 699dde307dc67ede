package engine

import (
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A Declared action was reviewed with the manifest; "" and nil say nothing.
type Declared = abi.DeclaredAction

// Sources of an effect.
const (
	FromSchema  = "schema"
	FromHandler = "handler"
	FromTable   = "table"
	// FromPage: what stays in the page by its nature made the page send something.
	FromPage = "page"
)

// Effect is what v does to the world, and who says so: the schema, that is the
// declared action or else the verb's annotation; then the handler; then the table.
// A word that is no effect is a side effect.
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

// localNames are the rows of the fallback table that stay in the page; every other
// name is a side effect.
var localNames = []string{
	"type", "fill", "clear", "select", "check", "adjust", "scroll", "hover",
	"tap", "tap_element", "tap_toggle", "toggle_switch", "swipe", "drag_slider", "pick", "type_text", "enter_text",
	"scroll_to_element", "switch_tab", "expand", "collapse", "press_back",
}

// ByName is the fallback table. It looks at the name and at nothing else.
func ByName(name string) string {
	if slices.Contains(localNames, strings.ToLower(strings.TrimSpace(name))) {
		return LocalState
	}
	return SideEffect
}

// Handler is what the executing handler can say of an effect, before dispatch and
// from the raw semantics of the resolved node: "" when that is nothing. For
// press, n is the focused node, or nil for none; label is the control that n
// labels, or nil.
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

// natural is what a click on n does by n's own nature. What submits or leaves is
// looked at first: a link that also says it expands still leaves.
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

// ofPress is the effect of a sequence of chords: one that submits decides, and all
// have to be quiet for it to be local.
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
