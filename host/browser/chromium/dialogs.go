package chromium

import (
	"context"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"

	"github.com/sluicehost/sluice/host/browser/page"
)

// dialogs is the one that is open, and what becomes of those to come. The tab's mu
// guards it.
type dialogs struct {
	policy page.DialogPolicy
	text   *string      // for prompts that are accepted; nil: what they propose
	open   *page.Dialog // also in the past
	kept   bool         // it waits for the owner
	vain   bool         // the browser said that it has none
}

// OnDialog says what becomes of dialogs from now on. One that was kept stays.
func (t *Tab) OnDialog(p page.DialogPolicy, text *string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dialogs.policy, t.dialogs.text = p, text
}

// asked notes a dialog and has it answered, unless it is the owner's. mu is held.
func (t *Tab) asked(ev *cdpage.EventJavascriptDialogOpening) {
	d := page.Dialog{Type: string(ev.Type), Host: hostOf(ev.URL), Text: cutText(ev.Message, 1024), Length: len(ev.Message)}
	e := t.past.add(event{dialog: &d})
	t.dialogs.open = e.dialog
	accept := t.dialogs.policy == page.DialogAccept || ev.Type == cdpage.DialogTypeBeforeunload
	t.dialogs.kept = !accept && t.dialogs.policy == page.DialogKeep
	if t.dialogs.kept {
		t.endCalls(page.ErrDialog)
		t.poke()
		return
	}
	text := ev.DefaultPrompt
	if t.dialogs.text != nil && ev.Type == cdpage.DialogTypePrompt {
		text = *t.dialogs.text
	}
	t.spawn(func(ctx context.Context) { t.answer(ctx, e.dialog, accept, text) })
}

// inVain is how often, 50 ms apart, the browser may say that it has no such dialog
// before it is believed: a page that is being left is not attached for a moment.
const inVain = 40

// answer tells the browser what becomes of a dialog, until it is closed: one that a
// page opens while its document is being replaced is told in vain at first, and goes
// without a word at last.
func (t *Tab) answer(ctx context.Context, d *page.Dialog, accept bool, text string) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for none := 0; none < inVain; {
		once, end := context.WithTimeout(ctx, time.Second)
		_, err := cdp.Call(once, t.session, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{Accept: accept, PromptText: text})
		end()
		if noDialog(err) {
			none++
		}
		t.mu.Lock()
		open := t.dialogs.open == d
		t.dialogs.vain = open && none > 0
		if open && none == inVain {
			t.answered(&cdpage.EventJavascriptDialogClosed{Result: accept})
		}
		t.mu.Unlock()
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

// answered notes the end of a dialog. mu is held.
func (t *Tab) answered(ev *cdpage.EventJavascriptDialogClosed) {
	if d := t.dialogs.open; d != nil {
		d.Answer = "dismissed"
		if ev.Result {
			d.Answer = "accepted"
		}
	}
	t.dialogs.open, t.dialogs.kept, t.dialogs.vain = nil, false, false
	t.poke()
}

// buried notes that a dialog which the browser has no more went with its document. mu
// is held.
func (t *Tab) buried() {
	if t.dialogs.vain {
		t.answered(&cdpage.EventJavascriptDialogClosed{})
	}
}

// Answer decides about the dialog that is open; page.ErrNoDialog without one.
func (t *Tab) Answer(ctx context.Context, accept bool, text string) error {
	if !t.dialogOpen() {
		return page.ErrNoDialog
	}
	return t.race(ctx, false, func(ctx context.Context) error {
		_, err := cdp.Call(ctx, t.session, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{Accept: accept, PromptText: text})
		if noDialog(err) {
			return page.ErrNoDialog
		}
		return err
	})
}

func noDialog(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "No dialog is showing") || strings.Contains(err.Error(), "Not attached to an active page"))
}
