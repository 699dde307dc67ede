package chromium

import (
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	cdpnetwork "github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// onEvent is called with every event of the tab's sessions, in order, from the goroutine that reads
// the connection. It only records; commands go through spawn.
func (t *Tab) onEvent(s *chromedp.Target, ev any) {
	switch ev := ev.(type) {
	case *runtime.EventExecutionContextCreated:
		t.frames.enteredWorld(s, ev.Context)
	case *runtime.EventExecutionContextDestroyed:
		t.frames.leftWorlds(s, ev.ExecutionContextUniqueID)
	case *runtime.EventExecutionContextsCleared:
		t.frames.leftWorlds(s, "")
	case *runtime.EventConsoleAPICalled:
		t.said(ev)
	case *runtime.EventExceptionThrown:
		t.threw(ev)
	case *log.EventEntryAdded:
		t.noted(ev)
	case *fetch.EventAuthRequired:
		t.askedLogin(ev)
	case *fetch.EventRequestPaused:
		t.heldUp(ev)
	case *cdpage.EventScreencastFrame:
		t.pictured(s, ev)
	case *target.EventAttachedToTarget:
		if ev.TargetInfo.Type == "iframe" {
			t.frames.attachFrame(ev.TargetInfo.TargetID)
		}
	default:
		t.onPageEvent(s, ev)
		t.onNetworkEvent(s, ev)
	}
}

func (t *Tab) onPageEvent(s *chromedp.Target, ev any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case *cdpage.EventFrameAttached:
		t.frames.of(ev.FrameID, ev.ParentFrameID)
	case *cdpage.EventFrameDetached:
		switch f := t.frames.all[ev.FrameID]; {
		case ev.Reason == cdpage.FrameDetachedReasonSwap && f != nil:
			f.away = true
		case s == t.sessionAround(ev.FrameID):
			t.frames.drop(ev.FrameID)
		}
	case *cdpage.EventFrameNavigated:
		t.frames.committed(s, ev.Frame, false)
	case *cdpage.EventNavigatedWithinDocument:
		if ev.FrameID == t.frames.main {
			t.moved(ev.URL)
		}
	case *cdpage.EventLifecycleEvent:
		if ev.FrameID == t.frames.main {
			t.staged(ev.LoaderID, ev.Name)
		}
	case *cdpage.EventFrameRequestedNavigation:
		t.requested(ev)
	case *cdpage.EventWindowOpen:
		t.history.add(event{opening: true})
	case *cdpage.EventJavascriptDialogOpening:
		t.dialogs.asked(ev)
	case *cdpage.EventJavascriptDialogClosed:
		t.answered(ev)
	case *cdpage.EventFileChooserOpened:
		t.chooserOpened(s, ev)
	}
	t.wake()
}

// sessionAround returns the session that can report that a frame is gone: that of the document
// which contains it. Sessions also report, with the reason swap, frames that moved to a process of
// their own. mu is held.
func (t *Tab) sessionAround(id cdp.FrameID) *chromedp.Target {
	f := t.frames.all[id]
	if f == nil {
		return nil
	}
	if p := t.frames.all[f.parent]; p != nil && p.world != nil {
		return p.world.session
	}
	return t.session
}

func (t *Tab) onNetworkEvent(s *chromedp.Target, ev any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case *cdpnetwork.EventRequestWillBeSent:
		t.sent(s, ev)
	case *cdpnetwork.EventWebSocketFrameSent:
		t.traffic.spoke = t.history.last
	case *cdpnetwork.EventResponseReceived:
		t.received(ev)
	case *cdpnetwork.EventLoadingFinished:
		t.finished(ev.RequestID, false)
	case *cdpnetwork.EventLoadingFailed:
		t.failed(ev)
		t.finished(ev.RequestID, true)
	}
}

// onBrowserEvent is called with events of the browser as a whole.
func (t *Tab) onBrowserEvent(ev any) {
	switch ev := ev.(type) {
	case *target.EventTargetDestroyed:
		t.mu.Lock()
		_, ours := t.frames.sessions[ev.TargetID]
		t.mu.Unlock()
		if ours {
			t.frames.detachFrame(ev.TargetID)
		}
	}
}

// historyLimit bounds the events that a tab remembers.
const historyLimit = 1000

// An event is one thing that happened; exactly one member is set.
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

// A history holds the newest historyLimit events of a tab. The tab's mu guards it.
type history struct {
	events []*event
	last   page.Mark
}

func (p *history) add(e event) *event {
	p.last++
	e.seq = p.last
	if len(p.events) >= historyLimit {
		p.events = p.events[1:]
	}
	p.events = append(p.events, &e)
	return &e
}

// since returns what happened after a mark. Dialogs and downloads are in their current state.
func (p *history) since(m page.Mark) page.Happened {
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
		case e.download != nil: // begun or ended
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

// Mark returns a mark of this moment, which no earlier event shares.
func (t *Tab) Mark() page.Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.last++
	return t.history.last
}

// Happened returns what happened since the mark.
func (t *Tab) Happened(since page.Mark) page.Happened {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.history.since(since)
	h.Writing, h.Asking = t.traffic.pending(since)
	h.Sent = t.traffic.told(since)
	return h
}
