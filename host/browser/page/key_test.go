package page_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/page"
)

func TestParseChord(t *testing.T) {
	for text, want := range map[string]page.Chord{
		"Enter": {}, "Return": {}, "NumpadEnter": {}, "Esc": {}, "Spacebar": {}, "Del": {},
		"Shift+Tab": {Held: page.Shift}, "F9": {}, "+": {Char: '+'}, "Control++": {Held: page.Control, Char: '+'},
		"Control+A": {Held: page.Control, Char: 'A'}, "ä": {Char: 'ä'},
		"Control+Shift+ArrowLeft": {Held: page.Control | page.Shift}, "Ctrl+a": {Held: page.Control, Char: 'a'},
	} {
		c, err := page.ParseChord(text)
		if err != nil || (c.Held != want.Held || c.Char != want.Char || (c.Key.Code == "") != (want.Char != 0)) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

// What a chord is refused for, whichever way it is written.
func TestRefusedChords(t *testing.T) {
	const own, unknown, modifiers = "browser's own", "unknown key", "each once"
	for text, want := range map[string]string{
		"": "empty", "Control": unknown, "F10": unknown, "Shift+F10": unknown, "F11": unknown, "F12": unknown, "Wat": unknown,
		"\x00": unknown, "\u202e": unknown, "Control+\xff": unknown, "Control+Control+A": modifiers,
		"Hyper+A": modifiers, "a+b": modifiers, "F3": own, "F5": own, "Control+w": own, "control+W": own, "Ctrl+T": own,
		"Shift+Control+I": own, "Control+Shift+i": own, "Alt+F4": own, "Alt+ ": own, "Alt+Spacebar": own, "Shift+Esc": own,
		"Meta+Space": own, "Control+r": own, "Control+Shift+Del": own, "Alt+left": own, "Meta+Alt+x": own,
		"Control+Meta+Enter": own,
	} {
		if _, err := page.ParseChord(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if page.BrowsersOwn(page.Alt|page.Shift, "Meta") {
		t.Error("a modifier alone is refused")
	}
}
