package view

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// stepLimit bounds one thing that an owner does (B226).
const stepLimit = 2 * time.Second

// seen is what a viewer's points refer to: the picture that it was sent last.
type seen struct {
	scale    float64
	viewport page.Viewport
}

// at is a point of the picture in CSS pixels, inside of the viewport (B224).
func (s seen) at(p page.Point) page.Point {
	if s.scale > 0 {
		p.X, p.Y = p.X/s.scale, p.Y/s.scale
	}
	p.X = min(max(p.X, 0), float64(max(0, s.viewport.Width-1)))
	p.Y = min(max(p.Y, 0), float64(max(0, s.viewport.Height-1)))
	return p
}

// apply does what the viewer asks for, in order.
func (w *viewer) apply() {
	for {
		m, ok := w.inbox.take()
		if !ok {
			select {
			case <-w.ctx.Done():
				return
			case <-w.inbox.wake:
			}
			continue
		}
		if w.ctx.Err() != nil {
			return
		}
		w.applyOne(m)
	}
}

// applyOne does one thing, if the lease is still held: it cannot end before the
// thing is done.
func (w *viewer) applyOne(m message) {
	w.run.acting.Lock()
	defer w.run.acting.Unlock()
	w.run.mu.Lock()
	screen := w.run.screen
	held := w.run.lease.state == leaseHeld && w.run.lease.holder == w.session
	if held {
		w.run.lease.idle.Reset(LeaseIdle)
	}
	w.run.mu.Unlock()
	if !held || screen == nil {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, stepLimit)
	defer cancel()
	w.fail(ctx, w.do(ctx, screen, m))
}

// fail tells the owner why nothing came of it.
func (w *viewer) fail(ctx context.Context, err error) {
	switch {
	case err == nil, w.ctx.Err() != nil, errors.Is(err, page.ErrDialog), errors.Is(err, page.ErrLost):
		// A dialog and a loss are told in words of their own.
	case errors.Is(err, page.ErrHung), ctx.Err() != nil:
		w.refuse("page_busy")
	case errors.Is(err, page.ErrKey), errors.Is(err, page.ErrKind):
		w.refuse("invalid_input")
	case errors.Is(err, page.ErrGone), errors.Is(err, page.ErrNoDialog):
		w.refuse("gone")
	default:
		w.refuse("not_done")
	}
}

// do is B224, in its order.
func (w *viewer) do(ctx context.Context, screen page.Screen, m message) error {
	in := m.input
	switch m.kind {
	case "mouse", "touch":
		return w.hands.point(ctx, w, screen, in)
	case "scroll":
		in.At = w.seen().at(in.At)
		return screen.Input(ctx, in)
	case "keyboard":
		if !typed(in) {
			return nil
		}
		return screen.Input(ctx, in)
	case "text", "paste", "composition":
		return screen.Input(ctx, in)
	case "viewport":
		if screen.Viewport() != m.view { // a connection that came back says it again
			w.run.resize(screen, m.view)
		}
		return nil
	case "select_choice", "picker":
		return w.hands.choose(ctx, screen, m)
	case "dialog":
		return screen.Answer(ctx, m.accept, m.text)
	case "file_choose":
		return w.hands.give(ctx, w, screen, m)
	case "nav":
		return screen.Navigate(ctx, m.do)
	case "copy":
		return w.copied(ctx, screen)
	case "elements":
		return w.hands.list(ctx, w, screen)
	case "element":
		return w.hands.element(ctx, w, screen, m)
	}
	return nil
}

func (w *viewer) seen() seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks
}

// copied gives the owner what is selected (B231).
func (w *viewer) copied(ctx context.Context, screen page.Screen) error {
	s, err := screen.Selection(ctx)
	if err != nil {
		return err
	}
	if len(s) > maxText {
		s = s[:maxText]
	}
	w.send(outgoing{"type": "copy", "text": toValid(s)})
	return nil
}
