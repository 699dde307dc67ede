package guest

import "encoding/json"

// A Condition is a statement about a page. An action expects one to become true, Wait waits
// for one, and Expect asserts one. Conditions are data, never scripts.
type Condition struct{ members map[string]any }

// MarshalJSON returns the host's form of the condition.
func (c Condition) MarshalJSON() ([]byte, error) { return json.Marshal(c.members) }

func condition(kind string, pairs ...any) Condition {
	c := Condition{map[string]any{"kind": kind}}
	for i := 0; i+1 < len(pairs); i += 2 {
		c.members[pairs[i].(string)] = pairs[i+1]
	}
	return c
}

// All is true if all conditions of the list are.
func All(list ...Condition) Condition { return Condition{map[string]any{"all": list}} }

// Any is true if at least one condition of the list is.
func Any(list ...Condition) Condition { return Condition{map[string]any{"any": list}} }

// Not is true if c is false. If c cannot be evaluated, Not(c) cannot either.
func Not(c Condition) Condition { return Condition{map[string]any{"not": c}} }

// TextIs is true if the visible text of an element equals text.
func TextIs(t Target, text string) Condition {
	return condition("text", "target", t, "op", "equals", "value", text)
}

// TextContains is true if the visible text of an element contains text.
func TextContains(t Target, text string) Condition {
	return condition("text", "target", t, "op", "contains", "value", text)
}

// TextMatches is true if the visible text of an element matches the RE2 pattern.
func TextMatches(t Target, pattern string) Condition {
	return condition("text", "target", t, "op", "matches", "value", pattern)
}

// ValueIs is true if a slider or stepper has this value, within tolerance.
func ValueIs(t Target, value, tolerance float64) Condition {
	return condition("value", "target", t, "equals", value, "tolerance", tolerance)
}

// Holds is true if an editable element contains exactly text.
func Holds(t Target, text string) Condition {
	return condition("text_value", "target", t, "equals", text)
}

// IsChecked is true if the state of a checkbox, radio button or switch is on.
func IsChecked(t Target, on bool) Condition { return condition("checked", "target", t, "equals", on) }

// IsExpanded is true if the part that the element discloses is open, or closed.
func IsExpanded(t Target, open bool) Condition {
	return condition("expanded", "target", t, "equals", open)
}

// IsEnabled is true if the element can be used.
func IsEnabled(t Target) Condition { return condition("enabled", "target", t, "equals", true) }

// IsFocused is true if the element has the focus.
func IsFocused(t Target) Condition { return condition("focused", "target", t, "equals", true) }

// IsSelected is true if this option of a list, given by id or label, is selected.
func IsSelected(t Target, option string) Condition {
	return condition("selected", "target", t, "equals", option)
}

// IsVisible is true if the element is visible.
func IsVisible(t Target) Condition { return condition("visible", "target", t, "equals", true) }

// Exists is true if there is such an element.
func Exists(t Target) Condition { return condition("exists", "target", t, "equals", true) }

// Gone is true if there is no such element.
func Gone(t Target) Condition { return condition("exists", "target", t, "equals", false) }

// CountIs is true if exactly n elements match.
func CountIs(t Target, n int) Condition {
	return condition("count", "target", t, "op", "eq", "value", n)
}

// CountAtLeast is true if n or more elements match.
func CountAtLeast(t Target, n int) Condition {
	return condition("count", "target", t, "op", "gte", "value", n)
}

// CountAtMost is true if n or fewer elements match.
func CountAtMost(t Target, n int) Condition {
	return condition("count", "target", t, "op", "lte", "value", n)
}

// AttributeIs is true if an attribute of the element has this value.
func AttributeIs(t Target, name, value string) Condition {
	return condition("attribute", "target", t, "name", name, "op", "equals", "value", value)
}

// URLContains is true if the URL of the page contains part.
func URLContains(part string) Condition { return condition("url", "op", "contains", "value", part) }

// TitleContains is true if the title of the page contains part.
func TitleContains(part string) Condition { return condition("title", "op", "contains", "value", part) }

// Navigated is true if another document was loaded.
func Navigated() Condition { return condition("navigation") }

// Changed is true if the page changed, in one of the given ways (hierarchy_diff,
// text_change, state_change) or any. It proves little; prefer a specific condition.
func Changed(kinds ...string) Condition {
	if len(kinds) == 0 {
		return condition("any_change")
	}
	return condition("any_change", "kinds", kinds)
}

// Downloaded is true if a download has finished whose name matches the pattern; "" matches
// any.
func Downloaded(pattern string) Condition {
	if pattern == "" {
		return condition("download")
	}
	return condition("download", "name_matches", pattern)
}

// TabOpened is true if the page opened another tab; Action.OpenedTab names it.
func TabOpened() Condition { return condition("tab") }

// AreSelected is true if exactly these options of a multiple-choice list, given by value or
// label, are selected.
func AreSelected(t Target, options ...string) Condition {
	return condition("selected", "target", t, "equals", append([]string{}, options...))
}

// FilesAre is true if exactly these files, by name, are selected in a file input.
func FilesAre(t Target, names ...string) Condition {
	return condition("files", "target", t, "names", names)
}
