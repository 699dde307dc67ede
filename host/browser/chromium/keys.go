package chromium

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	pressLimit = 200   // presses per call
	keysLimit  = 65536 // bytes of text typed as keys
)

// A chord is a page.Chord with the events to send, the press first.
type chord struct {
	page.Chord
	press []*input.DispatchKeyEventParams
}

// parseChord parses a chord. It returns page.ErrKey for one that is unknown or reserved for the
// browser.
func parseChord(text string) (chord, error) {
	c, err := page.ParseChord(text)
	if err != nil {
		return chord{}, page.ErrKey
	}
	if c.Key.Name != "" {
		return chord{c, events(c.Key, c.Held)}, nil
	}
	r := c.Char
	if c.Held != 0 && c.Held&page.Shift == 0 {
		r = unicode.ToLower(r) // Control+A is not Control+Shift+A
	}
	return chord{c, character(r, c.Held)}, nil
}

// events returns press and release of a named key.
func events(k page.Key, modifiers int64) []*input.DispatchKeyEventParams {
	down := input.DispatchKeyEventParams{Type: kb.KeyRawDown, Key: k.Name, Code: k.Code, WindowsVirtualKeyCode: k.Windows,
		NativeVirtualKeyCode: k.Windows, Modifiers: modifiers}
	up := down
	up.Type = kb.KeyUp
	if k.Text != "" && modifiers&^page.Shift == 0 {
		down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, k.Text, k.Text
	}
	return []*input.DispatchKeyEventParams{&down, &up}
}

// character returns press and release of a key that types a character.
func character(r rune, modifiers int64) []*input.DispatchKeyEventParams {
	k, ok := kb.Keys[r]
	if !ok || !k.Print {
		down := input.DispatchKeyEventParams{Type: kb.KeyDown, Key: string(r), Text: string(r), UnmodifiedText: string(r),
			Modifiers: modifiers}
		up := input.DispatchKeyEventParams{Type: kb.KeyUp, Key: string(r), Modifiers: modifiers}
		return []*input.DispatchKeyEventParams{&down, &up}
	}
	if k.Shift {
		modifiers |= 8
	}
	down := input.DispatchKeyEventParams{Type: kb.KeyDown, Key: k.Key, Code: k.Code, WindowsVirtualKeyCode: k.Windows,
		NativeVirtualKeyCode: k.Native, Modifiers: modifiers}
	up := down
	up.Type = kb.KeyUp
	if modifiers&^8 == 0 {
		down.Text, down.UnmodifiedText = k.Text, k.Unmodified
	} else {
		down.Type = kb.KeyRawDown
	}
	return []*input.DispatchKeyEventParams{&down, &up}
}

// key sends one key event to the document with the focus.
func (a *act) key(ctx context.Context, s *chromedp.Target, p *input.DispatchKeyEventParams) error {
	a.sent = true
	return command(ctx, s, input.DispatchKeyEvent, *p)
}

// press presses a chord once.
func (a *act) press(ctx context.Context, s *chromedp.Target, c chord) error {
	var held int64
	for _, m := range c.Modifiers {
		held |= m.Modifier
		if err := a.key(ctx, s, events(m, held)[0]); err != nil {
			return err
		}
	}
	var wrong error
	for _, p := range c.press {
		if wrong = a.key(ctx, s, p); wrong != nil {
			break
		}
	}
	for _, m := range slices.Backward(c.Modifiers) {
		held &^= m.Modifier
		if err := a.key(ctx, s, events(m, held)[1]); wrong == nil {
			wrong = err
		}
	}
	return wrong
}

// Press focuses the node, if one is given, and presses a chord count times.
func (ui *userInput) Press(ctx context.Context, node page.Ref, text string, count int) (page.Delivery, error) {
	c, err := parseChord(text)
	if err != nil {
		return page.Delivery{Trusted: -1}, err
	}
	return ui.typing(ctx, node, false, func(ctx context.Context, a *act, s *chromedp.Target) error {
		for range max(1, min(count, pressLimit)) {
			if err := a.press(ctx, s, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Keys focuses the node, if one is given, and types text key by key; clear empties it first.
func (ui *userInput) Keys(ctx context.Context, node page.Ref, text string, clear bool) (page.Delivery, error) {
	if len(text) > keysLimit {
		return page.Delivery{Trusted: -1}, page.ErrTooLarge
	}
	return ui.typing(ctx, node, clear, func(ctx context.Context, a *act, s *chromedp.Target) error {
		for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
			for _, p := range typed(r) {
				if err := a.key(ctx, s, p); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// typed returns press and release of the key that types a character.
func typed(r rune) []*input.DispatchKeyEventParams {
	name := map[rune]string{'\n': "Enter", '\r': "Enter", '\t': "Tab"}[r]
	if k, ok := page.KeyNamed(name); ok {
		return events(k, 0)
	}
	return character(r, 0)
}

// typing focuses a node, if one is given, and types into its document.
func (ui *userInput) typing(ctx context.Context, node page.Ref, clear bool,
	what func(context.Context, *act, *chromedp.Target) error) (page.Delivery, error) {
	var w *world
	var n int
	if node != "" {
		var err error
		if w, n, err = ui.tab.frames.worldOf(node); err != nil {
			return page.Delivery{Trusted: -1}, err
		}
	}
	return ui.do(ctx, w, func(ctx context.Context, a *act) error {
		s := ui.tab.session
		if w != nil {
			s = w.session
			if err := w.focus(ctx, a, n, clear, ""); err != nil {
				return err
			}
		}
		return what(ctx, a, s)
	})
}

// focus focuses a node. With all its content is selected; with an empty text it is deleted as well.
func (w *world) focus(ctx context.Context, a *act, n int, all bool, text string) error {
	a.sent = a.sent || all && text == ""
	return w.said(ctx, "focusNode", n, all, text)
}
