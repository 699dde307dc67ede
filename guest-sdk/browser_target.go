package guest

import (
	"encoding/json"
	"maps"
)

// A Target identifies an element. Prefer what a developer has set (ByTestID, ByID), then
// what people read (ByRole, ByLabel, ByText), then structure (ByCSS). If two elements match
// equally well the host refuses with AMBIGUOUS_TARGET; Within, Near and Nth narrow a
// target.
type Target struct {
	element  string
	selector map[string]any
}

func by(pairs ...any) Target {
	t := Target{selector: map[string]any{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if text, isText := pairs[i+1].(string); !isText || text != "" {
			t.selector[pairs[i].(string)] = pairs[i+1]
		}
	}
	return t
}

// ByRole matches an element by its role (button, link, textbox, checkbox, slider, …) and
// accessible name; an empty name matches any.
func ByRole(role, name string) Target { return by("role", role, "name", name) }

// ByLabel matches a control by the text of its label.
func ByLabel(text string) Target { return by("label", text) }

// ByText matches an element by its visible text.
func ByText(text string) Target { return by("text", text) }

// ByPlaceholder matches a field by its placeholder.
func ByPlaceholder(text string) Target { return by("placeholder", text) }

// ByTestID matches an element by data-testid, data-test or data-qa.
func ByTestID(id string) Target { return by("test_id", id) }

// ByID matches an element by its id.
func ByID(id string) Target { return by("id", id) }

// ByCSS matches an element by a CSS selector.
func ByCSS(selector string) Target { return by("css", selector) }

// ByQuery matches the element that fits the words best.
func ByQuery(words string) Target { return by("query", words) }

// ByElement matches exactly the element of an earlier reply. If it has changed or moved,
// the host refuses with STALE_REFERENCE.
func ByElement(id string) Target { return Target{element: id} }

func (t Target) with(name string, value any) Target {
	if t.element != "" {
		return t
	}
	t.selector = maps.Clone(t.selector)
	t.selector[name] = value
	return t
}

// Within requires that the element is inside another one.
func (t Target) Within(other Target) Target { return t.with("within", other) }

// Near selects the match that is closest to another element.
func (t Target) Near(other Target) Target { return t.with("near", other) }

// Nth selects the i-th match in document order, from 0.
func (t Target) Nth(i int) Target { return t.with("index", i) }

// Containing requires that the element contains text.
func (t Target) Containing(text string) Target { return t.with("contains", text) }

// InFrame looks in the frame with this name or id.
func (t Target) InFrame(name string) Target { return t.with("frame", name) }

// Loosely lets texts match in part.
func (t Target) Loosely() Target { return t.with("exact", false) }

// MarshalJSON returns the host's form of the target.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.element != "" {
		return json.Marshal(map[string]string{"element_id": t.element})
	}
	return json.Marshal(map[string]any{"selector": t.selector})
}
