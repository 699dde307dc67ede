package chromium

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	tabLimit = 4 // of one surface
	// adoptLimit bounds attaching to a new page, and closing one.
	adoptLimit = 5 * time.Second
)

// Reasons for which the host closed a tab, as page.Popup has them.
const (
	closedDenied  = "popups are denied"
	closedLimit   = "too many tabs"
	closedCrashed = "it crashed"
	closedFailed  = "it could not be attached to"
)

// Tabs returns the open tabs, the active one first.
func (b *Browser) Tabs() []page.Tab {
	b.mu.Lock()
	defer b.mu.Unlock()
	var tabs []page.Tab
	if b.active != nil {
		tabs = append(tabs, b.active)
	}
	for _, t := range b.tabs {
		if t != b.active {
			tabs = append(tabs, t)
		}
	}
	return tabs
}

// Activate makes a tab the active one and brings it to the front. It returns page.ErrGone if there
// is no such tab.
func (b *Browser) Activate(ctx context.Context, tab string) error {
	b.mu.Lock()
	i := slices.IndexFunc(b.tabs, func(t *Tab) bool { return t.id == tab })
	if i < 0 {
		b.mu.Unlock()
		return page.ErrGone
	}
	t := b.tabs[i]
	b.mu.Unlock()
	if _, err := cdp.Call(ctx, b.cdp, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.target}); err != nil {
		return b.why(ctx, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.tabs, t) {
		return page.ErrGone
	}
	b.active, b.fault = t, nil
	b.poke()
	return nil
}

// Reset opens a fresh, empty tab, makes it active and closes all others, before the next run of a
// connection.
func (b *Browser) Reset(ctx context.Context) error {
	b.mu.Lock()
	old := slices.Clone(b.tabs)
	b.mu.Unlock()
	id, err := b.create(ctx) // first, since a browser without a page ends
	if err != nil {
		return b.why(ctx, err)
	}
	t, err := b.adopt(ctx, id)
	if err != nil {
		return err
	}
	if err = b.Activate(ctx, t.id); err != nil {
		return err
	}
	if err = b.renew(ctx); err != nil {
		return err
	}
	for _, t := range old {
		if err = b.closeTab(ctx, t); err != nil && !errors.Is(err, page.ErrGone) {
			return err
		}
	}
	return nil
}

// create opens a page that is not taken for a popup, even if its event arrives before its id is
// known.
func (b *Browser) create(ctx context.Context) (target.ID, error) {
	b.mu.Lock()
	b.creating++
	b.mu.Unlock()
	made, err := cdp.Call(ctx, b.cdp, target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.creating--
	b.arrived = slices.DeleteFunc(b.arrived, func(p *target.Info) bool { return p.TargetID == made.TargetID })
	signal(b.wake)
	return made.TargetID, err
}

// onEvent is called with each event of the browser, on the goroutine that reads them.
func (b *Browser) onEvent(ev any) {
	switch ev := ev.(type) {
	case *target.EventTargetCreated:
		b.appeared(ev.TargetInfo)
	case *target.EventTargetDestroyed:
		b.vanished(ev.TargetID)
	case *target.EventTargetCrashed:
		b.crashed(ev.TargetID)
	case *target.EventDetachedFromTarget:
		b.detached(ev.SessionID)
	case *browser.EventDownloadWillBegin:
		b.downloadBegan(ev)
	case *browser.EventDownloadProgress:
		b.downloadWent(ev)
	}
}

// appeared records a page that the host did not open.
func (b *Browser) appeared(info *target.Info) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if info.Type != "page" || info.Subtype != "" || b.seen[info.TargetID] {
		return
	}
	b.seen[info.TargetID] = true
	b.arrived = append(b.arrived, info)
	signal(b.wake)
}

// vanished forgets a closed page. If it was the active tab, another becomes active.
func (b *Browser) vanished(id target.ID) {
	b.mu.Lock()
	delete(b.seen, id)
	b.arrived = slices.DeleteFunc(b.arrived, func(p *target.Info) bool { return p.TargetID == id })
	t := b.remove(id)
	b.mu.Unlock()
	if t != nil {
		b.dispose(t)
		b.poke()
	}
}

// remove takes a tab off the list. b.mu is held.
func (b *Browser) remove(id target.ID) *Tab {
	i := slices.IndexFunc(b.tabs, func(t *Tab) bool { return t.target == id })
	if i < 0 {
		return nil
	}
	t := b.tabs[i]
	b.tabs = slices.Delete(b.tabs, i, i+1)
	b.gone = slices.DeleteFunc(b.gone, func(g *Tab) bool { return g == t })
	if b.active == t {
		b.active, b.fault = nil, nil
		if n := len(b.tabs); n > 0 {
			b.active = b.tabs[n-1]
		}
	}
	return t
}

// crashed records the end of a renderer. The active tab stays but is unusable; a background tab is
// closed.
func (b *Browser) crashed(id target.ID) {
	b.mu.Lock()
	i := slices.IndexFunc(b.tabs, func(t *Tab) bool { return t.target == id })
	if i < 0 {
		b.mu.Unlock()
		return
	}
	t := b.tabs[i]
	again := t.fallen.Swap(true)
	if t == b.active {
		b.fault = fmt.Errorf("%w: the page crashed", page.ErrGone)
	} else if !again {
		b.gone = append(b.gone, t)
		signal(b.wake)
	}
	b.mu.Unlock()
	if !again {
		t.ended(page.ErrGone)
	}
	b.poke()
}

// detached records a tab whose session ended. work finds out whether its page is gone too, since
// that is reported later.
func (b *Browser) detached(session target.SessionID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tabs {
		if t.session.SessionID == session {
			b.gone = append(b.gone, t)
			signal(b.wake)
		}
	}
}

// work carries out what events require, since no command may be sent from the goroutine that reads
// them.
func (b *Browser) work() {
	defer b.working.Done()
	for {
		select {
		case <-b.wake:
		case <-b.weighing():
			b.endOversized()
		case <-b.lost:
			return
		}
		for b.next() {
		}
	}
}

// next carries out one task. It reports false if there is none.
func (b *Browser) next() bool {
	b.mu.Lock()
	var info *target.Info
	var lost *Tab
	var unwanted string
	switch {
	case len(b.arrived) > 0 && b.creating == 0:
		info, b.arrived = b.arrived[0], b.arrived[1:]
	case len(b.gone) > 0:
		lost, b.gone = b.gone[0], b.gone[1:]
	case len(b.unwanted) > 0:
		unwanted, b.unwanted = b.unwanted[0], b.unwanted[1:]
	default:
		b.mu.Unlock()
		return false
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(b.root, adoptLimit)
	defer cancel()
	switch {
	case info != nil:
		b.receive(ctx, info)
	case lost != nil:
		b.bury(ctx, lost)
	default:
		b.cancelDownload(ctx, unwanted)
	}
	return !gone(b.lost)
}

// receive adopts or closes a new page and tells the tab that opened it.
func (b *Browser) receive(ctx context.Context, info *target.Info) {
	b.mu.Lock()
	first := b.opened == 0
	i := slices.IndexFunc(b.tabs, func(t *Tab) bool { return t.target == info.OpenerID })
	opener := b.active
	if i >= 0 {
		opener = b.tabs[i]
	}
	b.mu.Unlock()
	var popup page.Popup
	switch {
	case !first && b.options.DenyPopups:
		popup.Closed = closedDenied
	case b.full():
		popup.Closed = closedLimit
	default:
		t, err := b.adopt(ctx, info.TargetID)
		if err == nil {
			popup.Tab = t.id
		} else {
			popup.Closed = closedFailed
		}
	}
	if popup.Closed != "" {
		_, _ = cdp.Call(ctx, b.cdp, target.CloseTarget, target.CloseTargetParams{TargetID: info.TargetID})
	}
	if first {
		close(b.first)
		return
	}
	b.mu.Lock()
	active := b.active
	b.mu.Unlock()
	if active != nil { // new pages stay in the background
		_, _ = cdp.Call(ctx, b.cdp, target.ActivateTarget, target.ActivateTargetParams{TargetID: active.target})
	}
	if opener != nil {
		opener.opened(popup)
	}
}

func (b *Browser) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tabs) >= b.options.MaxTabs
}

// adopt makes a tab of a page. The first one becomes active.
func (b *Browser) adopt(ctx context.Context, id target.ID) (*Tab, error) {
	b.mu.Lock()
	b.opened++
	name := "tab_" + strconv.Itoa(b.opened)
	b.mu.Unlock()
	t, err := newTab(b.root, ctx, b, name, id)
	if err != nil {
		return nil, b.why(ctx, err)
	}
	err = chromedp.Listen(t.ctx, func(ev any) {
		if _, ok := ev.(*inspector.EventTargetCrashed); ok {
			b.crashed(id)
		}
	})
	if err != nil {
		return nil, b.why(ctx, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen[id] {
		return nil, page.ErrGone // it was closed meanwhile
	}
	b.tabs = append(b.tabs, t)
	if b.active == nil {
		b.active = t
	}
	return t, nil
}

// bury handles a tab that crashed in the background or whose session ended: if it still exists and
// is active it becomes unusable, otherwise it is closed.
func (b *Browser) bury(ctx context.Context, t *Tab) {
	exists := false
	if all, err := cdp.Call(ctx, b.cdp, target.GetTargets, target.GetTargetsParams{}); err == nil {
		exists = slices.ContainsFunc(all.TargetInfos, func(p *target.Info) bool { return p.TargetID == t.target })
	}
	b.mu.Lock()
	active := t == b.active
	if exists && active {
		b.fault = fmt.Errorf("%w: the page was detached", page.ErrGone)
	} else {
		b.remove(t.target)
	}
	teller := b.active
	b.mu.Unlock()
	b.poke()
	if exists && active {
		t.ended(page.ErrGone)
		return
	}
	b.dispose(t)
	if !exists {
		return
	}
	_, _ = cdp.Call(ctx, b.cdp, target.CloseTarget, target.CloseTargetParams{TargetID: t.target})
	if teller != nil {
		teller.opened(page.Popup{Tab: t.id, Closed: closedCrashed})
	}
}

// closeTab closes a tab on request. If it is the active one, another becomes active.
func (b *Browser) closeTab(ctx context.Context, t *Tab) error {
	b.mu.Lock()
	b.remove(t.target)
	b.mu.Unlock()
	b.poke()
	_, err := cdp.Call(ctx, b.cdp, target.CloseTarget, target.CloseTargetParams{TargetID: t.target})
	b.dispose(t)
	return b.why(ctx, err)
}

// dispose frees a tab that is off the list. The library waits for what is gone already, so only
// Close waits for this.
func (b *Browser) dispose(t *Tab) {
	t.ended(page.ErrGone)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ending { // otherwise all end with the browser
		b.working.Go(t.close)
	}
}
