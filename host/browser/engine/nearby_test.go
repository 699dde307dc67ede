package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func at(n page.Node, x, y, w, h float64) page.Node {
	n.Bounds = page.Box{X: x, Y: y, W: w, H: h}
	return n
}

// TestNearby: a text beside a control that has no other name means the control.
func TestNearby(t *testing.T) {
	text := at(page.Node{Ref: "t", Tag: "span", Text: "Volume", OwnText: true}, 0, 100, 80, 20)
	hears := func(ref string, x, y, w, h float64) page.Node {
		return at(page.Node{Ref: page.Ref(ref), Tag: "div", OwnHear: true}, x, y, w, h)
	}
	slider := func(ref string, x, y, w, h float64) page.Node {
		n := hears(ref, x, y, w, h)
		n.Role = "slider"
		return n
	}
	named := func(n page.Node, name string) page.Node { n.Name = name; return n }
	own := func(n page.Node) page.Node { n.OwnText, n.Text = true, "50 %"; return n }
	for _, c := range []struct {
		name   string
		others []page.Node
		want   page.Ref // "" for none
		reason string
	}{
		{"below", []page.Node{hears("c", 0, 130, 60, 20)}, "c", "nearby_actionable_control"},
		{"beside, as far as it may overlap", []page.Node{hears("c", 112, 95, 60, 20)}, "c", "nearby_actionable_control"},
		{"too far to the side", []page.Node{hears("c", 113, 130, 60, 20)}, "", ""},
		{"too far above", []page.Node{hears("c", 0, 87, 60, 20)}, "", ""},
		{"as far above as it may be", []page.Node{hears("c", 0, 88, 60, 20)}, "c", "nearby_actionable_control"},
		{"too far below", []page.Node{hears("c", 0, 761, 60, 20)}, "", ""},
		{"as far below as it may be", []page.Node{hears("c", 0, 760, 60, 20)}, "c", "nearby_actionable_control"},
		{"nearest", []page.Node{hears("far", 0, 200, 60, 20), hears("c", 0, 130, 60, 20)}, "c", "nearby_actionable_control"},
		{"track before nearest", []page.Node{hears("near", 0, 130, 60, 20), hears("c", 0, 140, 300, 10)}, "c", "slider_track_preferred"},
		{"slider by role", []page.Node{slider("c", 0, 130, 60, 20)}, "c", "slider_track_preferred"},
		{"own text is worse", []page.Node{own(hears("near", 0, 120, 60, 20)), hears("c", 0, 140, 60, 20)}, "c", "nearby_actionable_control"},
		{"somebody else's control", []page.Node{named(hears("c", 0, 130, 60, 20), "Delete account")}, "", ""},
		{"control with a longer name of the same", []page.Node{named(hears("c", 0, 130, 60, 20), "Volume in percent")}, "c", "nearby_actionable_control"},
		{"another frame", []page.Node{func() page.Node { n := hears("c", 0, 130, 60, 20); n.Frame = "f1"; return n }()}, "", ""},
		{"not seen", []page.Node{func() page.Node { n := hears("c", 0, 130, 60, 20); n.Type = "hidden"; return n }()}, "", ""},
	} {
		l := lay(page.Query{}, append([]page.Node{text}, c.others...)...)
		if c.want == "" {
			missed(t, l, query("volume"), engine.ActionRejected, "not_executable")
			continue
		}
		f := mustClick(t, l, query("volume"))
		if f.Node.Ref != c.want || f.Resolution.Reason != c.reason {
			t.Errorf("%s: %s %s", c.name, f.Node.Ref, f.Resolution.Reason)
		}
		if (f.Element.Hint != nil) != (c.reason == "slider_track_preferred") {
			t.Errorf("%s: hint %+v", c.name, f.Element.Hint)
		}
	}
}

// TestNearbyEnds: only the next 8 elements that act are looked at.
func TestNearbyEnds(t *testing.T) {
	for _, between := range []int{7, 8} {
		nodes := []page.Node{at(page.Node{Ref: "t", Tag: "span", Text: "Volume"}, 0, 0, 80, 20)}
		for range between {
			nodes = append(nodes, at(page.Node{Tag: "a", Native: true, Role: "link", Name: "Other"}, 0, 30, 10, 10))
		}
		nodes = append(nodes, at(page.Node{Ref: "c", Tag: "div", OwnHear: true}, 0, 60, 10, 10))
		_, miss := clickRequest(lay(page.Query{}, nodes...), query("volume"))
		if (miss == nil) != (between == 7) {
			t.Errorf("%d between: %v", between, miss)
		}
	}
}

// TestHint: the axis of a track is that of its longer side.
func TestHint(t *testing.T) {
	for _, c := range []struct {
		w, h float64
		axis string
	}{{300, 10, "horizontal"}, {10, 300, "vertical"}} {
		l := lay(page.Query{}, at(page.Node{Ref: "t", Tag: "span", Text: "Volume"}, 0, 0, 80, 20), at(page.Node{Ref: "c", Tag: "div", OwnHear: true, Role: "slider"}, 0, 30, c.w, c.h))
		f := mustClick(t, l, query("volume"))
		if h := f.Element.Hint; h == nil || h.Kind != "slider" || h.Axis != c.axis || h.Track != f.Node.Bounds {
			t.Errorf("%+v", h)
		}
	}
}
