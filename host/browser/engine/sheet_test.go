package engine_test

import (
	"strconv"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

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
