//go:build unix

package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// pressing presses a button at the moment when the page learns of a run, before its own
// listeners do, and releases it many turns of the event loop later, so no clock
// decides.
const pressing = `window.EventSource = class extends EventSource {
	constructor(...a) {
		super(...a);
		this.addEventListener("runs", async (e) => {
			if (window.early !== undefined || !e.data.includes("<table")) return;
			dispatchEvent(new PointerEvent("pointerdown", { button: 0 }));
			for (let n = 0; n < 500; n++) await new Promise((next) => { const c = new MessageChannel(); c.port1.onmessage = next; c.port2.postMessage(0) });
			window.early = document.querySelector("#runs table") !== null;
			dispatchEvent(new PointerEvent("pointerup"));
		});
	}
}`

// TestPressed: updates that arrive while a button is pressed wait for its release, so
// that the press is a click.
func TestPressed(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit"})
	b := signIn(t, h, true)
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: pressing}); err != nil {
		t.Fatal(err)
	}
	b.open("/ui/runs")
	b.sees("No runs")
	ended(t, h.Client, "one")
	b.until(`window.early !== undefined && document.querySelector("#runs table") !== null`)
	if eval[bool](b, `window.early`) {
		t.Error("the list was replaced under the press")
	}
	b.clean("a press")
}
