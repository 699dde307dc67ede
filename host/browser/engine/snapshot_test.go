package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func snap(t *testing.T, l *engine.Look, a engine.SnapshotArgs) *engine.SnapshotReply {
	t.Helper()
	r, miss := l.Snapshot(engine.NewIdentity(), &a)
	if miss != nil {
		t.Fatal(miss.Code)
	}
	return r
}

func roles(r *engine.SnapshotReply) string {
	var out []string
	for _, e := range r.Elements {
		out = append(out, e.Role)
	}
	return strings.Join(out, " ")
}

// TestSnapshot: what is shown by default, in document order, with all that a guest is told of them.
func TestSnapshot(t *testing.T) {
	secret := fieldNode("pw", "", "Password")
	secret.Secret, secret.Type, secret.State = true, "password",
		page.State{TextValue: pointer("s3cret"), Focused: pointer(true)}
	tagged := buttonNode("b", "", "Save")
	tagged.TestID, tagged.Submits = "save-btn", true
	hidden := buttonNode("x", "", "Hidden")
	hidden.Type = "hidden"
	l := lay(page.Query{}, node("h", "", "h1", "heading", "Sign in"), page.Node{Ref: "wrap", Tag: "div"},
		secret, tagged, hidden)
	r := snap(t, l, engine.SnapshotArgs{})
	if got := roles(r); got != "heading textbox button" {
		t.Errorf("shows %s", got)
	}
	if r.Revision != 7 || r.Fingerprint != "fp_1" || r.Truncated || r.Console == nil || r.Loading != nil {
		t.Errorf("%+v", r)
	}
	for _, e := range r.Elements {
		if e.ElementID == "" || e.Selector == nil || e.Selector.Confidence.Reason == "" {
			t.Errorf("%+v", e)
		}
		if e.StableID == "" && (e.Selector.Confidence.Reason != "no_stable_id" || e.Selector.Confidence.Score > 0.9) {
			t.Errorf("without a stable id: %+v", e.Selector)
		}
	}
	if e := r.Elements[2]; e.StableID != "save-btn" || e.TestTag != "save-btn" || e.Selector.Value.TestID != "save-btn" ||
		!e.Actionable || e.ExpectedSignal != "" {
		t.Errorf("%+v", e)
	}
	raw, err := json.Marshal(r)
	if err != nil || strings.Contains(string(raw), "s3cret") {
		t.Errorf("a typed password is shown: %s %v", raw, err)
	}
	if !strings.Contains(string(raw), `"focused":true`) {
		t.Error("the rest of its state is not")
	}
	if p := r.Semantic; p == nil || p.Screen != "login" || p.Warnings == nil ||
		!slices.Contains(p.Actions, "button: Save") {
		t.Errorf("%+v", p)
	}
}

// TestSnapshotFilters: query and within narrow it down.
func TestSnapshotFilters(t *testing.T) {
	l := rows()
	r := snap(t, l, engine.SnapshotArgs{Within: by(page.Selector{TestID: "row1"})})
	if got := roles(r); got != "button" {
		t.Errorf("within: %q", got)
	}
	r = snap(t, l, engine.SnapshotArgs{Query: "delete"})
	if got := roles(r); got != "button button button" {
		t.Errorf("query: %q", got)
	}
	r = snap(t, l, engine.SnapshotArgs{Query: "delete", Within: by(page.Selector{TestID: "row2"})})
	if len(r.Elements) != 1 {
		t.Errorf("both: %q", roles(r))
	}
	if _, miss := l.Snapshot(engine.NewIdentity(),
		&engine.SnapshotArgs{Within: by(page.Selector{TestID: "none"})}); miss == nil || miss.Code != engine.ElementNotFound {
		t.Errorf("%+v", miss)
	}
}

// TestSnapshotLimit: what is in the viewport, then what is near, in document order.
func TestSnapshotLimit(t *testing.T) {
	var nodes []page.Node
	for i := range 40 { // from 400 px above the viewport to 480 below
		nodes = append(nodes, at(buttonNode(fmt.Sprint("b", i), "", fmt.Sprint("B", i)), 0, float64(40*i-400), 10, 10))
	}
	r := snap(t, lay(page.Query{}, nodes...), engine.SnapshotArgs{Limit: 19})
	if !r.Truncated || len(r.Elements) != 19 {
		t.Fatalf("%d, truncated %t", len(r.Elements), r.Truncated)
	}
	if first, last := r.Elements[0].Label, r.Elements[18].Label; first != "B10" || last != "B28" {
		t.Errorf("%s to %s", first, last)
	}
}

// TestShrink: a reply over its size loses elements from the end and says so.
func TestShrink(t *testing.T) {
	var nodes []page.Node
	for i := range 2000 {
		n := buttonNode(fmt.Sprint("b", i), "", fmt.Sprint("B", i))
		n.Text = strings.Repeat("<", 512) // six bytes each in JSON
		nodes = append(nodes, n)
	}
	r := snap(t, lay(page.Query{}, nodes...), engine.SnapshotArgs{Limit: 2000})
	if !r.Shrink(0) || !r.Truncated || len(r.Elements) == 0 {
		t.Fatalf("%d elements", len(r.Elements))
	}
	if raw, _ := json.Marshal(r); len(raw) > engine.MaxReply {
		t.Errorf("%d bytes", len(raw))
	}
	if r.Shrink(10) {
		t.Error("ten bytes hold nothing")
	}
}

func pointer[T any](v T) *T { return &v }

// node makes one node; lay gives it what is missing.
func node(ref, up, tag, role, name string) page.Node {
	return page.Node{Ref: page.Ref(ref), Up: page.Ref(up), Tag: tag, Role: role, Name: name, Text: name}
}

func buttonNode(ref, up, name string) page.Node {
	n := node(ref, up, "button", "button", name)
	n.Native = true
	return n
}

func fieldNode(ref, up, name string) page.Node {
	n := node(ref, up, "input", "textbox", name)
	n.Type, n.Native, n.Editable, n.Text = "text", true, true, ""
	return n
}

// lay is a page that shows the nodes below each other, 100×20 each, 40 apart, as an
// answer to q. Boxes that are set stay.
func lay(q page.Query, nodes ...page.Node) *engine.Look {
	ordinal := 0
	for i := range nodes {
		n := &nodes[i]
		if n.Ref == "" {
			n.Ref = page.Ref("n" + strconv.Itoa(i))
		}
		if n.Bounds == (page.Box{}) {
			n.Bounds = page.Box{X: 0, Y: float64(40 * i), W: 100, H: 20}
		}
		if n.Type != "hidden" {
			n.Visible = true
		}
		n.Order, n.Ordinal = i, ordinal
		if n.Native {
			ordinal++
		}
	}
	return engine.NewLook(&page.Observation{
		Document: "d1", Revision: 7, Fingerprint: "fp_1", URL: "https://a.example/p?x=1#top", Title: "Page", Nodes: nodes,
		Viewport: page.Viewport{Width: 1280, Height: 720}, Digests: page.Digests{Hierarchy: "h", Text: "t", State: "s"},
		Frames: []page.Subframe{{ID: "f1", Name: "pay"}},
	}, q)
}

func by(s page.Selector) *engine.Target {
	return &engine.Target{Selector: &engine.Selector{Selector: s}}
}

func query(text string) *engine.Target { return by(page.Selector{Query: text}) }

// clickRequest resolves a target for a click.
func clickRequest(l *engine.Look, t *engine.Target) (*engine.Found, *engine.Miss) {
	return l.Resolve(engine.NewIdentity(), t, engine.ResolveOptions{Verb: engine.Click})
}

func mustClick(t *testing.T, l *engine.Look, target *engine.Target) *engine.Found {
	t.Helper()
	f, miss := clickRequest(l, target)
	if miss != nil {
		t.Fatalf("%+v: %s %s", target.Selector, miss.Code, miss.Detail)
	}
	return f
}

func missed(t *testing.T, l *engine.Look, target *engine.Target, code engine.Code, detail string) *engine.Miss {
	t.Helper()
	f, miss := clickRequest(l, target)
	if miss == nil {
		t.Fatalf("%+v: found %s (%s)", target.Selector, f.Node.Ref, f.Resolution.Reason)
	}
	if miss.Code != code || miss.Detail != detail {
		t.Fatalf("%+v: %s %s", target.Selector, miss.Code, miss.Detail)
	}
	return miss
}
