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

// Navigate loads an address and returns once until (commit, dom or load) is reached. It returns
// page.ErrScheme or page.ErrHost before anything is sent, or when a redirect or the committed
// document was refused.
func (ls *loads) Navigate(ctx context.Context, url, until string) (page.Navigation, error) {
	if err := ls.tab.check(url); err != nil {
		return page.Navigation{}, err
	}
	var n page.Navigation
	err := ls.tab.call(ctx, func(ctx context.Context) error {
		if err := ls.undone(ctx); err != nil {
			return err
		}
		ls.terminateScript(ctx)
		ls.tab.mu.Lock()
		mark, moves := ls.tab.history.last, ls.moves
		ls.asked = true
		ls.tab.mu.Unlock()
		defer func() {
			ls.tab.mu.Lock()
			ls.asked = false
			ls.tab.mu.Unlock()
		}()
		got, err := cdp.Call(ctx, ls.tab.session, cdpage.Navigate, cdpage.NavigateParams{URL: url})
		if err != nil {
			return err
		}
		if got.LoaderID == "" && got.ErrorText == "" {
			n, err = ls.within(ctx, moves)
			return err
		}
		if n, err = ls.arrive(ctx, got, until, mark); errors.Is(err, page.ErrHost) || errors.Is(err, page.ErrScheme) {
			_ = ls.undone(ctx)
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		ls.stop()
	}
	return n, err
}

// hungTime is how long a page may take to answer before its script is terminated for a navigation.
const hungTime = time.Second

// terminateScript ends the script of a page that does not answer, since a document of the same site
// would wait for it in the same process.
func (ls *loads) terminateScript(ctx context.Context) {
	ls.tab.mu.Lock()
	var w *world
	if f := ls.tab.frames.all[ls.tab.frames.main]; f != nil {
		w = f.world
	}
	waits := ls.tab.traffic.leaving() || ls.tab.dialogs.open != nil
	ls.tab.mu.Unlock()
	if w == nil || waits {
		return
	}
	limit, cancel := context.WithTimeout(ctx, hungTime)
	defer cancel()
	if err := w.call(limit, nil, "title"); err != nil && limit.Err() != nil && ctx.Err() == nil {
		// The following wait shows whether it worked.
		_ = ls.tab.browser.wire.tell(ctx, ls.tab.session.SessionID, runtime.TerminateExecution.Method, cdp.Empty{})
	}
}

// arrive waits for what Page.navigate began.
func (ls *loads) arrive(ctx context.Context, got cdpage.NavigateResult, until string,
	mark page.Mark) (page.Navigation, error) {
	if got.ErrorText != "" {
		ls.tab.mu.Lock()
		defer ls.tab.mu.Unlock()
		if refused := ls.tab.history.since(mark).Refused; len(refused) > 0 {
			return page.Navigation{}, refused[0]
		}
		if ld := ls.all[got.LoaderID]; ld != nil {
			if ld.blocked {
				return page.Navigation{}, page.ErrHost
			}
			if err := ls.tab.failure(ld, got.ErrorText); err != nil { // the event is on its way
				ld.denied = err
				return page.Navigation{}, err
			}
		}
		return page.Navigation{}, loadError(got.ErrorText)
	}
	return ls.await(ctx, got.LoaderID, until)
}

// within waits for the event of a navigation inside the document, which the browser has already
// made.
func (ls *loads) within(ctx context.Context, moves int) (page.Navigation, error) {
	var n page.Navigation
	err := ls.tab.until(ctx, func() bool {
		n = page.Navigation{Host: hostOf(ls.url), SameDocument: true}
		return ls.moves != moves
	})
	return n, err
}

// await waits until a load, or one that replaced it, reaches the wanted stage.
func (ls *loads) await(ctx context.Context, id cdp.LoaderID, until string) (page.Navigation, error) {
	want := stageOf(until)
	var n page.Navigation
	var refused error
	err := ls.tab.until(ctx, func() bool {
		ld := ls.of(id)
		if refused = ld.denied; refused != nil {
			return true
		}
		if ld.stage == 0 {
			return false
		}
		now := ls.of(ls.loader) // another load, if the page navigated by itself
		refused = now.denied
		n = page.Navigation{Host: hostOf(ls.url), Status: now.status, Redirects: now.redirects}
		return refused != nil || now.stage >= want
	})
	if refused != nil {
		return page.Navigation{}, refused
	}
	return n, err
}

// History goes back, forward or reloads, and returns once until is reached. It returns
// page.ErrNavigation if there is nowhere to go.
func (ls *loads) History(ctx context.Context, direction, until string) (page.Navigation, error) {
	var n page.Navigation
	err := ls.tab.call(ctx, func(ctx context.Context) error {
		if err := ls.undone(ctx); err != nil {
			return err
		}
		ls.tab.mu.Lock()
		before, moves, documents := ls.loader, ls.moves, ls.documents
		mark := ls.tab.history.last
		ls.tab.mu.Unlock()
		if err := ls.goTo(ctx, direction); err != nil {
			return err
		}
		var within bool
		err := ls.tab.until(ctx, func() bool {
			within = ls.moves != moves && ls.documents == documents
			return within || ls.documents != documents || len(ls.tab.history.since(mark).Refused) > 0
		})
		if err != nil {
			return err
		}
		ls.tab.mu.Lock()
		id, refused := ls.loader, ls.tab.history.since(mark).Refused
		n = page.Navigation{Host: hostOf(ls.url), SameDocument: within}
		ls.tab.mu.Unlock()
		switch {
		case len(refused) > 0:
			return refused[0]
		case within:
			return nil
		}
		if id == before {
			return nil // from the back/forward cache: it is complete
		}
		n, err = ls.await(ctx, id, until)
		return err
	})
	if err != nil && ctx.Err() != nil {
		ls.stop()
	}
	return n, err
}

func (ls *loads) goTo(ctx context.Context, direction string) error {
	if direction == "reload" {
		return command(ctx, ls.tab.session, cdpage.Reload, cdpage.ReloadParams{})
	}
	h, err := cdp.Call(ctx, ls.tab.session, cdpage.GetNavigationHistory, cdp.Empty{})
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
	if err := ls.tab.check(h.Entries[i].URL); err != nil {
		return err
	}
	_, err = cdp.Call(ctx, ls.tab.session, cdpage.NavigateToHistoryEntry,
		cdpage.NavigateToHistoryEntryParams{EntryID: h.Entries[i].ID})
	return err
}

// stop ends a load that nobody waits for any more.
func (ls *loads) stop() {
	ls.tab.spawn(func(ctx context.Context) {
		_, _ = cdp.Call(ctx, ls.tab.session, cdpage.StopLoading, cdp.Empty{})
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

// loadError translates the browser's name of a network error to an error of package page.
func loadError(text string) error {
	err := page.ErrNavigation
	if unaccepted(text) {
		err = page.ErrCertificate
	}
	return fmt.Errorf("%w: %s", err, cutText(text, 200))
}

// Stages of loading a document, as until names them.
const (
	stageCommit = 1 + iota
	stageDOM
	stageLoad
)

// loadLimit bounds the loads that are remembered.
const loadLimit = 64

// A load is the state of loading one document. The tab's mu guards it.
type load struct {
	stage     int
	url       string
	asked     string // the latest hop of its redirects
	status    int
	redirects int
	blocked   bool  // the proxy answered instead of the server
	denied    error // page.ErrHost or page.ErrScheme if it was refused
}

// loads is the navigation state of the main frame. The tab's mu guards it.
type loads struct {
	tab       *Tab
	url       string
	loader    cdp.LoaderID
	documents int
	moves     int  // navigations within documents
	undoing   int  // loads being undone
	asked     bool // a load begun by Navigate is under way
	all       map[cdp.LoaderID]*load
	order     []cdp.LoaderID
}

func (ls *loads) init() { ls.all, ls.url = make(map[cdp.LoaderID]*load), blank }

func (ls *loads) document() string { return "doc_" + strconv.Itoa(ls.documents) }

// of returns the load with an id, creating it if it is new.
func (ls *loads) of(id cdp.LoaderID) *load {
	ld := ls.all[id]
	if ld == nil {
		ld = &load{}
		ls.all[id] = ld
		ls.order = append(ls.order, id)
		if len(ls.order) > loadLimit {
			delete(ls.all, ls.order[0])
			ls.order = ls.order[1:]
		}
	}
	return ld
}

// loaded records a document that the main frame committed, and undoes it if its address may not be
// loaded. mu is held.
func (ls *loads) loaded(f *cdp.Frame, early bool) {
	ld := ls.of(f.LoaderID)
	ld.stage = max(ld.stage, stageCommit)
	if early {
		ld.stage = stageLoad // earlier stages were not observed
	}
	ls.loader, ls.url = f.LoaderID, f.URL+f.URLFragment
	ls.documents++
	ls.tab.traffic.arrived()
	ls.tab.goneWithDocument()
	ls.tab.poke()
	if f.UnreachableURL != "" { // an error page of the browser
		ls.url = blank
		return
	}
	ld.url = ls.url
	err := ls.tab.check(ls.url)
	if err == nil {
		err = ld.denied
	}
	if err == nil && ld.blocked {
		err = page.ErrHost
	}
	if err == nil {
		if ls.url != blank {
			ls.tab.history.add(event{loader: string(f.LoaderID)})
		}
		return
	}
	ls.refuse(ld, err)
	ls.undo(ls.reset)
}

// refuse records an address that was not loaded, once for each load. mu is held.
func (ls *loads) refuse(ld *load, err error) {
	if ld.denied == nil {
		ls.tab.history.add(event{refused: err})
	}
	ld.denied = err
}

// undo undoes a load. No other load begins before that is done, since it would be undone as well.
// mu is held.
func (ls *loads) undo(how func(context.Context)) {
	ls.undoing++
	ls.tab.spawn(func(ctx context.Context) {
		how(ctx)
		ls.tab.mu.Lock()
		defer ls.tab.mu.Unlock()
		ls.undoing--
		ls.tab.wake()
	})
}

// undone waits until no load is being undone.
func (ls *loads) undone(ctx context.Context) error {
	return ls.tab.until(ctx, func() bool { return ls.undoing == 0 })
}

// reset replaces whatever is loaded by the blank page.
func (ls *loads) reset(ctx context.Context) {
	_, _ = cdp.Call(ctx, ls.tab.session, cdpage.Navigate, cdpage.NavigateParams{URL: blank})
}

// checkFrame blanks a subframe whose scheme is not allowed. mu is held.
func (ls *loads) checkFrame(f *cdp.Frame) {
	if frameScheme(f.URL) || f.ID == ls.tab.frames.main {
		return
	}
	ls.tab.history.add(event{refused: page.ErrScheme})
	ls.tab.spawn(func(ctx context.Context) {
		_, _ = cdp.Call(ctx, ls.tab.session, cdpage.Navigate, cdpage.NavigateParams{URL: blank, FrameID: f.ID})
	})
}

// moved records a change of address within the document. mu is held.
func (ls *loads) moved(url string) {
	ls.url = url
	ls.moves++
	ls.tab.history.add(event{moved: true})
	ls.tab.poke()
}

// staged records how far a document has loaded. mu is held.
func (ls *loads) staged(id cdp.LoaderID, name string) {
	ld := ls.of(id)
	switch name {
	case "DOMContentLoaded":
		ld.stage = max(ld.stage, stageDOM)
	case "load":
		ld.stage = max(ld.stage, stageLoad)
	}
}

// requested records a navigation that the page requested. The browser drops addresses for external
// programs. mu is held.
func (ls *loads) requested(ev *cdpage.EventFrameRequestedNavigation) {
	if external(ev.URL) {
		ls.tab.history.add(event{dropped: true})
	}
}
