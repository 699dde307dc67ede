package chromium_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// inside reads until frames of every kind are looked into: one of another site takes
// a moment to be attached to.
func inside(t *testing.T, tab page.Tab, want int, css string) []page.Node {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for range 400 {
		// A document that goes to another process leaves a call without its answer.
		limit, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		o, err := tab.Read(limit, page.Query{Selectors: []page.Selector{{CSS: css}}})
		cancel()
		if errors.Is(err, page.ErrHung) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var found []page.Node
		for _, n := range o.Nodes {
			if len(n.Matches) > 0 {
				found = append(found, n)
			}
		}
		if len(found) == want {
			return found
		}
		<-look.C
	}
	t.Fatalf("not %d nodes are %s", want, css)
	return nil
}

// Documents of the same origin, of the same site and of another site are read and
// clicked alike.
func TestFrames(t *testing.T) {
	tab, ctx := open(t, "frames.html")
	n := inside(t, tab, 3, ".in")
	origins := []string{"http://one.test", "http://sub.one.test", "http://two.test"}
	for i, b := range n {
		if b.Origin != origins[i] || b.Frame == "" || !b.Visible ||
			i > 0 && (b.Order <= n[i-1].Order || b.Ordinal <= n[i-1].Ordinal) {
			t.Errorf("frame %d: %+v", i, b)
		}
		r, err := tab.Ready(ctx, b.Ref, page.Point{X: 0.5, Y: 0.5})
		if err != nil || r.Fault != "" {
			t.Fatal(i, r.Fault, r.By, err)
		}
		if c := b.Bounds.Center(); abs(c.X-r.Point.X) > 1 || abs(c.Y-r.Point.Y) > 1 {
			t.Errorf("%s: read at %v, ready at %v", b.Origin, c, r.Point)
		}
		if d, err := tab.Click(ctx, page.Click{At: r.Point}); err != nil || d.Trusted < 3 {
			t.Error(i, d, err)
		}
	}
	for i, b := range inside(t, tab, 3, ".in") {
		if b.Name != "Inner clicked" {
			t.Errorf("%s: %q", origins[i], b.Name)
		}
	}
	for i, f := range inside(t, tab, 3, ".field") {
		if d, err := tab.Fill(ctx, f.Ref, "in "+origins[i]); err != nil || d.Trusted < 1 {
			t.Error(d, err)
		}
		if d, err := tab.Press(ctx, f.Ref, "End", 1); err != nil || d.Trusted < 1 {
			t.Error(d, err)
		}
	}
	for i, f := range inside(t, tab, 3, ".field") {
		if *f.State.TextValue != "in "+origins[i] {
			t.Errorf("%q in %s", *f.State.TextValue, origins[i])
		}
	}
	o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{ID: "last"}, {ID: "top"}}})
	if err != nil || len(o.Frames) != 3 {
		t.Fatal(err, o.Frames)
	}
	last := o.Nodes[len(o.Nodes)-1]
	if last.ID != "last" || last.Order <= n[2].Order {
		t.Errorf("the last one is %+v", last)
	}
}

func TestShadow(t *testing.T) {
	tab, ctx := open(t, "frames.html")
	o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{Name: "shadow"}}})
	if err != nil {
		t.Fatal(err)
	}
	var ref page.Ref
	for _, n := range o.Nodes {
		if n.ID == "shady" {
			ref = n.Ref
		}
	}
	r, err := tab.Ready(ctx, ref, page.Point{X: 0.5, Y: 0.5})
	if err != nil || r.Fault != "" {
		t.Fatal(r.Fault, err)
	}
	if d, err := tab.Click(ctx, page.Click{At: r.Point}); err != nil || d.Trusted < 3 {
		t.Fatal(d, err)
	}
	if n := look(t, ctx, tab, "#shady")[0]; n.Text != "Shadow clicked" {
		t.Error(n.Text)
	}
}

// A reference is never of another document's node, and never comes back.
func TestRefs(t *testing.T) {
	tab, ctx := open(t, "form.html")
	n := look(t, ctx, tab, "#email")[0]
	if _, err := tab.History(ctx, "reload", "load"); err != nil {
		t.Fatal(err)
	}
	if r, err := tab.Ready(ctx, n.Ref, page.Point{}); err != nil || r.Fault != "detached" {
		t.Error(r.Fault, err)
	}
	m := look(t, ctx, tab, "#email")[0]
	if m.Ref == n.Ref {
		t.Error("a reference came back")
	}
	for _, r := range []page.Ref{"", "1", "1.", ".1", "1.-1", "9.9", page.Ref(strings.Repeat("1", 99))} {
		if err := tab.ScrollTo(ctx, r, page.Middle, page.Center); err == nil {
			t.Errorf("%q is a node", r)
		}
	}
}

func abs(f float64) float64 { return max(f, -f) }
