package chromium

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// TabOptions say what a tab may load and what becomes of what it offers.
type TabOptions struct {
	// Allowed judges an address before it is loaded and after it was committed: nil,
	// page.ErrScheme or page.ErrHost. nil allows what the scheme list does. It is
	// called from any goroutine and returns at once.
	Allowed func(url string) error
	// Refused says why the proxy did not let a load through that failed: nil, or
	// page.ErrHost. What a browser sees of a tunnel that was denied is no different
	// from a server that is down. It is called as Allowed is.
	Refused func(url string) error
	// Downloads is the directory that downloads go to; "" denies them.
	// MayDownload is asked for each one and counts it: false ends it. nil allows all.
	// It is called from any goroutine and returns at once.
	Downloads   string
	MayDownload func() bool
	// Offered is told of each file once it was denied, was saved or has failed, whoever
	// worked the page; nil is told nothing. It is called as MayDownload is.
	Offered func(page.Download)
}

// A Tab is one page of a Browser. It is a [page.Tab], by what it is made of: each part
// keeps one thing of the page and does what page.Tab says of it.
type Tab struct {
	browser *Browser
	id      string // tab_1, …
	target  target.ID
	ctx     context.Context // ends when the tab is closed, or the browser
	close   context.CancelFunc
	session *chromedp.Target // commands go here: cdp.Call(ctx, t.session, …)
	options TabOptions
	fallen  atomic.Bool // it crashed
	work    background
	pixels  chan struct{} // holds one while pictures, sizes and pointers may not mix; see steady

	aiming    // makes a node ready for input
	userInput // the pointer, the keys, and what is set without them

	mu      sync.Mutex // guards all below; held for moments only, never across a call
	gone    error      // page.ErrLost once nothing will answer
	changed chan struct{}
	calls   map[*pendingCall]struct{}
	frames  frames
	history history
	loads
	dialogs
	console
	traffic
	display
	looks
}

var _ page.Tab = (*Tab)(nil)

// newTab attaches to a target that exists and makes it obey the options. It is
// called without locks held. life ends the tab's life, not the call; the call is
// bounded by limit.
func newTab(life, limit context.Context, b *Browser, id string, of target.ID) (*Tab, error) {
	ctx, cancel := chromedp.NewContext(life, chromedp.WithTargetID(of))
	t := &Tab{
		browser: b, id: id, target: of, ctx: ctx, options: b.options.Tabs,
		changed: make(chan struct{}), calls: make(map[*pendingCall]struct{}),
		pixels: make(chan struct{}, 1),
	}
	t.close = func() {
		cancel()
		t.work.wait()
	}
	t.aiming.tab, t.userInput.tab, t.frames.tab, t.loads.tab, t.dialogs.tab = t, t, t, t, t
	t.console.tab, t.traffic.tab, t.display.tab, t.looks.tab = t, t, t, t
	t.frames.init()
	t.loads.init()
	t.traffic.init()
	t.display.viewport = b.options.Window
	stop := context.AfterFunc(limit, cancel)
	err := chromedp.Do(ctx)
	if err == nil {
		t.session = chromedp.FromContext(ctx).Target
		err = t.prepare(ctx)
	}
	if !stop() && err == nil {
		err = limit.Err()
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("attach to a tab: %w", err)
	}
	return t, nil
}

// prepare turns on what the tab needs, and off what the library turned on: with the
// DOM domain a busy page can fill a queue and block the tab.
func (t *Tab) prepare(ctx context.Context) error {
	if err := t.disableUnreadDomains(ctx, t.session); err != nil {
		return err
	}
	if err := chromedp.Listen(ctx, func(ev any) { t.onEvent(t.session, ev) }); err != nil {
		return err
	}
	if err := chromedp.ListenBrowser(ctx, t.onBrowserEvent); err != nil {
		return err
	}
	found, err := cdp.Call(ctx, t.session, cdpage.GetFrameTree, cdp.Empty{})
	if err != nil {
		return err
	}
	t.frames.found(t.session, found.FrameTree)
	if err := t.settle(ctx, t.session); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, t.session, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, t.session, cdpage.SetInterceptFileChooserDialog, cdpage.SetInterceptFileChooserDialogParams{Enabled: true}); err != nil {
		return err
	}
	if err := t.measure(ctx, t.display.viewport); err != nil {
		return err
	}
	return t.frames.attachFrames(ctx)
}

// disableUnreadDomains turns off the domains that the library enables and nobody here reads.
func (t *Tab) disableUnreadDomains(ctx context.Context, s cdp.Session) error {
	if err := command(ctx, s, css.Disable, cdp.Empty{}); err != nil {
		return err
	}
	return command(ctx, s, dom.Disable, cdp.Empty{})
}

// settle puts the isolated world into the documents of a session, those that are
// there and those to come. The contexts that are there are told of once more.
func (t *Tab) settle(ctx context.Context, s cdp.Session) error {
	if err := command(ctx, s, runtime.Disable, cdp.Empty{}); err != nil {
		return err
	}
	if err := command(ctx, s, runtime.Enable, cdp.Empty{}); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, s, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{
		Source: inpageSource, WorldName: worldName, RunImmediately: new(true),
	})
	return err
}

// ended tells the tab that its page is gone: page.ErrGone for a crash, a detach or a
// closed target, page.ErrLost for the browser. It may be called more than once, also
// from the goroutine that reads the connection, and returns at once.
func (t *Tab) ended(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone == nil {
		t.gone = fmt.Errorf("%w: %w", page.ErrLost, cause)
	}
	t.endCalls(t.gone)
	t.wake()
}

// opened tells the tab that it opened another one, as Happened reports it. It is
// called from any goroutine and returns at once.
func (t *Tab) opened(p page.Popup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.add(event{popup: &p})
}

// ID is tab_1, tab_2, … in the order of their opening.
func (t *Tab) ID() string { return t.id }

// Facts is what the host knows without asking the page.
func (t *Tab) Facts() page.Facts {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := page.Facts{URL: t.loads.url, Host: hostOf(t.loads.url), Loader: string(t.loads.loader), Document: t.loads.document(), Crashed: t.gone != nil, Leaving: t.traffic.leaving()}
	if t.dialogs.open != nil {
		d := *t.dialogs.open
		f.Dialog = &d
	}
	return f
}

// Focus brings the tab to the front, where it gets frames.
func (t *Tab) Focus(ctx context.Context) error {
	return t.call(ctx, func(ctx context.Context) error {
		return command(ctx, t.session, cdpage.BringToFront, cdp.Empty{})
	})
}

// Close closes the tab. It may be repeated.
func (t *Tab) Close(ctx context.Context) error { return t.browser.closeTab(ctx, t) }

// dialogOpen reports whether a dialog is known to be open.
func (t *Tab) dialogOpen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dialogs.open != nil
}

// wake tells those who wait for something of the tab to look again. mu is held.
func (t *Tab) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

const blank = "about:blank"

// check judges an address of a main frame: http and https that the caller
// allows, and the blank page.
func (t *Tab) check(address string) error {
	if address == blank || address == "" || strings.HasPrefix(address, blank+"#") {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || (!strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https")) || u.Host == "" {
		return page.ErrScheme
	}
	if t.options.Allowed == nil {
		return nil
	}
	return t.options.Allowed(address)
}

// frameScheme reports whether a frame inside of a page may show an address of this
// kind; which hosts it reaches is the proxy's to say.
func frameScheme(address string) bool {
	scheme, _, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "data", "blob", "":
		return true
	case "about":
		return strings.HasPrefix(address, blank) || strings.HasPrefix(address, "about:srcdoc")
	case "chrome-error":
		return true
	}
	return false
}

// external reports whether an address is for another program.
func external(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "about", "data", "blob", "javascript", "file", "chrome", "chrome-error", "chrome-extension", "devtools", "view-source", "ftp", "filesystem":
		return false
	}
	return true
}

// hostOf is the host of an address with the port if there is one, "" for none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return cutText(u.Host, 255)
}

// originOf is an origin as nodes have it; what has none is opaque.
func originOf(s string) string {
	if s == "" || s == "://" || s == "null" {
		return "null"
	}
	return cutText(s, 512)
}

// cutText is s, or as much of its start as fits n bytes, as valid UTF-8.
func cutText(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// sum is a short name for several strings.
func sum(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		for i := range n {
			n[i] = byte(len(p) >> (8 * i))
		}
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
