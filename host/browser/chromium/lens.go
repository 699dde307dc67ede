package chromium

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A lens is how a document's viewport is seen on a screen: the pixels of the screen
// for a CSS pixel, and the point of the viewport in the screen's corner. As on a phone
// the page has a say in that: one that names no width is laid out 980 CSS pixels wide
// and shown smaller.
type lens struct {
	Scale float64 `json:"scale"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
}

var errMoved = errors.New("the page moved on the screen")

// lens is how the tab is seen now. Other than on a phone it changes nothing.
func (t *Tab) lens(ctx context.Context) (lens, error) {
	t.mu.Lock()
	mobile := t.screen.viewport.Mobile
	t.mu.Unlock()
	l := lens{Scale: 1}
	if !mobile {
		return l, nil
	}
	w, err := t.mainWorld(ctx)
	if err == nil {
		err = w.call(ctx, &l, "lens")
	}
	if !(l.Scale > 0) {
		l.Scale = 1
	}
	return l, err
}

// point is where a point of the screen is in the viewport.
func (l lens) point(p page.Point) page.Point {
	return page.Point{X: p.X/l.Scale + l.X, Y: p.Y/l.Scale + l.Y}
}

// sent is a point of the viewport as the browser wants to have it with input: from the
// corner of the screen, in CSS pixels.
func (l lens) sent(p page.Point) page.Point { return page.Point{X: p.X - l.X, Y: p.Y - l.Y} }

// box is where a box of the viewport is on the screen.
func (l lens) box(b page.Box) page.Box {
	return page.Box{X: (b.X - l.X) * l.Scale, Y: (b.Y - l.Y) * l.Scale, W: b.W * l.Scale, H: b.H * l.Scale}
}
