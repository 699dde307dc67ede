package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestAwait: the conditions that one look decides.
func TestAwait(t *testing.T) {
	hidden, disabled := buttonNode("h", "", "Later"), buttonNode("d", "", "Off")
	hidden.Type, disabled.Disabled = "hidden", true
	l := lay(page.Query{}, buttonNode("a", "", "Go"), buttonNode("b", "", "Go"), hidden, disabled,
		page.Node{Ref: "p", Tag: "p", Text: "Text"}, buttonNode("own", "", "Buy now"), page.Node{Ref: "in", Up: "own", Tag: "i", Text: "Buy"})
	name := func(s string) *engine.Target { return by(page.Selector{Text: s}) }
	for _, c := range []struct {
		condition, text string
		index           *int
		met             bool
		matched         int
		found           page.Ref
	}{
		{"exists", "Go", nil, true, 2, "a"},
		{"exists", "Go", pointer(1), true, 2, "b"},
		{"exists", "Go", pointer(2), false, 2, ""},
		{"exists", "Later", nil, true, 1, "h"},
		{"exists", "None", nil, false, 0, ""},
		{"not_exists", "Go", nil, false, 2, ""},
		{"not_exists", "Go", pointer(2), true, 2, ""},
		{"not_exists", "Go", pointer(1), false, 2, ""},
		{"not_exists", "None", nil, true, 0, ""},
		{"visible", "Go", nil, true, 2, "a"},
		{"visible", "Later", nil, false, 1, ""},
		{"hidden", "Later", nil, true, 1, ""},
		{"hidden", "None", nil, true, 0, ""},
		{"hidden", "Go", nil, false, 2, ""},
		{"clickable", "Go", nil, true, 2, "a"},
		{"clickable", "Off", nil, false, 1, ""},
		{"clickable", "Later", nil, false, 1, ""},
		{"clickable", "Text", nil, false, 1, ""},
		{"clickable", "Buy", nil, true, 1, "own"}, // through its owner
		{"visible", "Buy", nil, true, 1, "in"},
	} {
		s := &engine.Scene{Now: l, Identity: engine.NewIdentity()}
		got := s.Await(&engine.WaitArgs{For: c.condition, Index: c.index}, name(c.text))
		if got.Met != c.met || got.Matched != c.matched {
			t.Errorf("%s %s: met %t of %d", c.condition, c.text, got.Met, got.Matched)
		}
		if ref := foundRef(got.Found); ref != c.found {
			t.Errorf("%s %s: found %q", c.condition, c.text, ref)
		}
		if c.index != nil && (got.SelectedIndex == nil) != (*c.index >= c.matched) {
			t.Errorf("%s %s: selected %v", c.condition, c.text, got.SelectedIndex)
		}
		if (got.Last == nil) != (c.matched == 0) {
			t.Errorf("%s %s: last %v", c.condition, c.text, got.Last)
		}
	}
}

func foundRef(f *engine.Found) page.Ref {
	if f == nil {
		return ""
	}
	return f.Node.Ref
}

// TestAwaitPage: conditions that are about the page.
func TestAwaitPage(t *testing.T) {
	s := &engine.Scene{Now: lay(page.Query{}), Identity: engine.NewIdentity()}
	met := func(condition string) bool { return s.Await(&engine.WaitArgs{For: condition}, nil).Met }
	if !met("load") || met("navigation") || met("exists") {
		t.Error("a page at rest")
	}
	s.Now.Loading, s.Happened.Loaders = &page.Loading{Signal: "document_loading"}, []string{"l"}
	if met("load") || !met("navigation") {
		t.Error("a page that loads")
	}
	s.Now.Loading.Signal = "requests_in_flight"
	if !met("load") {
		t.Error("traffic is a hint only")
	}
}
