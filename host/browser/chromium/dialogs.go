package chromium

import (
	"context"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"

	"github.com/sluicehost/sluice/host/browser/page"
)

// dialogs is the open dialog and the policy for later ones. The tab's mu guards it.
type dialogs struct {
	tab    *Tab
	policy page.DialogPolicy
	text   *string      // answer to accepted prompts; nil: their default
	open   *page.Dialog // also in the history
	kept   bool         // it waits for the owner
	vain   bool         // the browser said that it has no dialog
}

// OnDialog sets what happens to dialogs from now on. A dialog that is kept for the owner stays.
func (ds *dialogs) OnDialog(p page.DialogPolicy, text *string) {
	ds.tab.mu.Lock()
	defer ds.tab.mu.Unlock()
	ds.policy, ds.text = p, text
}

// asked records a dialog and answers it, unless it is kept for the owner. mu is held.
func (ds *dialogs) asked(ev *cdpage.EventJavascriptDialogOpening) {
	d := page.Dialog{Type: string(ev.Type), Host: hostOf(ev.URL), Text: cutText(ev.Message, 1024), Length: len(ev.Message)}
	e := ds.tab.history.add(event{dialog: &d})
	ds.open = e.dialog
	accept := ds.policy == page.DialogAccept || ev.Type == cdpage.DialogTypeBeforeunload
	ds.kept = !accept && ds.policy == page.DialogKeep
	if ds.kept {
		ds.tab.endCalls(page.ErrDialog)
		ds.tab.poke()
		return
	}
	text := ev.DefaultPrompt
	if ds.text != nil && ev.Type == cdpage.DialogTypePrompt {
		text = *ds.text
	}
	ds.tab.spawn(func(ctx context.Context) { ds.answer(ctx, e.dialog, accept, text) })
}

// inVain is how often, 50 ms apart, the browser may deny having a dialog before it is believed: a
// page that is being left is detached for a moment.
const inVain = 40

// answer answers a dialog until it is closed. A dialog that opens while its document is being
// replaced may reject the first answers and then vanish without an event.
func (ds *dialogs) answer(ctx context.Context, d *page.Dialog, accept bool, text string) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for none := 0; none < inVain; {
		once, end := context.WithTimeout(ctx, time.Second)
		_, err := cdp.Call(once, ds.tab.session, cdpage.HandleJavaScriptDialog,
			cdpage.HandleJavaScriptDialogParams{Accept: accept, PromptText: text})
		end()
		if noDialog(err) {
			none++
		}
		ds.tab.mu.Lock()
		open := ds.open == d
		ds.vain = open && none > 0
		if open && none == inVain {
			ds.answered(&cdpage.EventJavascriptDialogClosed{Result: accept})
		}
		ds.tab.mu.Unlock()
		if !open {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// answered records the end of a dialog. mu is held.
func (ds *dialogs) answered(ev *cdpage.EventJavascriptDialogClosed) {
	if d := ds.open; d != nil {
		d.Answer = "dismissed"
		if ev.Result {
			d.Answer = "accepted"
		}
	}
	ds.open, ds.kept, ds.vain = nil, false, false
	ds.tab.poke()
}

// goneWithDocument records that a dialog which the browser no longer has went with its document. mu
// is held.
func (ds *dialogs) goneWithDocument() {
	if ds.vain {
		ds.answered(&cdpage.EventJavascriptDialogClosed{})
	}
}

// Answer accepts or dismisses the open dialog. It returns page.ErrNoDialog if there is none.
func (ds *dialogs) Answer(ctx context.Context, accept bool, text string) error {
	if !ds.tab.dialogOpen() {
		return page.ErrNoDialog
	}
	return ds.tab.race(ctx, false, func(ctx context.Context) error {
		_, err := cdp.Call(ctx, ds.tab.session, cdpage.HandleJavaScriptDialog,
			cdpage.HandleJavaScriptDialogParams{Accept: accept, PromptText: text})
		if noDialog(err) {
			return page.ErrNoDialog
		}
		return err
	})
}

func noDialog(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "No dialog is showing") ||
		strings.Contains(err.Error(), "Not attached to an active page"))
}
