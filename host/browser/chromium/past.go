package chromium

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// pastLimit is how many events a tab remembers.
const pastLimit = 1000

// An event is one thing that came to pass; one member is set.
type event struct {
	seq      page.Mark
	loader   string
	moved    bool
	dialog   *page.Dialog
	popup    *page.Popup
	opening  bool // a tab that is being opened
	download *page.Download
	refused  error
	dropped  bool
}

// A past is what a tab went through, the newest pastLimit events of it. The tab's mu
// guards it.
type past struct {
	events []*event
	last   page.Mark
}

func (p *past) add(e event) *event {
	p.last++
	e.seq = p.last
	if len(p.events) >= pastLimit {
		p.events = p.events[1:]
	}
	p.events = append(p.events, &e)
	return &e
}

// since is what came after a mark. Dialogs and downloads are as they are now.
func (p *past) since(m page.Mark) page.Happened {
	var h page.Happened
	for _, e := range p.events {
		switch {
		case e.seq <= m:
		case e.loader != "":
			h.Loaders = append(h.Loaders, e.loader)
		case e.moved:
			h.Moved = true
		case e.dialog != nil:
			h.Dialogs = append(h.Dialogs, *e.dialog)
		case e.popup != nil:
			h.Popups = append(h.Popups, *e.popup)
		case e.opening:
			h.Opening++
		case e.download != nil: // it began, or it ended
			if !slices.ContainsFunc(h.Downloads, func(d page.Download) bool { return d.ID == e.download.ID }) {
				h.Downloads = append(h.Downloads, *e.download)
			}
		case e.refused != nil:
			h.Refused = append(h.Refused, e.refused)
		case e.dropped:
			h.Dropped++
		}
	}
	return h
}

// Mark is this moment, for Happened and Requests: a moment of its own, which nothing
// before it shares.
func (t *Tab) Mark() page.Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past.last++
	return t.past.last
}

// Happened is what came to pass since the mark.
func (t *Tab) Happened(since page.Mark) page.Happened {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.past.since(since)
	h.Writing, h.Asking = t.network.pending(since)
	h.Sent = t.network.told(since)
	return h
}
