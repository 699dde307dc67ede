package view

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/patience"
)

// An incoming file is sent by the owner for the page's file chooser: announced, received in pieces,
// given to the page once.
type incoming struct {
	upload Upload
	left   int64
}

// filing guards the file, which the reader fills and the applier gives to the page.
type filing struct {
	mu   sync.Mutex // guards file
	file *incoming
}

// announce prepares to receive a file, or cancels the page's chooser.
func (w *viewer) announce(m message) {
	w.run.mu.Lock()
	screen := w.run.screen
	w.run.mu.Unlock()
	if screen == nil || !screen.Choosing() {
		w.refuse("gone")
		return
	}
	w.hands.drop()
	if m.do == "none" {
		w.queue(m)
		return
	}
	ctx, cancel := patience.Within(w.ctx, stepLimit)
	defer cancel()
	u, err := w.run.surface.Upload(ctx, baseName(m.name), m.size)
	switch {
	case errors.Is(err, ErrUploads):
		w.send(outgoing{"type": "notice", "code": "upload_not_permitted"})
		w.queue(message{kind: "file_choose", do: "none"})
		return
	case err != nil:
		w.refuse("not_done")
		return
	}
	w.hands.files.mu.Lock()
	w.hands.files.file = &incoming{upload: u, left: m.size}
	w.hands.files.mu.Unlock()
	if m.size == 0 {
		w.complete()
	}
}

// baseName returns the last element of a file name sent by the owner's browser.
func baseName(s string) string {
	s = path.Base(strings.ReplaceAll(clean(s, maxName), `\`, "/"))
	if s == "." || s == "/" || s == ".." {
		return "file"
	}
	return s
}

// piece receives a part of the announced file.
func (w *viewer) piece(raw []byte) {
	h := &w.hands.files
	h.mu.Lock()
	f := h.file
	h.mu.Unlock()
	switch {
	case w.session.mode != ModeControl || !w.run.holds(w.session):
		w.refuse("not_controlling")
	case len(raw) < 1 || raw[0] != typePiece || f == nil || f.left <= 0:
		w.refuse("invalid_input")
	case int64(len(raw)-1) > f.left:
		w.hands.drop()
		w.refuse("invalid_input")
	default:
		if _, err := f.upload.Write(raw[1:]); err != nil {
			w.hands.drop()
			w.refuse("not_done")
			return
		}
		w.run.touch(w.session)
		if f.left -= int64(len(raw) - 1); f.left == 0 {
			w.complete()
		}
	}
}

// complete queues giving the file to the page, after earlier messages.
func (w *viewer) complete() { w.queue(message{kind: "file_choose", do: "give"}) }

func (w *viewer) queue(m message) {
	if !w.inbox.put(m) {
		w.hands.drop()
		w.refuse("page_busy")
	}
}

// give gives the page its file, which it may read until the surface ends and the file is erased.
func (h *controls) give(ctx context.Context, w *viewer, screen page.Screen, m message) error {
	if m.do == "none" {
		return screen.Choose(ctx, nil)
	}
	h.files.mu.Lock()
	f := h.files.file
	h.files.file = nil
	h.files.mu.Unlock()
	if f == nil {
		return page.ErrGone
	}
	if err := f.upload.Done(); err != nil {
		f.upload.Erase()
		return err
	}
	if err := screen.Choose(ctx, []string{f.upload.Path()}); err != nil {
		f.upload.Erase()
		return err
	}
	if !w.run.keep(f.upload) {
		f.upload.Erase()
	}
	w.send(outgoing{"type": "notice", "code": "file_given"})
	return nil
}

// keep registers a file to be erased with the surface. It reports false if the surface is gone
// already.
func (r *Run) keep(u Upload) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.screen == nil {
		return false
	}
	r.uploads = append(r.uploads, u)
	return true
}

// drop erases a file that was not given to the page.
func (h *controls) drop() {
	h.files.mu.Lock()
	f := h.files.file
	h.files.file = nil
	h.files.mu.Unlock()
	if f != nil {
		f.upload.Erase()
	}
}
