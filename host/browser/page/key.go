package page

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Modifiers of a key or a click, as bits of the browser's protocol.
const (
	Alt = 1 << iota
	Control
	Meta
	Shift
)

// Modifiers are the names of the modifier keys.
var Modifiers = []string{"Alt", "Control", "Meta", "Shift"}

// A Key is a key that has a name. Every other key is identified by the character that it types.
type Key struct {
	Name     string // the key value that a page sees
	Code     string // the physical key; chords name it by this
	Windows  int64  // its virtual key code
	Text     string // the text that it types
	Modifier int64  // its modifier bit; 0 for other keys
	Moves    bool   // moves the focus or the caret and changes nothing
	Owner    bool   // may be sent from the owner's view
}

// keys lists every named key that guests, the engine and the owner's view may press. The remaining
// keys belong to the browser: F10 opens its menu, F11 changes its window, F12 opens its tools.
var keys = []Key{
	{Name: "Enter", Code: "Enter", Windows: 13, Text: "\r", Owner: true},
	{Name: "Tab", Code: "Tab", Windows: 9, Moves: true, Owner: true},
	{Name: "Escape", Code: "Escape", Windows: 27, Moves: true, Owner: true},
	{Name: "Backspace", Code: "Backspace", Windows: 8, Owner: true},
	{Name: "Delete", Code: "Delete", Windows: 46, Owner: true},
	{Name: "ArrowLeft", Code: "ArrowLeft", Windows: 37, Moves: true, Owner: true},
	{Name: "ArrowUp", Code: "ArrowUp", Windows: 38, Moves: true, Owner: true},
	{Name: "ArrowRight", Code: "ArrowRight", Windows: 39, Moves: true, Owner: true},
	{Name: "ArrowDown", Code: "ArrowDown", Windows: 40, Moves: true, Owner: true},
	{Name: "Home", Code: "Home", Windows: 36, Moves: true, Owner: true},
	{Name: "End", Code: "End", Windows: 35, Moves: true, Owner: true},
	{Name: "PageUp", Code: "PageUp", Windows: 33, Moves: true, Owner: true},
	{Name: "PageDown", Code: "PageDown", Windows: 34, Moves: true, Owner: true},
	{Name: "Alt", Code: "AltLeft", Windows: 18, Modifier: Alt, Owner: true},
	{Name: "Control", Code: "ControlLeft", Windows: 17, Modifier: Control, Owner: true},
	{Name: "Meta", Code: "MetaLeft", Windows: 91, Modifier: Meta, Owner: true},
	{Name: "Shift", Code: "ShiftLeft", Windows: 16, Modifier: Shift, Owner: true},
	{Name: " ", Code: "Space", Windows: 32, Text: " "},
	{Name: "Insert", Code: "Insert", Windows: 45},
	{Name: "ContextMenu", Code: "ContextMenu", Windows: 93},
	{Name: "F1", Code: "F1", Windows: 112}, {Name: "F2", Code: "F2", Windows: 113}, {Name: "F3", Code: "F3", Windows: 114},
	{Name: "F4", Code: "F4", Windows: 115}, {Name: "F5", Code: "F5", Windows: 116}, {Name: "F6", Code: "F6", Windows: 117},
	{Name: "F7", Code: "F7", Windows: 118}, {Name: "F8", Code: "F8", Windows: 119}, {Name: "F9", Code: "F9", Windows: 120},
}

// byName maps lower-case names, codes and common aliases to keys.
var byName = func() map[string]Key {
	all := map[string]Key{}
	for _, k := range keys {
		all[strings.ToLower(k.Name)], all[strings.ToLower(k.Code)] = k, k
	}
	for other, name := range map[string]string{
		"return": "enter", "numpadenter": "enter", "esc": "escape", "del": "delete", "spacebar": "space", "ctrl": "control",
		"left": "arrowleft", "up": "arrowup", "right": "arrowright", "down": "arrowdown",
	} {
		all[other] = all[name]
	}
	return all
}()

// KeyNamed returns the key with that name or code, ignoring case.
func KeyNamed(name string) (Key, bool) {
	k, ok := byName[strings.ToLower(name)]
	return k, ok
}

// browsersOwn lists the chords that control developer tools, windows, tabs and the browser itself,
// by the modifiers held.
var browsersOwn = map[int64][]string{
	0: {"f3", "f5", "f6"},
	Control: {"d", "e", "h", "j", "k", "l", "n", "o", "p", "q", "r", "s", "t", "u", "w", "tab", "f4", "f5",
		"pageup", "pagedown"},
	Control | Shift: {"b", "c", "e", "i", "j", "k", "m", "n", "o", "p", "q", "r", "t", "w", "delete", "tab",
		"pageup", "pagedown"},
	Meta:         {"h", "m", "n", "o", "q", "t", "w", "tab", "space"},
	Meta | Shift: {"c", "n", "q", "t", "w"},
	Alt:          {"d", "e", "f", "arrowleft", "arrowright", "escape", "f4", "home", "space", "tab"},
	Alt | Shift:  {"tab"},
	Shift:        {"escape"},
}

// BrowsersOwn reports whether a chord is handled by the browser and not by the page. Meta with Alt
// or Control always is; a modifier alone never is.
func BrowsersOwn(held int64, name string) bool {
	k, named := KeyNamed(name)
	if k.Modifier != 0 {
		return false
	}
	if named {
		name = k.Code
	}
	return held&Meta != 0 && held&^(Meta|Shift) != 0 || slices.Contains(browsersOwn[held], strings.ToLower(name))
}

// A Chord is a set of keys pressed together.
type Chord struct {
	Modifiers []Key // in the order of pressing
	Held      int64 // the bits of all modifiers
	Key       Key   // the zero Key for a character
	Char      rune
}

// Plain reports whether no modifiers are held except those in but.
func (c Chord) Plain(but int64) bool { return c.Held&^but == 0 }

// ParseChord parses a chord such as Control+A. Its errors do not quote the chord.
func ParseChord(text string) (Chord, error) {
	var c Chord
	parts := splitChord(text)
	if len(parts) == 0 {
		return c, errors.New("an empty chord")
	}
	name := parts[len(parts)-1]
	for _, p := range parts[:len(parts)-1] {
		m, ok := KeyNamed(p)
		if !ok || m.Modifier == 0 || c.Held&m.Modifier != 0 {
			return c, errors.New("modifiers are Alt, Control, Meta and Shift, each once")
		}
		c.Modifiers, c.Held = append(c.Modifiers, m), c.Held|m.Modifier
	}
	k, named := KeyNamed(name)
	r, size := utf8.DecodeRuneInString(name)
	switch {
	case k.Modifier != 0, !named && (size != len(name) || r == utf8.RuneError || !unicode.IsPrint(r)):
		return c, errors.New("unknown key")
	case BrowsersOwn(c.Held, name):
		return c, errors.New("this chord is the browser's own: a page does not get it")
	case named:
		c.Key = k
	default:
		c.Char = r
	}
	return c, nil
}

// splitChord splits a chord at its plus signs; the last key may be the plus itself.
func splitChord(text string) []string {
	if text == "" {
		return nil
	}
	if text == "+" {
		return []string{"+"}
	}
	if body, plus := strings.CutSuffix(text, "++"); plus {
		return append(strings.Split(body, "+"), "+")
	}
	return strings.Split(text, "+")
}
