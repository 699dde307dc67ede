package view

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/patience"
)

// maxWaiting bounds the messages that wait for a slow page.
const maxWaiting = 256

// An inbox queues a viewer's messages until they are applied. A move replaces a preceding move.
type inbox struct {
	wake chan struct{}

	mu   sync.Mutex // guards list
	list []message
}

func (b *inbox) init() { b.wake = make(chan struct{}, 1) }

// put adds a message. When the inbox is full, moves are dropped first. It reports false if there is
// no room.
func (b *inbox) put(m message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.list); n > 0 && m.move && b.list[n-1].move && same(b.list[n-1], m) {
		b.list[n-1] = m
		return true
	}
	if len(b.list) >= maxWaiting {
		b.list = slices.DeleteFunc(b.list, func(o message) bool { return o.move })
	}
	if len(b.list) >= maxWaiting {
		return false
	}
	b.list = append(b.list, m)
	signal(b.wake)
	return true
}

// same reports whether two moves are of the same pointer.
func same(a, b message) bool { return a.kind == b.kind && a.input.TouchID == b.input.TouchID }

func (b *inbox) take() (message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		b.list = nil
		return message{}, false
	}
	m := b.list[0]
	b.list = b.list[1:]
	return m, true
}

// stepLimit bounds one action of the owner on an idle machine.
const stepLimit = 2 * time.Second

// seen is the picture that a viewer's points refer to: the one it was sent last.
type seen struct {
	scale    float64
	viewport page.Viewport
}

// at converts a point of the picture to CSS pixels within the viewport.
func (s seen) at(p page.Point) page.Point {
	if s.scale > 0 {
		p.X, p.Y = p.X/s.scale, p.Y/s.scale
	}
	p.X = min(max(p.X, 0), float64(max(0, s.viewport.Width-1)))
	p.Y = min(max(p.Y, 0), float64(max(0, s.viewport.Height-1)))
	return p
}

// apply carries out the viewer's messages in order.
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

// applyOne carries out one message if the lease is still held. The lease cannot end meanwhile.
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
	ctx, cancel := patience.Within(w.ctx, stepLimit)
	defer cancel()
	w.fail(ctx, w.do(ctx, screen, m))
}

// fail tells the owner why a message had no effect.
func (w *viewer) fail(ctx context.Context, err error) {
	switch {
	case err == nil, w.ctx.Err() != nil, errors.Is(err, page.ErrDialog), errors.Is(err, page.ErrLost):
		// Dialogs and losses have messages of their own.
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

// do carries out one message.
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
		if screen.Viewport() != m.view { // a reconnected viewer repeats it
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

// copied sends the owner the selected text.
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

// chords are the letters that the page receives with Control or Meta, without those that open tools
// or windows of the browser or use its clipboard.
const chords = "abiyz"

// typed reports whether a key is passed to the page.
func typed(in page.Input) bool {
	if k, ok := page.KeyNamed(in.Key); ok && in.Key != " " {
		return k.Owner && !page.BrowsersOwn(int64(in.Modifiers), in.Key)
	}
	r, n := utf8.DecodeRuneInString(in.Key)
	if n != len(in.Key) || !unicode.IsPrint(r) {
		return false
	}
	// AltGr types a character
	if in.Modifiers&(page.Control|page.Meta) == 0 || in.Modifiers&(page.Control|page.Alt) == page.Control|page.Alt {
		return true
	}
	letter := unicode.ToLower(r)
	if in.Modifiers&page.Alt != 0 || in.Modifiers&page.Shift != 0 && letter != 'z' {
		return false
	}
	return letter < unicode.MaxASCII && strings.ContainsRune(chords, letter)
}
