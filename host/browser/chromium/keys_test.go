package chromium

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
)

// What a page calls a file is a name and nothing else.
func TestFileName(t *testing.T) {
	for said, want := range map[string]string{
		"a.csv": "a.csv", "../../a.csv": "a.csv", `C:\x\a.csv`: "a.csv", "": "download", "..": "download", "/": "download",
		"a\x00\nb": "ab", "\xff.txt": "\uFFFD.txt", strings.Repeat("ä", 200): strings.Repeat("ä", 127),
	} {
		if got := fileName(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
	for said, want := range map[string]bool{"": false, "../x": false, "a/b": false, "0f8a-11": true} {
		if safeGUID(said) != want {
			t.Errorf("%q is not %v", said, want)
		}
	}
}

// A chord presses its modifiers first and lets go of them last.
func TestChord(t *testing.T) {
	c, err := parseChord("Control+Shift+ArrowLeft")
	if err != nil || len(c.Modifiers) != 2 || c.Held != 2|8 || len(c.press) != 2 || c.press[0].Key != "ArrowLeft" ||
		c.press[0].Modifiers != 2|8 || c.press[1].Type != input.DispatchKeyEventTypeKeyUp {
		t.Errorf("%+v, %v", c, err)
	}
	for chord, key := range map[string]string{"+": "+", "Control++": "+", "a": "a", "A": "A", "Control+A": "a", "ä": "ä",
		"Space": " ", "esc": "Escape"} {
		if c, err := parseChord(chord); err != nil || c.press[0].Key != key {
			t.Errorf("%s presses %+v, %v", chord, c.press, err)
		}
	}
}

func TestCutText(t *testing.T) {
	for n, want := range []string{"", "a", "a", "aä", "aä", "aä", "aä", "aä😀"} {
		if got := cutText("aä😀", n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
