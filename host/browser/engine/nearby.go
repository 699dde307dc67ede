package engine

import (
	"math"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/host/browser/page"
)

// The geometry of B124, in CSS pixels.
const (
	nearbyMost   = 8 // actionable elements that are looked at
	gapLeast     = -32
	gapMost      = 640
	overlapLeast = -32
)

// nearby is the control that a passive text stands beside (B124); nil for none. A
// control that has another name is somebody else's.
func (l *Look) nearby(label *page.Node) (*page.Node, string) {
	var best *page.Node
	cost, seen := math.Inf(1), 0
	for i := l.at[label.Ref] + 1; i < len(l.Nodes) && seen < nearbyMost; i++ {
		n := &l.Nodes[i]
		if n.Frame != label.Frame || !n.Visible || !Executable(n) || l.inside(label, n) || l.control(n) != nil {
			continue
		}
		seen++
		if !adjoins(label.Bounds, n.Bounds) || !unclaimed(n, label) {
			continue
		}
		if c := l.cost(label, n); c < cost {
			best, cost = n, c
		}
	}
	switch {
	case best == nil:
		return nil, ""
	case l.track(best, label):
		return best, "slider_track_preferred"
	}
	return best, "nearby_actionable_control"
}

func adjoins(label, b page.Box) bool {
	gap := b.Y - (label.Y + label.H)
	overlap := min(label.X+label.W, b.X+b.W) - max(label.X, b.X)
	return gap >= gapLeast && gap <= gapMost && overlap >= overlapLeast
}

// unclaimed reports whether a control has no name, or one that speaks of the label.
func unclaimed(n, label *page.Node) bool {
	name, text := fold(n.Name), fold(label.Text)
	return name == "" || text != "" && (strings.Contains(name, text) || strings.Contains(text, name))
}

// cost ranks the controls beside a label; the lowest wins.
func (l *Look) cost(label, n *page.Node) float64 {
	c := math.Abs(n.Bounds.Y - (label.Bounds.Y + label.Bounds.H))
	if l.track(n, label) {
		c -= 30
	}
	if n.OwnText {
		c += 20
	} else {
		c -= 18
	}
	if slices.Contains([]string{"", "generic", "group", "presentation", "none"}, n.Role) {
		c -= 10
	}
	if n.Bounds.W > 1.5*label.Bounds.W {
		c -= 8
	}
	return c
}

// track reports whether n looks like the track of a slider.
func (l *Look) track(n, label *page.Node) bool {
	if n.Role == "slider" || n.Tag == "input" && n.Type == "range" {
		return true
	}
	if n.Native || n.Editable || n.OwnText {
		return false // a long button or field is no track
	}
	w, h := n.Bounds.W, n.Bounds.H
	view, of := float64(l.Viewport.Width), label.Bounds.W
	if h > w {
		view, of = float64(l.Viewport.Height), label.Bounds.H
	}
	return max(w, h) >= max(220, 0.18*view, 1.5*of) && min(w, h) <= max(180, 0.08*view)
}

func hintOf(n *page.Node) *Hint {
	axis := "horizontal"
	if n.Bounds.H > n.Bounds.W {
		axis = "vertical"
	}
	return &Hint{Kind: "slider", Axis: axis, Track: n.Bounds}
}
