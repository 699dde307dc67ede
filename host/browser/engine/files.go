package engine

import (
	"errors"
	"maps"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// fileInput reports whether n is a file input. Other controls may open a file chooser when clicked.
func fileInput(n *page.Node) bool { return n.Tag == "input" && n.Type == "file" }

// opensChooser reports whether the action uploads by clicking something that opens a file chooser.
func opensChooser(a *act) bool {
	return a.req.Verb == Upload && a.found != nil && !fileInput(a.found.State())
}

// uploadFits checks the control and stages the files, once.
func uploadFits(a *act, n *page.Node) *fault {
	if n.Disabled {
		return a.reject("disabled")
	}
	if fileInput(n) && len(a.req.Upload) > 1 && !n.Multiple {
		return &fault{code: SemanticMismatch, stage: StageResolve}
	}
	if a.work != nil {
		return nil
	}
	if a.opt.Files == nil {
		a.refused = &Refusal{Code: "capability_denied", Message: "uploads are not granted", Verb: a.req.Verb}
		return nil
	}
	staged, release, refused := a.opt.Files.Stage(a.ctx, a.req.Upload)
	if refused == nil {
		if refused = uploadRoom(a, staged); refused != nil {
			release()
		}
	}
	if refused != nil {
		a.refused = refused
		return nil
	}
	a.work, a.release = staged, release
	return nil
}

// An uploaded holds copies that a page was given and may read until it ends.
type uploaded struct {
	tab      page.Tab
	document string
	node     page.Ref
	bytes    int64
	release  func()
}

// maxUploaded bounds the copies that one surface keeps for its pages, in bytes.
const maxUploaded = 1 << 30

// keepUploads decides what happens to the copies that an action made. Those given to the page stay
// until the document or the surface ends, or the control is given others. Those of a document that
// is gone already are removed at the next verb.
func keepUploads(a *act) {
	if a.release == nil {
		return
	}
	staged, _ := a.work.([]StagedFile)
	if a.dispatches == 0 {
		a.release()
		return
	}
	u := uploaded{tab: a.tab, document: a.document, node: a.node(), release: a.release}
	for _, f := range staged {
		u.bytes += f.Bytes
	}
	a.drop(func(o uploaded) bool {
		return o.tab.ID() == u.tab.ID() && o.document == u.document && o.node == u.node && a.res.Success
	})
	a.uploads = append(a.uploads, u)
}

// drop removes the matching copies.
func (e *Engine) drop(which func(uploaded) bool) {
	e.uploads = slices.DeleteFunc(e.uploads, func(u uploaded) bool {
		if which(u) {
			u.release()
			return true
		}
		return false
	})
}

// dropEnded removes the copies for documents that are gone.
func (e *Engine) dropEnded() {
	if len(e.uploads) == 0 {
		return
	}
	open := map[string]bool{}
	for _, t := range e.opt.Browser.Tabs() {
		open[t.ID()] = true
	}
	e.drop(func(u uploaded) bool { return !open[u.tab.ID()] || u.tab.Facts().Document != u.document })
}

// uploadRoom refuses uploads that exceed what the surface keeps.
func uploadRoom(a *act, staged []StagedFile) *Refusal {
	var total int64
	for _, f := range staged {
		total += f.Bytes
	}
	for _, u := range a.uploads {
		total += u.bytes
	}
	if total <= maxUploaded {
		return nil
	}
	return &Refusal{Code: "invalid_request",
		Message: "files: the open pages were given more than 1 GiB together; load them anew first", Verb: a.req.Verb}
}

func names(staged []StagedFile) []string {
	out := make([]string, len(staged))
	for i, f := range staged {
		out[i] = f.Name
	}
	return out
}

func uploadSend(a *act) (page.Delivery, error) {
	a.document = a.tab.Facts().Document
	staged, _ := a.work.([]StagedFile)
	paths := make([]string, len(staged))
	for i, f := range staged {
		paths[i] = f.Path
	}
	if !opensChooser(a) {
		return a.tab.Files(a.ctx, a.node(), paths)
	}
	d, err := a.tab.Choose(a.ctx, page.Click{At: a.point, Button: "left", Count: 1, Aimed: true}, paths)
	if errors.Is(err, page.ErrKind) {
		a.blocked, err = "no_file_chooser", nil
	}
	return d, err
}

func uploadTell(a *act) { a.details["files"] = a.work }

// mostLate bounds how many downloads are awaited after the action that began them.
const mostLate = 100

// A lateDownload was still running when the action that began it ended.
type lateDownload struct {
	tab   page.Tab
	since page.Mark // before it began
}

// offered returns the downloads to report for a tab: those begun since a mark, and those that ended
// since they were last reported. Each finished download is handed over once.
func (e *Engine) offered(tab page.Tab, since page.Mark) []any {
	list := e.ended()
	for _, d := range tab.Happened(since).Downloads {
		if _, late := e.late[d.ID]; late && over(d) || e.offers[d.ID] {
			continue // reported just now, or before
		}
		list = append(list, e.downloaded(d, lateDownload{tab, since}))
	}
	return list
}

// ended returns the late downloads that have ended.
func (e *Engine) ended() []any {
	list := []any{}
	for _, id := range slices.Sorted(maps.Keys(e.late)) {
		l := e.late[id]
		all := l.tab.Happened(l.since).Downloads
		i := slices.IndexFunc(all, func(d page.Download) bool { return d.ID == id && over(d) })
		if i >= 0 {
			delete(e.late, id)
			list = append(list, e.downloaded(all[i], l))
		}
	}
	return list
}

func over(d page.Download) bool { return d.Done || d.Denied || d.Failed != "" }

// downloaded returns one download as the guest is told of it. If it has not ended, or cannot be
// held while others are open, it is reported again later.
func (e *Engine) downloaded(d page.Download, l lateDownload) any {
	told, held := any(nil), true
	if d.Denied || d.Failed != "" || !d.Done || e.opt.Download == nil {
		out := map[string]any{"denied": d.Denied, "failed": d.Failed != "", "finished": d.Done}
		if d.Failed != "" {
			out["reason"] = d.Failed
		}
		told = out
	} else {
		told, held = e.opt.Download(d)
	}
	switch {
	case over(d) && held && d.ID != "" && len(e.offers) < 10*mostLate:
		e.offers[d.ID] = true
	case (!over(d) || !held) && len(e.late) < mostLate:
		e.late[d.ID] = l
	}
	return told
}
