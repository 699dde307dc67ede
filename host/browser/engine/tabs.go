package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// tabs are those that are open, and those that were closed since the last reply, with
// the reason where the host had one: popups beyond what is allowed, pages that crashed
// (B36, B195).
func (e *Engine) tabs(of page.Tab) []TabInfo {
	out := []TabInfo{}
	open := map[string]bool{}
	marks := map[string]page.Mark{}
	why := map[string]string{}
	var popups []TabInfo
	hear := func(t page.Tab) {
		marks[t.ID()] = t.Mark() // first: what happens meanwhile is the next reply's too
		for _, p := range t.Happened(e.marks[t.ID()]).Popups {
			switch {
			case p.Closed == "":
			case p.Tab == "":
				popups = append(popups, TabInfo{Closed: p.Closed})
			default:
				why[p.Tab] = p.Closed
			}
		}
	}
	for i, t := range e.opt.Browser.Tabs() {
		open[t.ID()] = true
		out = append(out, TabInfo{TabID: t.ID(), URLHost: t.Facts().Host, Active: i == 0})
		hear(t)
	}
	if !open[of.ID()] {
		hear(of)
	}
	var gone []string
	for id := range e.known {
		if !open[id] {
			gone = append(gone, id)
		}
	}
	for id := range why { // opened and closed since the last reply
		if !open[id] && !e.known[id] {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	for _, id := range gone {
		reason := why[id]
		if reason == "" {
			reason = "closed"
		}
		out = append(out, TabInfo{TabID: id, Closed: reason})
		delete(e.filled, id)
	}
	e.known, e.marks = open, marks
	return append(out, popups...)
}
