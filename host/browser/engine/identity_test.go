package engine_test

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func byID(id string) *engine.Target { return &engine.Target{ElementID: id} }

var clicking = engine.ResolveOptions{Verb: engine.Click}

// taken resolves Save on a fresh page and returns its id.
func taken(t *testing.T, id *engine.Identity) string {
	t.Helper()
	f, miss := lay(page.Query{}, buttonNode("a", "", "Open"), buttonNode("b", "", "Save")).Resolve(id,
		by(page.Selector{Name: "Save"}), clicking)
	if miss != nil {
		t.Fatal(miss.Code)
	}
	return f.Element.ElementID
}

// TestExactIdentity: an id stands for one element at one place; any part that differs
// makes it stale.
func TestExactIdentity(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*page.Observation)
		stale  bool
	}{
		{"nothing", func(*page.Observation) {}, false},
		{"state and place on the screen", func(o *page.Observation) {
			o.Nodes[1].State.Focused, o.Nodes[1].Bounds.Y, o.Nodes[1].Description = pointer(true), 300, "x"
		}, false},
		{"document", func(o *page.Observation) { o.Document = "d2" }, true},
		{"node", func(o *page.Observation) { o.Nodes[1].Ref = "b2" }, true},
		{"role", func(o *page.Observation) { o.Nodes[1].Role = "link" }, true},
		{"name", func(o *page.Observation) { o.Nodes[1].Name = "Save all" }, true},
		{"stable id", func(o *page.Observation) { o.Nodes[1].TestID = "save" }, true},
		{"ordinal", func(o *page.Observation) { o.Nodes[1].Ordinal = 2 }, true},
		{"gone", func(o *page.Observation) { o.Nodes = o.Nodes[:1] }, true},
	} {
		id := engine.NewIdentity()
		el := taken(t, id)
		l := lay(page.Query{}, buttonNode("a", "", "Open"), buttonNode("b", "", "Save"))
		c.change(l.Observation)
		l = engine.NewLook(l.Observation, page.Query{})
		f, miss := l.Resolve(id, byID(el), clicking)
		switch {
		case !c.stale && (miss != nil || f.Node.Ref != "b" || f.Element.ElementID != el):
			t.Errorf("%s: %+v", c.name, miss)
		case c.stale && (miss == nil || miss.Code != engine.StaleReference):
			t.Errorf("%s: taken as %+v", c.name, f)
		}
	}
}

// TestReplacements: what is likely to stand in is named under fresh ids, and is
// taken only when asked for and only one.
func TestReplacements(t *testing.T) {
	id := engine.NewIdentity()
	el := taken(t, id)
	rebind := engine.ResolveOptions{Verb: engine.Click, Rebind: true}

	one := lay(page.Query{}, buttonNode("n1", "", "Open"), buttonNode("n2", "", "Save"))
	_, miss := one.Resolve(id, byID(el), clicking)
	if miss == nil || len(miss.Resolution.Alternates) != 1 || miss.Resolution.Alternates[0].ElementID == el {
		t.Fatalf("%+v", miss)
	}
	f, miss := one.Resolve(id, byID(el), rebind)
	if miss != nil || f.Node.Ref != "n2" || !f.Rebound || f.Resolution.Reason != "rebound" {
		t.Fatalf("%+v %+v", f, miss)
	}
	if f.Element.ElementID == el {
		t.Error("the replacement has the old id")
	}
	two := lay(page.Query{}, buttonNode("n1", "", "Save"), buttonNode("n2", "", "Save"))
	if _, miss := two.Resolve(id, byID(el), rebind); miss == nil || miss.Code != engine.StaleReference ||
		len(miss.Resolution.Alternates) != 2 {
		t.Errorf("two: %+v", miss)
	}
	other := lay(page.Query{}, buttonNode("n1", "", "Save all"))
	if _, miss := other.Resolve(id, byID(el), rebind); miss == nil || miss.Code != engine.StaleReference {
		t.Errorf("another name: %+v", miss)
	}
}

// TestTwoPlaces: an id lives in the latest snapshot or among the 256 elements that were
// resolved last.
func TestTwoPlaces(t *testing.T) {
	id := engine.NewIdentity()
	old := taken(t, id)
	l := lay(page.Query{}, buttonNode("a", "", "Open"), buttonNode("b", "", "Save"), buttonNode("c", "", "Print"))
	first, _ := l.Snapshot(id, &engine.SnapshotArgs{})
	if len(first.Elements) != 3 || first.Elements[1].ElementID != old {
		t.Fatalf("%+v", first.Elements)
	}
	print := first.Elements[2].ElementID
	if !id.Holds(print, "d1") || id.Holds(print, "d2") || id.Holds("el_none", "d1") {
		t.Error("holds what it should not, or does not hold what it should")
	}
	for i := range 256 {
		nodes := []page.Node{buttonNode("", "", fmt.Sprint("B", i))}
		nodes[0].Ref = page.Ref(fmt.Sprint("r", i))
		if _, miss := lay(page.Query{}, nodes...).Resolve(id, by(page.Selector{Role: "button"}), clicking); miss != nil {
			t.Fatal(miss.Code)
		}
		if i == 254 && !id.Holds(old, "d1") { // using it makes it the youngest
			t.Fatal("out too early")
		}
	}
	if !id.Holds(old, "d1") || !id.Holds(print, "d1") {
		t.Error("an id of the snapshot, or one that was used, is forgotten")
	}
	if _, miss := lay(page.Query{}, buttonNode("x", "", "X")).Snapshot(id, &engine.SnapshotArgs{}); miss != nil {
		t.Fatal(miss)
	}
	if id.Holds(print, "d1") {
		t.Error("the snapshot before is remembered")
	}
	if _, miss := l.Resolve(id, byID(print), clicking); miss == nil || miss.Code != engine.StaleReference {
		t.Errorf("%+v", miss)
	}
}

// TestResolvedTable: 256 elements are remembered, and using one keeps it.
func TestResolvedTable(t *testing.T) {
	for _, c := range []struct {
		before, after int // others that are resolved before and after the use
		held          bool
	}{{0, 255, true}, {0, 256, false}, {255, 255, true}, {255, 256, false}} {
		id := engine.NewIdentity()
		el, next := taken(t, id), 0
		more := func(n int) {
			for range n {
				next++
				b := buttonNode(fmt.Sprint("r", next), "", fmt.Sprint("B", next))
				if _, miss := lay(page.Query{}, b).Resolve(id, by(page.Selector{Role: "button"}), clicking); miss != nil {
					t.Fatal(miss.Code)
				}
			}
		}
		more(c.before)
		if !id.Holds(el, "d1") {
			t.Fatalf("%+v: out too early", c)
		}
		more(c.after)
		if id.Holds(el, "d1") != c.held {
			t.Errorf("%+v", c)
		}
	}
}

// TestForget: after the owner's lease every id is stale, and none comes back.
func TestForget(t *testing.T) {
	id := engine.NewIdentity()
	el := taken(t, id)
	shown, _ := lay(page.Query{}, buttonNode("z", "", "Z")).Snapshot(id, &engine.SnapshotArgs{})
	id.Forget()
	if id.Holds(el, "d1") || id.Holds(shown.Elements[0].ElementID, "d1") {
		t.Error("it is remembered")
	}
	if again := taken(t, id); again == el {
		t.Errorf("%s stands for two elements", el)
	}
}

// TestWant: the query asks for all that the targets and predicates speak of, once.
func TestWant(t *testing.T) {
	id := engine.NewIdentity()
	el := taken(t, id)
	target := by(page.Selector{CSS: "#a"})
	target.Selector.Within, target.Selector.Near = by(page.Selector{Role: "row"}), byID(el)
	q := engine.Want(id, []*engine.Target{target, nil, target, byID("el_none")},
		[]*engine.Predicate{nil, {Kind: "all", Of: []engine.Predicate{
			{Kind: "attribute", Attribute: "href", Target: by(page.Selector{Text: "x"})}, {Kind: "attribute", Attribute: "href"},
			{Kind: "not", Of: []engine.Predicate{{Kind: "exists", Target: by(page.Selector{Role: "row"})}}},
		}}})
	want := fmt.Sprint([]page.Selector{{CSS: "#a"}, {Role: "row"}, {Role: "button", Name: "Save"}, {Text: "x"}})
	if fmt.Sprint(q.Selectors) != want || fmt.Sprint(q.Refs) != "[b]" || fmt.Sprint(q.Attributes) != "[href]" ||
		!q.Digests || q.All {
		t.Errorf("%+v", q)
	}
}

// TestStableID: made of what a developer wrote, never of what looks generated.
func TestStableID(t *testing.T) {
	for _, c := range []struct {
		n    page.Node
		want string
	}{
		{page.Node{TestID: "Save-Button ", NameAtt: "save", ID: "s"}, "Save-Button "}, // verbatim
		{page.Node{NameAtt: "email", ID: "e"}, "email"},
		{page.Node{ID: "login-form"}, "login-form"},
		{page.Node{ID: "step-2-of-3"}, "step-2-of-3"},
		{page.Node{ID: "year2026"}, "year2026"},
		{page.Node{ID: "facade12"}, "facade12"},
		{page.Node{ID: "panel-48213"}, ""},
		{page.Node{ID: "x12345y"}, ""},
		{page.Node{ID: "ember123"}, ""},
		{page.Node{ID: ":r1a:"}, ""},
		{page.Node{ID: "radix-:r3:"}, ""},
		{page.Node{ID: "react-select-2-input"}, ""},
		{page.Node{ID: "a3f9c2d1"}, ""},
		{page.Node{ID: "b-7f3a9c2e81d04b5f"}, ""},
		{page.Node{ID: "k9x2m4q8z1"}, ""},
		{page.Node{Name: "Save", Text: "Save"}, ""},
	} {
		if got := engine.StableID(&c.n); got != c.want {
			t.Errorf("%+v: %q", c.n.ID, got)
		}
	}
}
