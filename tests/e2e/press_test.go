package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
)

// TestPressed: what the page is told while a button is pressed waits for its release, so
// that the press is a click.
func TestPressed(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit"})
	b := signIn(t, h, true)
	b.open("/ui/runs")
	b.sees("No runs")
	mouse := func(kind input.DispatchMouseEventType) {
		t.Helper()
		p := input.DispatchMouseEventParams{Type: kind, X: 300, Y: 300, Button: input.MouseButtonLeft, ClickCount: 1}
		if err := call(b, input.DispatchMouseEvent, p); err != nil {
			t.Fatal(err)
		}
	}
	shows := `document.querySelector("#runs table") !== null`
	pressed := time.Now()
	mouse(input.DispatchMouseEventTypeMousePressed)
	ended(t, h.Client, "one")
	time.Sleep(1200 * time.Millisecond)                                                            // the stream has told by then
	if replaced := eval[bool](b, shows); replaced && time.Since(pressed) < 2800*time.Millisecond { // a longer press is taken for one without an end
		t.Error("the list was replaced under the press")
	}
	mouse(input.DispatchMouseEventTypeMouseReleased)
	b.until(shows)
	b.clean("a press")
}
