package chromium

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/input"

	"github.com/sluicehost/sluice/host/browser/page"
)

// userInput operates a tab as a person does, with pointer and keys, and sets the content of
// controls where that is not possible.
type userInput struct{ tab *Tab }

func bits(modifiers []string) int64 {
	var b int64
	for _, m := range modifiers {
		k, _ := page.KeyNamed(m)
		b |= k.Modifier
	}
	return b
}

var buttons = map[string]struct {
	name input.MouseButton
	bit  int64
}{
	"left": {input.MouseButtonLeft, 1}, "right": {input.MouseButtonRight, 2}, "middle": {input.MouseButtonMiddle, 4},
}

// An act is one input in progress. It knows whether anything reached the browser, and the document
// whose events are counted.
type act struct {
	tab  *Tab
	seen *world // nil: no events are counted
	sent bool
}

// send sends one event without waiting. Later events arrive after it.
func (a *act) send(ctx context.Context, p input.DispatchMouseEventParams) error {
	a.sent = true
	return a.tab.browser.wire.tell(ctx, a.tab.session.SessionID, input.DispatchMouseEvent.Method, p)
}

// mouse sends one event and waits until the page has handled it.
func (a *act) mouse(ctx context.Context, p input.DispatchMouseEventParams) error {
	a.sent = true
	return command(ctx, a.tab.session, input.DispatchMouseEvent, p)
}

// point carries out a pointer action and returns its delivery.
func (ui *userInput) point(ctx context.Context, what func(context.Context, *act) error) (page.Delivery, error) {
	return ui.do(ctx, ui.tab.aiming.watched(), func(ctx context.Context, a *act) error {
		return ui.tab.steady(ctx, func(ctx context.Context) error { return what(ctx, a) })
	})
}

// do carries out an action as one call of the tab and returns its delivery, also if a dialog or the
// end of the page withheld the answer.
func (ui *userInput) do(ctx context.Context, seen *world,
	what func(context.Context, *act) error) (page.Delivery, error) {
	a := &act{tab: ui.tab, seen: seen}
	err := ui.tab.call(ctx, func(ctx context.Context) error { return what(ctx, a) })
	d := page.Delivery{Sent: a.sent, Trusted: -1}
	if err == nil && a.sent {
		d.Trusted, d.Turned = ui.tab.counted(ctx, a.seen)
	}
	return d, err
}

// Click moves the pointer to a point, without waiting for the resulting frame, presses and
// releases.
func (ui *userInput) Click(ctx context.Context, c page.Click) (page.Delivery, error) {
	b, ok := buttons[c.Button]
	if !ok {
		b = buttons["left"]
	}
	m := bits(c.Modifiers)
	return ui.point(ctx, func(ctx context.Context, a *act) error {
		if c.Aimed && a.seen != nil {
			if err := a.seen.aim(ctx); err != nil {
				return err
			}
		}
		if err := a.send(ctx, moveTo(c.At, m)); err != nil {
			return err
		}
		for i := range max(1, min(c.Count, 3)) {
			p := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMousePressed, X: c.At.X, Y: c.At.Y,
				Modifiers: m, Button: b.name, Buttons: b.bit, ClickCount: int64(i + 1)}
			if err := a.send(ctx, p); err != nil {
				return err
			}
			held := pause(ctx, c.Hold)
			p.Type, p.Buttons = input.DispatchMouseEventTypeMouseReleased, 0
			if held != nil { // release what was pressed in any case
				return errors.Join(held, a.send(context.WithoutCancel(ctx), p))
			}
			if err := a.mouse(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// Hover moves the pointer to a point and waits until the page has handled it.
func (ui *userInput) Hover(ctx context.Context, at page.Point) (page.Delivery, error) {
	return ui.point(ctx, func(ctx context.Context, a *act) error { return a.mouse(ctx, moveTo(at, 0)) })
}

// Drag presses at the first point, moves along the others and releases at the last.
func (ui *userInput) Drag(ctx context.Context, path []page.Point) (page.Delivery, error) {
	if len(path) == 0 {
		return page.Delivery{Trusted: -1}, nil
	}
	return ui.point(ctx, func(ctx context.Context, a *act) error {
		if err := a.mouse(ctx, moveTo(path[0], 0)); err != nil {
			return err
		}
		p := moveTo(path[0], 0)
		p.Type, p.Button, p.Buttons, p.ClickCount = input.DispatchMouseEventTypeMousePressed, input.MouseButtonLeft, 1, 1
		if err := a.mouse(ctx, p); err != nil {
			return err
		}
		for _, at := range path[1:] {
			next := p
			next.X, next.Y, next.Type, next.ClickCount = at.X, at.Y, input.DispatchMouseEventTypeMouseMoved, 0
			if err := a.mouse(ctx, next); err != nil { // release what was pressed in any case
				p.Type, p.Buttons, p.ClickCount = input.DispatchMouseEventTypeMouseReleased, 0, 1
				return errors.Join(err, a.send(context.WithoutCancel(ctx), p))
			}
			p = next
		}
		p.Type, p.Buttons, p.ClickCount = input.DispatchMouseEventTypeMouseReleased, 0, 1
		return a.mouse(ctx, p)
	})
}

func moveTo(at page.Point, modifiers int64) input.DispatchMouseEventParams {
	return input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at.X, Y: at.Y,
		Modifiers: modifiers, Button: input.MouseButtonNone}
}

// A screenScale says how a viewport is shown on the screen: screen pixels per CSS pixel, and the
// point of the viewport in the corner of the screen. In mobile mode the page influences this: one
// that declares no width is laid out 980 CSS pixels wide and shown smaller.
type screenScale struct {
	Scale float64 `json:"scale"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
}

var errMoved = errors.New("the page moved on the screen")

// screenScale returns the tab's current scale. Without mobile mode it is the identity.
func (a *aiming) screenScale(ctx context.Context) (screenScale, error) {
	a.tab.mu.Lock()
	mobile := a.tab.display.viewport.Mobile
	a.tab.mu.Unlock()
	l := screenScale{Scale: 1}
	if !mobile {
		return l, nil
	}
	w, err := a.tab.frames.mainWorld(ctx)
	if err == nil {
		err = w.call(ctx, &l, "lens")
	}
	if !(l.Scale > 0) {
		l.Scale = 1
	}
	return l, err
}

// point converts a point of the screen to the viewport.
func (l screenScale) point(p page.Point) page.Point {
	return page.Point{X: p.X/l.Scale + l.X, Y: p.Y/l.Scale + l.Y}
}

// sent converts a point of the viewport to what the browser expects for input: CSS pixels from the
// corner of the screen.
func (l screenScale) sent(p page.Point) page.Point { return page.Point{X: p.X - l.X, Y: p.Y - l.Y} }

// box converts a box of the viewport to the screen.
func (l screenScale) box(b page.Box) page.Box {
	return page.Box{X: (b.X - l.X) * l.Scale, Y: (b.Y - l.Y) * l.Scale, W: b.W * l.Scale, H: b.H * l.Scale}
}
