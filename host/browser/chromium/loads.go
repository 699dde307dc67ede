package chromium

import (
	"context"
	"strconv"

	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Stages of a document's load; until names them.
const (
	stageCommit = 1 + iota
	stageDOM
	stageLoad
)

// loadLimit is how many loads are remembered.
const loadLimit = 64

// A load is what is known of one document's coming. The tab's mu guards it.
type load struct {
	stage     int
	url       string
	asked     string // the latest hop of the way there
	status    int
	redirects int
	blocked   bool  // the proxy answered in the server's place (B251)
	denied    error // page.ErrHost or page.ErrScheme: it was refused
}

// loads is where the main frame is. The tab's mu guards it.
type loads struct {
	url       string
	loader    cdp.LoaderID
	documents int
	moves     int  // within documents
	undoing   int  // loads that are being taken back
	asked     bool // a load is on its way that Navigate began
	all       map[cdp.LoaderID]*load
	order     []cdp.LoaderID
}

func (l *loads) init() { l.all, l.url = make(map[cdp.LoaderID]*load), blank }

func (l *loads) document() string { return "doc_" + strconv.Itoa(l.documents) }

// of is the load of a loader, made when it is new.
func (l *loads) of(id cdp.LoaderID) *load {
	ld := l.all[id]
	if ld == nil {
		ld = &load{}
		l.all[id] = ld
		l.order = append(l.order, id)
		if len(l.order) > loadLimit {
			delete(l.all, l.order[0])
			l.order = l.order[1:]
		}
	}
	return ld
}

// loaded notes a document that the main frame committed, and takes it back when its
// address may not be loaded (B24). mu is held.
func (t *Tab) loaded(f *cdp.Frame, early bool) {
	l := &t.loads
	ld := l.of(f.LoaderID)
	ld.stage = max(ld.stage, stageCommit)
	if early {
		ld.stage = stageLoad // how far it is, nobody was there to hear
	}
	l.loader, l.url = f.LoaderID, f.URL+f.URLFragment
	l.documents++
	t.network.arrived()
	t.buried()
	t.poke()
	if f.UnreachableURL != "" { // an error page of the browser's own
		l.url = blank
		return
	}
	ld.url = l.url
	err := t.check(l.url)
	if err == nil {
		err = ld.denied
	}
	if err == nil && ld.blocked {
		err = page.ErrHost
	}
	if err == nil {
		if l.url != blank {
			t.past.add(event{loader: string(f.LoaderID)})
		}
		return
	}
	t.refuse(ld, err)
	t.undo(t.reset)
}

// refuse notes an address that was not loaded, once for each load. mu is held.
func (t *Tab) refuse(ld *load, err error) {
	if ld.denied == nil {
		t.past.add(event{refused: err})
	}
	ld.denied = err
}

// undo takes a load back. No other one is begun before that is done, since it would
// be taken back with it. mu is held.
func (t *Tab) undo(how func(context.Context)) {
	t.loads.undoing++
	t.spawn(func(ctx context.Context) {
		how(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.loads.undoing--
		t.wake()
	})
}

// undone waits until nothing is being taken back.
func (t *Tab) undone(ctx context.Context) error {
	return t.until(ctx, func() bool { return t.loads.undoing == 0 })
}

// reset leaves whatever is loaded for the blank page.
func (t *Tab) reset(ctx context.Context) {
	_, _ = cdp.Call(ctx, t.session, cdpage.Navigate, cdpage.NavigateParams{URL: blank})
}

// checkFrame takes back what a frame inside of the page may not show. mu is held.
func (t *Tab) checkFrame(f *cdp.Frame) {
	if frameScheme(f.URL) || f.ID == t.frames.main {
		return
	}
	t.past.add(event{refused: page.ErrScheme})
	t.spawn(func(ctx context.Context) {
		_, _ = cdp.Call(ctx, t.session, cdpage.Navigate, cdpage.NavigateParams{URL: blank, FrameID: f.ID})
	})
}

// moved notes a change of address inside of the document. mu is held.
func (t *Tab) moved(url string) {
	t.loads.url = url
	t.loads.moves++
	t.past.add(event{moved: true})
	t.poke()
}

// staged notes how far a document is. mu is held.
func (t *Tab) staged(id cdp.LoaderID, name string) {
	ld := t.loads.of(id)
	switch name {
	case "DOMContentLoaded":
		ld.stage = max(ld.stage, stageDOM)
	case "load":
		ld.stage = max(ld.stage, stageLoad)
	}
}

// requested notes where a page wants to go. Addresses for other programs are dropped
// by the browser (8.3). mu is held.
func (t *Tab) requested(ev *cdpage.EventFrameRequestedNavigation) {
	if external(ev.URL) {
		t.past.add(event{dropped: true})
	}
}
