package chromium

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Navigate loads an address and returns when until (commit, dom or load) is reached.
// page.ErrScheme and page.ErrHost are told before anything is sent, or when a
// redirect or the committed document had to be refused.
func (t *Tab) Navigate(ctx context.Context, url, until string) (page.Navigation, error) {
	if err := t.check(url); err != nil {
		return page.Navigation{}, err
	}
	var n page.Navigation
	err := t.call(ctx, func(ctx context.Context) error {
		if err := t.undone(ctx); err != nil {
			return err
		}
		t.loosen(ctx)
		t.mu.Lock()
		mark, moves := t.past.last, t.loads.moves
		t.loads.asked = true
		t.mu.Unlock()
		defer func() {
			t.mu.Lock()
			t.loads.asked = false
			t.mu.Unlock()
		}()
		got, err := cdp.Call(ctx, t.session, cdpage.Navigate, cdpage.NavigateParams{URL: url})
		if err != nil {
			return err
		}
		if got.LoaderID == "" && got.ErrorText == "" {
			n, err = t.within(ctx, moves)
			return err
		}
		if n, err = t.arrive(ctx, got, until, mark); errors.Is(err, page.ErrHost) || errors.Is(err, page.ErrScheme) {
			_ = t.undone(ctx)
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		t.stop()
	}
	return n, err
}

// hungTime is how long a page may take to answer before it is left for another one.
const hungTime = time.Second

// loosen ends the script of a page that does not answer: a document of the same site
// would wait for it in the same process.
func (t *Tab) loosen(ctx context.Context) {
	t.mu.Lock()
	var w *world
	if f := t.frames.all[t.frames.main]; f != nil {
		w = f.world
	}
	waits := t.network.leaving() || t.dialogs.open != nil
	t.mu.Unlock()
	if w == nil || waits {
		return
	}
	limit, cancel := context.WithTimeout(ctx, hungTime)
	defer cancel()
	if err := w.call(limit, nil, "title"); err != nil && limit.Err() != nil && ctx.Err() == nil {
		_ = t.browser.wire.tell(ctx, t.session.SessionID, runtime.TerminateExecution.Method, cdp.Empty{}) // or the wait shows it
	}
}

// arrive waits for what Page.navigate began.
func (t *Tab) arrive(ctx context.Context, got cdpage.NavigateResult, until string, mark page.Mark) (page.Navigation, error) {
	if got.ErrorText != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		if refused := t.past.since(mark).Refused; len(refused) > 0 {
			return page.Navigation{}, refused[0]
		}
		if ld := t.loads.all[got.LoaderID]; ld != nil {
			if ld.blocked {
				return page.Navigation{}, page.ErrHost
			}
			if err := t.failure(ld, got.ErrorText); err != nil { // the event is on its way
				ld.denied = err
				return page.Navigation{}, err
			}
		}
		return page.Navigation{}, loadError(got.ErrorText)
	}
	return t.await(ctx, got.LoaderID, until)
}

// within waits until the move inside of the document, which the browser has made, is
// told of.
func (t *Tab) within(ctx context.Context, moves int) (page.Navigation, error) {
	var n page.Navigation
	err := t.until(ctx, func() bool {
		n = page.Navigation{Host: hostOf(t.loads.url), SameDocument: true}
		return t.loads.moves != moves
	})
	return n, err
}

// await waits until a load, or one that took its place, is as far as wanted.
func (t *Tab) await(ctx context.Context, id cdp.LoaderID, until string) (page.Navigation, error) {
	want := stageOf(until)
	var n page.Navigation
	var refused error
	err := t.until(ctx, func() bool {
		ld := t.loads.of(id)
		if refused = ld.denied; refused != nil {
			return true
		}
		if ld.stage == 0 {
			return false
		}
		now := t.loads.of(t.loads.loader) // another, when the page went on by itself
		refused = now.denied
		n = page.Navigation{Host: hostOf(t.loads.url), Status: now.status, Redirects: now.redirects}
		return refused != nil || now.stage >= want
	})
	if refused != nil {
		return page.Navigation{}, refused
	}
	return n, err
}

// History goes back, forward or reloads, and returns when until is reached.
// page.ErrNavigation says that there is nowhere to go.
func (t *Tab) History(ctx context.Context, direction, until string) (page.Navigation, error) {
	var n page.Navigation
	err := t.call(ctx, func(ctx context.Context) error {
		if err := t.undone(ctx); err != nil {
			return err
		}
		t.mu.Lock()
		before, moves, documents := t.loads.loader, t.loads.moves, t.loads.documents
		mark := t.past.last
		t.mu.Unlock()
		if err := t.goTo(ctx, direction); err != nil {
			return err
		}
		var within bool
		err := t.until(ctx, func() bool {
			within = t.loads.moves != moves && t.loads.documents == documents
			return within || t.loads.documents != documents || len(t.past.since(mark).Refused) > 0
		})
		if err != nil {
			return err
		}
		t.mu.Lock()
		id, refused := t.loads.loader, t.past.since(mark).Refused
		n = page.Navigation{Host: hostOf(t.loads.url), SameDocument: within}
		t.mu.Unlock()
		switch {
		case len(refused) > 0:
			return refused[0]
		case within:
			return nil
		}
		if id == before {
			return nil // from the cache of whole pages: it is there as it was
		}
		n, err = t.await(ctx, id, until)
		return err
	})
	if err != nil && ctx.Err() != nil {
		t.stop()
	}
	return n, err
}

func (t *Tab) goTo(ctx context.Context, direction string) error {
	if direction == "reload" {
		_, err := cdp.Call(ctx, t.session, cdpage.Reload, cdpage.ReloadParams{})
		return err
	}
	h, err := cdp.Call(ctx, t.session, cdpage.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		return err
	}
	i := int(h.CurrentIndex) + 1
	if direction == "back" {
		i -= 2
	}
	if i < 0 || i >= len(h.Entries) {
		return fmt.Errorf("%w: the history ends here", page.ErrNavigation)
	}
	if err := t.check(h.Entries[i].URL); err != nil {
		return err
	}
	_, err = cdp.Call(ctx, t.session, cdpage.NavigateToHistoryEntry, cdpage.NavigateToHistoryEntryParams{EntryID: h.Entries[i].ID})
	return err
}

// stop ends a load that nobody waits for any more.
func (t *Tab) stop() {
	t.spawn(func(ctx context.Context) {
		_, _ = cdp.Call(ctx, t.session, cdpage.StopLoading, cdp.Empty{})
	})
}

func stageOf(until string) int {
	switch until {
	case "commit":
		return stageCommit
	case "load":
		return stageLoad
	}
	return stageDOM
}

// loadError is the error of page for the browser's name of one.
func loadError(text string) error {
	err := page.ErrNavigation
	if unaccepted(text) {
		err = page.ErrCertificate
	}
	return fmt.Errorf("%w: %s", err, cutText(text, 200))
}

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
	blocked   bool  // the proxy answered in the server's place
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
// address may not be loaded. mu is held.
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
