package chromium

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	pressLimit = 200   // presses of one call
	keysLimit  = 65536 // bytes of text that is sent as keys
)

// A key is one that has a name and no character.
type key struct {
	name, code string
	windows    int64
	text       string // what it types
}

var namedKeys = map[string]key{
	"enter": {"Enter", "Enter", 13, "\r"}, "tab": {"Tab", "Tab", 9, ""}, "escape": {"Escape", "Escape", 27, ""}, "backspace": {"Backspace", "Backspace", 8, ""},
	"delete": {"Delete", "Delete", 46, ""}, "insert": {"Insert", "Insert", 45, ""}, "space": {" ", "Space", 32, " "},
	"arrowleft": {"ArrowLeft", "ArrowLeft", 37, ""}, "arrowup": {"ArrowUp", "ArrowUp", 38, ""}, "arrowright": {"ArrowRight", "ArrowRight", 39, ""}, "arrowdown": {"ArrowDown", "ArrowDown", 40, ""},
	"home": {"Home", "Home", 36, ""}, "end": {"End", "End", 35, ""}, "pageup": {"PageUp", "PageUp", 33, ""}, "pagedown": {"PageDown", "PageDown", 34, ""},
	"f1": {"F1", "F1", 112, ""}, "f2": {"F2", "F2", 113, ""}, "f3": {"F3", "F3", 114, ""}, "f4": {"F4", "F4", 115, ""}, "f5": {"F5", "F5", 116, ""}, "f6": {"F6", "F6", 117, ""},
	"f7": {"F7", "F7", 118, ""}, "f8": {"F8", "F8", 119, ""}, "f9": {"F9", "F9", 120, ""}, "f10": {"F10", "F10", 121, ""},
	"contextmenu": {"ContextMenu", "ContextMenu", 93, ""}, "esc": {"Escape", "Escape", 27, ""}, "del": {"Delete", "Delete", 46, ""},
	"left": {"ArrowLeft", "ArrowLeft", 37, ""}, "up": {"ArrowUp", "ArrowUp", 38, ""}, "right": {"ArrowRight", "ArrowRight", 39, ""}, "down": {"ArrowDown", "ArrowDown", 40, ""},
}

var modifierKeys = map[string]struct {
	key
	bit int64
}{
	"alt": {key{"Alt", "AltLeft", 18, ""}, 1}, "control": {key{"Control", "ControlLeft", 17, ""}, 2}, "ctrl": {key{"Control", "ControlLeft", 17, ""}, 2},
	"meta": {key{"Meta", "MetaLeft", 91, ""}, 4}, "shift": {key{"Shift", "ShiftLeft", 16, ""}, 8},
}

// refusedKeys are the chords that are for the browser and not for a page: those of
// its developer tools, its windows and tabs. They are written with the
// modifiers in the order Alt, Control, Meta, Shift.
var refusedKeys = map[string]bool{
	"control+shift+i": true, "control+shift+j": true, "control+shift+c": true, "control+shift+k": true, "control+u": true, "control+shift+m": true,
	"control+w": true, "control+shift+w": true, "control+n": true, "control+shift+n": true, "control+t": true, "control+shift+t": true, "control+q": true, "control+shift+q": true,
	"control+tab": true, "control+shift+tab": true, "control+pageup": true, "control+pagedown": true, "alt+f4": true, "control+f4": true, "control+l": true, "control+k": true,
	"control+o": true, "control+s": true, "control+p": true, "control+shift+p": true, "control+h": true, "control+j": true, "control+d": true, "control+shift+delete": true, "control+shift+o": true,
	"control+r": true, "control+shift+r": true, "control+f5": true, "f5": true, "f3": true, "f6": true, "control+e": true, "f10": true,
	"alt+d": true, "alt+e": true, "alt+f": true, "alt+home": true, "alt+arrowleft": true, "alt+arrowright": true, "alt+space": true, "alt+tab": true, "control+shift+b": true,
}

// A chord is what is pressed together: modifiers and one key.
type chord struct {
	modifiers []key
	bits      int64
	press     []*input.DispatchKeyEventParams // down and what follows
}

// parseChord reads a chord such as Control+A; page.ErrKey for one that is unknown,
// or that pages do not get.
func parseChord(s string) (chord, error) {
	var c chord
	parts := strings.Split(s, "+")
	if strings.HasSuffix(s, "++") || s == "+" { // the key + itself
		parts = append(parts[:len(parts)-2], "+")
	}
	for _, p := range parts[:len(parts)-1] {
		m, ok := modifierKeys[strings.ToLower(p)]
		if !ok || c.bits&m.bit != 0 {
			return chord{}, page.ErrKey
		}
		c.modifiers, c.bits = append(c.modifiers, m.key), c.bits|m.bit
	}
	name := parts[len(parts)-1]
	if refusedKeys[canonical(c.bits, name)] || c.bits&4 != 0 && c.bits != 4|8 && c.bits != 4 {
		return chord{}, page.ErrKey
	}
	if m, ok := modifierKeys[strings.ToLower(name)]; ok && len(parts) == 1 {
		c.press = m.key.events(0)
		return c, nil
	}
	if k, ok := namedKeys[strings.ToLower(name)]; ok && utf8.RuneCountInString(name) > 1 {
		if strings.EqualFold(name, "f10") || strings.EqualFold(name, "f11") || strings.EqualFold(name, "f12") {
			return chord{}, page.ErrKey
		}
		c.press = k.events(c.bits)
		return c, nil
	}
	r, size := utf8.DecodeRuneInString(name)
	if r == utf8.RuneError || size != len(name) || r < 0x20 || r == 0x7f {
		return chord{}, page.ErrKey
	}
	if c.bits&^8 != 0 && c.bits&8 == 0 {
		r = unicode.ToLower(r) // Control+A is no Control+Shift+A
	}
	c.press = character(r, c.bits)
	return c, nil
}

// canonical is a chord as refusedKeys has it.
func canonical(bits int64, name string) string {
	name = strings.ToLower(name)
	if k, ok := namedKeys[name]; ok && len(name) > 1 {
		name = strings.ToLower(k.name)
	}
	for _, m := range []struct {
		bit  int64
		name string
	}{{8, "shift+"}, {4, "meta+"}, {2, "control+"}, {1, "alt+"}} {
		if bits&m.bit != 0 {
			name = m.name + name
		}
	}
	return name
}

// events are the press and the release of a key that has a name.
func (k key) events(modifiers int64) []*input.DispatchKeyEventParams {
	down := input.DispatchKeyEventParams{Type: kb.KeyRawDown, Key: k.name, Code: k.code, WindowsVirtualKeyCode: k.windows, NativeVirtualKeyCode: k.windows, Modifiers: modifiers}
	up := down
	up.Type = kb.KeyUp
	if k.text != "" && modifiers&^8 == 0 {
		down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, k.text, k.text
	}
	return []*input.DispatchKeyEventParams{&down, &up}
}

// character are the press and the release of a key that types a character.
func character(r rune, modifiers int64) []*input.DispatchKeyEventParams {
	k, ok := kb.Keys[r]
	if !ok || !k.Print {
		down := input.DispatchKeyEventParams{Type: kb.KeyDown, Key: string(r), Text: string(r), UnmodifiedText: string(r), Modifiers: modifiers}
		up := input.DispatchKeyEventParams{Type: kb.KeyUp, Key: string(r), Modifiers: modifiers}
		return []*input.DispatchKeyEventParams{&down, &up}
	}
	if k.Shift {
		modifiers |= 8
	}
	down := input.DispatchKeyEventParams{Type: kb.KeyDown, Key: k.Key, Code: k.Code, WindowsVirtualKeyCode: k.Windows, NativeVirtualKeyCode: k.Native, Modifiers: modifiers}
	up := down
	up.Type = kb.KeyUp
	if modifiers&^8 == 0 {
		down.Text, down.UnmodifiedText = k.Text, k.Unmodified
	} else {
		down.Type = kb.KeyRawDown
	}
	return []*input.DispatchKeyEventParams{&down, &up}
}

// key sends one event of a key to the document that has the focus.
func (a *act) key(ctx context.Context, s *chromedp.Target, p *input.DispatchKeyEventParams) error {
	a.sent = true
	return command(ctx, s, input.DispatchKeyEvent, *p)
}

// press presses a chord once.
func (a *act) press(ctx context.Context, s *chromedp.Target, c chord) error {
	var held int64
	for _, m := range c.modifiers {
		held |= modifierKeys[strings.ToLower(m.name)].bit
		if err := a.key(ctx, s, m.events(held)[0]); err != nil {
			return err
		}
	}
	var wrong error
	for _, p := range c.press {
		if wrong = a.key(ctx, s, p); wrong != nil {
			break
		}
	}
	for i := len(c.modifiers) - 1; i >= 0; i-- {
		held &^= modifierKeys[strings.ToLower(c.modifiers[i].name)].bit
		if err := a.key(ctx, s, c.modifiers[i].events(held)[1]); wrong == nil {
			wrong = err
		}
	}
	return wrong
}

// Press focuses the node, if there is one, and presses a chord count times.
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

// Keys focuses the node, if there is one, and sends text as keys, one after the
// other; clear empties it first.
func (ui *userInput) Keys(ctx context.Context, node page.Ref, text string, clear bool) (page.Delivery, error) {
	if len(text) > keysLimit {
		return page.Delivery{Trusted: -1}, page.ErrTooLarge
	}
	return ui.typing(ctx, node, clear, func(ctx context.Context, a *act, s *chromedp.Target) error {
		for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
			events := character(r, 0)
			switch r {
			case '\n', '\r':
				events = namedKeys["enter"].events(0)
			case '\t':
				events = namedKeys["tab"].events(0)
			}
			for _, p := range events {
				if err := a.key(ctx, s, p); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// typing focuses a node, if there is one, and types into the document that it is in.
func (ui *userInput) typing(ctx context.Context, node page.Ref, clear bool, what func(context.Context, *act, *chromedp.Target) error) (page.Delivery, error) {
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

// focus gives a node the focus. all wants what is in it selected; with an empty text
// it is deleted as well, if there is any.
func (w *world) focus(ctx context.Context, a *act, n int, all bool, text string) error {
	a.sent = a.sent || all && text == ""
	return w.said(ctx, "focusNode", n, all, text)
}
