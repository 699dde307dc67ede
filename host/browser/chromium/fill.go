package chromium

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"

	"github.com/sluicehost/sluice/host/browser/page"
)

// fillLimit bounds a text, in bytes.
const fillLimit = 1 << 20

// Fill focuses the node and replaces its content with text, in one step and without key events.
// Line breaks become spaces in single-line fields. It returns page.ErrKind if the node takes no
// text.
func (ui *userInput) Fill(ctx context.Context, node page.Ref, text string) (page.Delivery, error) {
	if len(text) > fillLimit {
		return page.Delivery{Trusted: -1}, page.ErrTooLarge
	}
	w, n, err := ui.tab.frames.worldOf(node)
	if err != nil {
		return page.Delivery{Trusted: -1}, err
	}
	return ui.do(ctx, w, func(ctx context.Context, a *act) error {
		var many bool
		if err := w.call(ctx, &many, "multiline", n); err != nil {
			return err
		}
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		if !many {
			text = strings.ReplaceAll(text, "\n", " ")
		}
		if err := w.focus(ctx, a, n, true, text); err != nil || text == "" {
			return err
		}
		a.sent = true
		return command(ctx, w.session, input.InsertText, input.InsertTextParams{Text: text})
	})
}

// Enter fills a secret into the node in one step within its document, so no other document gets it,
// whatever takes the focus meanwhile. It returns page.ErrKind if the node takes no text, takes only
// part of it, or lost the focus.
func (ui *userInput) Enter(ctx context.Context, node page.Ref, secret string) (page.Delivery, error) {
	if len(secret) > fillLimit {
		return page.Delivery{Trusted: -1}, page.ErrTooLarge
	}
	w, n, err := ui.tab.frames.worldOf(node)
	if err != nil {
		return page.Delivery{Trusted: -1}, err
	}
	return ui.do(ctx, w, func(ctx context.Context, a *act) error {
		a.sent = true
		err := w.said(ctx, "enter", n, secret)
		if known(err) { // nothing was filled in
			a.sent = false
		}
		return err
	})
}

// Set changes a control through its native setter, then dispatches input and change, which are not
// trusted events. It returns page.ErrKind for another kind of control and page.ErrGone if the
// option does not exist.
func (ui *userInput) Set(ctx context.Context, node page.Ref, s page.Setting) (page.Delivery, error) {
	given := map[string]any{}
	switch {
	case s.Number != nil:
		given["number"] = *s.Number
	case s.Text != nil:
		given["text"] = *s.Text
	case s.Option != nil:
		given["option"] = *s.Option
	case s.Index != nil:
		given["index"] = *s.Index
	case s.Indices != nil:
		given["indices"] = s.Indices
	case s.Check != nil:
		given["check"] = *s.Check
	}
	w, n, err := ui.tab.frames.worldOf(node)
	if err != nil {
		return page.Delivery{Trusted: -1}, err
	}
	d, err := ui.do(ctx, nil, func(ctx context.Context, a *act) error {
		a.sent = true
		err := w.said(ctx, "setControl", n, given)
		if known(err) { // the page was told nothing
			a.sent = false
		}
		return err
	})
	return d, err
}

// Leave takes the focus out of a node that has or contains it. A field that shows suggestions keeps
// it.
func (ui *userInput) Leave(ctx context.Context, node page.Ref) error {
	return ui.tab.at(ctx, node, func(ctx context.Context, w *world, n int) error { return w.said(ctx, "leave", n) })
}

// Scroll scrolls the node, or its scroll container, or the page for "", by fractions of the visible
// area and returns the distance in CSS pixels.
func (ui *userInput) Scroll(ctx context.Context, node page.Ref, dx, dy float64) (page.Point, page.Delivery, error) {
	var moved struct {
		Fault string  `json:"fault"`
		X     float64 `json:"x"`
		Y     float64 `json:"y"`
	}
	var w *world
	var n int
	var err error
	if node != "" {
		if w, n, err = ui.tab.frames.worldOf(node); err != nil {
			return page.Point{}, page.Delivery{Trusted: -1}, err
		}
	}
	d, err := ui.do(ctx, nil, func(ctx context.Context, a *act) error {
		if w == nil {
			if w, err = ui.tab.frames.mainWorld(ctx); err != nil {
				return err
			}
		}
		a.sent = true
		if err := w.call(ctx, &moved, "scroll", n, dx, dy); err != nil {
			return err
		}
		return errorOf(moved.Fault)
	})
	return page.Point{X: moved.X, Y: moved.Y}, d, err
}

// chooserWait bounds how long a page may take to open a file chooser after a click.
const chooserWait = 3 * time.Second

// Choose clicks and gives the files to the file chooser that opens.
func (ui *userInput) Choose(ctx context.Context, c page.Click, paths []string) (page.Delivery, error) {
	if err := ui.tab.chosen(ctx, nil); err != nil && !errors.Is(err, page.ErrGone) { // an earlier chooser gets nothing
		return page.Delivery{Trusted: -1}, err
	}
	d, err := ui.Click(ctx, c)
	if err != nil || d.Turned {
		return d, err
	}
	wait, cancel := context.WithTimeout(ctx, chooserWait)
	defer cancel()
	if err := ui.tab.until(wait, func() bool { return ui.tab.display.chooser != nil }); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = page.ErrKind
		}
		return d, err
	}
	return d, ui.tab.chosen(ctx, paths)
}

// Files selects files on the host's disk in a file input. The browser's user must be able to read
// them.
func (ui *userInput) Files(ctx context.Context, node page.Ref, paths []string) (page.Delivery, error) {
	w, n, err := ui.tab.frames.worldOf(node)
	if err != nil {
		return page.Delivery{Trusted: -1}, err
	}
	return ui.do(ctx, nil, func(ctx context.Context, a *act) error {
		group, release := w.group()
		obj, err := w.object(ctx, group, n)
		if err != nil {
			return err
		}
		defer release(ctx)
		a.sent = true
		_, err = cdp.Call(ctx, w.session, dom.SetFileInputFiles,
			dom.SetFileInputFilesParams{Files: append([]string{}, paths...), ObjectID: obj})
		if err != nil && strings.Contains(err.Error(), "not a file input") {
			a.sent = false
			return page.ErrKind
		}
		return err
	})
}
