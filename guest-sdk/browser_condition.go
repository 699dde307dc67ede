package guest

import "encoding/json"

// A Condition is something that is true of a page or not. An action expects one
// to become true; Wait waits for one; Expect asserts one. There is no other
// language for conditions, and no script.
type Condition struct{ members map[string]any }

// MarshalJSON is the condition as the host reads it.
func (c Condition) MarshalJSON() ([]byte, error) { return json.Marshal(c.members) }

func condition(kind string, pairs ...any) Condition {
	c := Condition{map[string]any{"kind": kind}}
	for i := 0; i+1 < len(pairs); i += 2 {
		c.members[pairs[i].(string)] = pairs[i+1]
	}
	return c
}

// All is true when all of them are.
func All(list ...Condition) Condition { return Condition{map[string]any{"all": list}} }

// Any is true when one of them is.
func Any(list ...Condition) Condition { return Condition{map[string]any{"any": list}} }

// Not is true when c is false; what cannot be read is neither.
func Not(c Condition) Condition { return Condition{map[string]any{"not": c}} }

// TextIs, TextContains and TextMatches look at the visible text of an element;
// a pattern is RE2.
func TextIs(t Target, text string) Condition {
	return condition("text", "target", t, "op", "equals", "value", text)
}

// TextContains is true when the text has this part.
func TextContains(t Target, text string) Condition {
	return condition("text", "target", t, "op", "contains", "value", text)
}

// TextMatches is true when the text matches the pattern.
func TextMatches(t Target, pattern string) Condition {
	return condition("text", "target", t, "op", "matches", "value", pattern)
}

// ValueIs looks at the value of a slider or stepper, give or take the tolerance.
func ValueIs(t Target, value, tolerance float64) Condition {
	return condition("value", "target", t, "equals", value, "tolerance", tolerance)
}

// Holds is true when an editable element holds the text.
func Holds(t Target, text string) Condition {
	return condition("text_value", "target", t, "equals", text)
}

// IsChecked is true when a checkbox, radio or switch is on, or off.
func IsChecked(t Target, on bool) Condition { return condition("checked", "target", t, "equals", on) }

// IsExpanded is true when what the element discloses is open, or closed.
func IsExpanded(t Target, open bool) Condition {
	return condition("expanded", "target", t, "equals", open)
}

// IsEnabled is true when the element can be used.
func IsEnabled(t Target) Condition { return condition("enabled", "target", t, "equals", true) }

// IsFocused is true when the element has the focus.
func IsFocused(t Target) Condition { return condition("focused", "target", t, "equals", true) }

// IsSelected is true when a list has this option chosen, by its id or its label.
func IsSelected(t Target, option string) Condition {
	return condition("selected", "target", t, "equals", option)
}

// IsVisible is true when the element can be seen.
func IsVisible(t Target) Condition { return condition("visible", "target", t, "equals", true) }

// Exists is true when there is such an element.
func Exists(t Target) Condition { return condition("exists", "target", t, "equals", true) }

// Gone is true when there is no such element.
func Gone(t Target) Condition { return condition("exists", "target", t, "equals", false) }

// CountIs, CountAtLeast and CountAtMost count the elements that fit.
func CountIs(t Target, n int) Condition {
	return condition("count", "target", t, "op", "eq", "value", n)
}

// CountAtLeast is true from n elements on.
func CountAtLeast(t Target, n int) Condition {
	return condition("count", "target", t, "op", "gte", "value", n)
}

// CountAtMost is true up to n elements.
func CountAtMost(t Target, n int) Condition {
	return condition("count", "target", t, "op", "lte", "value", n)
}

// AttributeIs is true when an attribute of the element has this value.
func AttributeIs(t Target, name, value string) Condition {
	return condition("attribute", "target", t, "name", name, "op", "equals", "value", value)
}

// URLContains is true when the address of the page has this part.
func URLContains(part string) Condition { return condition("url", "op", "contains", "value", part) }

// TitleContains is true when the title of the page has this part.
func TitleContains(part string) Condition { return condition("title", "op", "contains", "value", part) }

// Navigated is true when another document was loaded.
func Navigated() Condition { return condition("navigation") }

// Changed is true when the page is not what it was: hierarchy_diff, text_change or
// state_change, or any of them. It proves little: name what you expect if you can.
func Changed(kinds ...string) Condition {
	if len(kinds) == 0 {
		return condition("any_change")
	}
	return condition("any_change", "kinds", kinds)
}

// Downloaded is true when a download is finished whose name matches the pattern;
// "" is any.
func Downloaded(pattern string) Condition {
	if pattern == "" {
		return condition("download")
	}
	return condition("download", "name_matches", pattern)
}

// TabOpened is true when the page opened another tab; Action.OpenedTab names it.
func TabOpened() Condition { return condition("tab") }

// AreSelected is true when exactly these options of a list of many are chosen, by
// value or label.
func AreSelected(t Target, options ...string) Condition {
	return condition("selected", "target", t, "equals", append([]string{}, options...))
}

// FilesAre is true when a file input has these names chosen.
func FilesAre(t Target, names ...string) Condition {
	return condition("files", "target", t, "names", names)
}
