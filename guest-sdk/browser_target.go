package guest

import (
	"encoding/json"
	"maps"
)

// A Target says which element is meant. By what is best: something a developer
// set (ByTestID, ByID), then what people read (ByRole, ByLabel, ByText), then
// structure (ByCSS). When two elements fit equally well nothing is done
// (AMBIGUOUS_TARGET): Within, Near and Nth tell them apart.
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

// ByRole means an element by its role (button, link, textbox, checkbox, slider, …)
// and its name; an empty name is any.
func ByRole(role, name string) Target { return by("role", role, "name", name) }

// ByLabel means a control by the text that labels it.
func ByLabel(text string) Target { return by("label", text) }

// ByText means an element by the text that it shows.
func ByText(text string) Target { return by("text", text) }

// ByPlaceholder means a field by its placeholder.
func ByPlaceholder(text string) Target { return by("placeholder", text) }

// ByTestID means an element by data-testid, data-test or data-qa.
func ByTestID(id string) Target { return by("test_id", id) }

// ByID means an element by its id.
func ByID(id string) Target { return by("id", id) }

// ByCSS means an element by a CSS selector.
func ByCSS(selector string) Target { return by("css", selector) }

// ByQuery means whatever fits the words best.
func ByQuery(words string) Target { return by("query", words) }

// ByElement means exactly the element of an earlier reply; once it, or its place,
// has changed the host refuses with STALE_REFERENCE.
func ByElement(id string) Target { return Target{element: id} }

func (t Target) with(name string, value any) Target {
	if t.element != "" {
		return t
	}
	t.selector = maps.Clone(t.selector)
	t.selector[name] = value
	return t
}

// Within means one inside of another element.
func (t Target) Within(other Target) Target { return t.with("within", other) }

// Near means the one closest to another element.
func (t Target) Near(other Target) Target { return t.with("near", other) }

// Nth means one of several, in document order, from 0.
func (t Target) Nth(i int) Target { return t.with("index", i) }

// Containing wants this text somewhere in it.
func (t Target) Containing(text string) Target { return t.with("contains", text) }

// InFrame means one in a frame, by its name or id.
func (t Target) InFrame(name string) Target { return t.with("frame", name) }

// Loosely lets parts of texts count.
func (t Target) Loosely() Target { return t.with("exact", false) }

// MarshalJSON is the target as the host reads it.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.element != "" {
		return json.Marshal(map[string]string{"element_id": t.element})
	}
	return json.Marshal(map[string]any{"selector": t.selector})
}
