package chromium

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	cdpnetwork "github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// heard is called with every event of a session of the tab, in order, from the
// goroutine that reads the connection: it takes note and returns. Commands go
// through spawn.
func (t *Tab) heard(s *chromedp.Target, ev any) {
	switch ev := ev.(type) {
	case *runtime.EventExecutionContextCreated:
		t.enteredWorld(s, ev.Context)
	case *runtime.EventExecutionContextDestroyed:
		t.leftWorlds(s, ev.ExecutionContextUniqueID)
	case *runtime.EventExecutionContextsCleared:
		t.leftWorlds(s, "")
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
			t.attachFrame(ev.TargetInfo.TargetID)
		}
	default:
		t.heardPage(s, ev)
		t.heardNetwork(s, ev)
	}
}

func (t *Tab) heardPage(s *chromedp.Target, ev any) {
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
		t.committed(s, ev.Frame, false)
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
		t.past.add(event{opening: true})
	case *cdpage.EventJavascriptDialogOpening:
		t.asked(ev)
	case *cdpage.EventJavascriptDialogClosed:
		t.answered(ev)
	case *cdpage.EventFileChooserOpened:
		t.chooserOpened(s, ev)
	}
	t.wake()
}

// sessionAround is the session that may say that a frame is gone: that of the
// document which it is in. A session also tells of frames that moved to a process of
// their own, with the reason swap. mu is held.
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

func (t *Tab) heardNetwork(s *chromedp.Target, ev any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case *cdpnetwork.EventRequestWillBeSent:
		t.sent(s, ev)
	case *cdpnetwork.EventWebSocketFrameSent:
		t.network.spoke = t.past.last
	case *cdpnetwork.EventResponseReceived:
		t.received(ev)
	case *cdpnetwork.EventLoadingFinished:
		t.finished(ev.RequestID, false)
	case *cdpnetwork.EventLoadingFailed:
		t.failed(ev)
		t.finished(ev.RequestID, true)
	}
}

// heardBrowser is heard for the events of the browser as a whole.
func (t *Tab) heardBrowser(ev any) {
	switch ev := ev.(type) {
	case *target.EventTargetDestroyed:
		t.mu.Lock()
		_, ours := t.frames.sessions[ev.TargetID]
		t.mu.Unlock()
		if ours {
			t.detachFrame(ev.TargetID)
		}
	}
}
