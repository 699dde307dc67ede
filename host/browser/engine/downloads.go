package engine

import (
	"maps"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// mostLate is how many downloads are waited for after the action that began them.
const mostLate = 100

// A lateDownload was still under way when the action that began it was over.
type lateDownload struct {
	tab   page.Tab
	since page.Mark // before its beginning
}

// offered is what a guest is told of the files that a tab was offered since a mark,
// and of those that came to their end since the reply that spoke of them last
// (B252). Each finished one is handed over once.
func (e *Engine) offered(tab page.Tab, since page.Mark) []any {
	list := e.ended()
	for _, d := range tab.Happened(since).Downloads {
		if _, late := e.late[d.ID]; late && over(d) || e.offers[d.ID] {
			continue // it was told just now, or before
		}
		list = append(list, e.downloaded(d, lateDownload{tab, since}))
	}
	return list
}

// ended are the late downloads that are over now.
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

// downloaded is one of them as the guest hears of it. One that is not over, or that
// cannot be held while others are open, is told of again: it is late.
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
