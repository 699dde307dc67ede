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

// TabOptions say what a tab may load and what happens to its downloads.
type TabOptions struct {
	// Allowed checks an address before it is loaded and after it was committed: nil, page.ErrScheme
	// or page.ErrHost. If it is nil, the list of schemes decides. It is called from any goroutine
	// and must return at once.
	Allowed func(url string) error
	// Refused returns page.ErrHost if the proxy denied a failed load, since the browser cannot tell
	// a denied tunnel from a server that is down. It is called like Allowed.
	Refused func(url string) error
	// Downloads is the directory for downloads; "" denies them. MayDownload is asked once for each
	// download, counts it, and returns false to cancel it; nil allows all. It is called from any
	// goroutine and must return at once.
	Downloads   string
	MayDownload func() bool
	// Offered receives each download once it is denied, saved or failed, whoever caused it; it may
	// be nil. It is called like MayDownload.
	Offered func(page.Download)
}

// A Tab is one page of a Browser. It implements [page.Tab] through its parts, each of which handles
// one aspect of the page.
type Tab struct {
	browser *Browser
	id      string // tab_1, …
	target  target.ID
	ctx     context.Context // ends when the tab or the browser is closed
	close   context.CancelFunc
	session *chromedp.Target // for commands: cdp.Call(ctx, t.session, …)
	options TabOptions
	fallen  atomic.Bool // it crashed
	work    background
	pixels  chan struct{} // holds one value while pictures, sizes and pointers must not mix; see steady

	aiming    // prepares nodes for input
	userInput // pointer, keys, and controls that are set directly

	mu      sync.Mutex // guards all below; held only briefly, never during a call
	gone    error      // page.ErrLost once the tab no longer answers
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

// newTab attaches to an existing target and applies the options. No locks may be held. life bounds
// the tab's life, limit the call.
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

// prepare enables what the tab needs and disables what the library enabled: with the DOM domain a
// busy page can fill a queue and block the tab.
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
	if _, err := cdp.Call(ctx, t.session, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, t.session, cdpage.SetInterceptFileChooserDialog,
		cdpage.SetInterceptFileChooserDialogParams{Enabled: true}); err != nil {
		return err
	}
	if err := t.measure(ctx, t.display.viewport); err != nil {
		return err
	}
	return t.frames.attachFrames(ctx)
}

// disableUnreadDomains disables the domains that the library enables and nothing here uses.
func (t *Tab) disableUnreadDomains(ctx context.Context, s cdp.Session) error {
	if err := command(ctx, s, css.Disable, cdp.Empty{}); err != nil {
		return err
	}
	return command(ctx, s, dom.Disable, cdp.Empty{})
}

// settle installs the isolated world in the present and future documents of a session. Existing
// contexts are reported again.
func (t *Tab) settle(ctx context.Context, s cdp.Session) error {
	if err := command(ctx, s, runtime.Disable, cdp.Empty{}); err != nil {
		return err
	}
	if err := command(ctx, s, runtime.Enable, cdp.Empty{}); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, s, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{
		Source: inpageSource(), WorldName: worldName, RunImmediately: new(true),
	})
	return err
}

// ended records that the page is gone: page.ErrGone for a crash, a detach or a closed target,
// page.ErrLost for the browser. It may be called repeatedly, also from the goroutine that reads the
// connection, and returns at once.
func (t *Tab) ended(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone == nil {
		t.gone = fmt.Errorf("%w: %w", page.ErrLost, cause)
	}
	t.endCalls(t.gone)
	t.wake()
}

// opened records a popup of the tab, for Happened. It may be called from any goroutine and returns
// at once.
func (t *Tab) opened(p page.Popup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.add(event{popup: &p})
}

// ID returns the tab's id: tab_1, tab_2, … in the order of opening.
func (t *Tab) ID() string { return t.id }

// Facts returns what the host knows without asking the page.
func (t *Tab) Facts() page.Facts {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := page.Facts{URL: t.loads.url, Host: hostOf(t.loads.url), Loader: string(t.loads.loader),
		Document: t.loads.document(), Crashed: t.gone != nil, Leaving: t.traffic.leaving()}
	if t.dialogs.open != nil {
		d := *t.dialogs.open
		f.Dialog = &d
	}
	return f
}

// Focus brings the tab to the front, where it is rendered.
func (t *Tab) Focus(ctx context.Context) error {
	return t.call(ctx, func(ctx context.Context) error {
		return command(ctx, t.session, cdpage.BringToFront, cdp.Empty{})
	})
}

// Close closes the tab. It may be called again.
func (t *Tab) Close(ctx context.Context) error { return t.browser.closeTab(ctx, t) }

// dialogOpen reports whether a dialog is known to be open.
func (t *Tab) dialogOpen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dialogs.open != nil
}

// wake makes everyone who waits in until check again. mu is held.
func (t *Tab) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

const blank = "about:blank"

// check checks an address of a main frame: http and https addresses that the caller allows, and the
// blank page.
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

// frameScheme reports whether a subframe may show an address with this scheme. The proxy decides
// about hosts.
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

// external reports whether an address is for an external program.
func external(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "about", "data", "blob", "javascript", "file", "chrome", "chrome-error", "chrome-extension",
		"devtools", "view-source", "ftp", "filesystem":
		return false
	}
	return true
}

// hostOf returns the host of an address, with the port if there is one, or "" if there is none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return cutText(u.Host, 255)
}

// originOf returns an origin in the form of nodes; an opaque one is "null".
func originOf(s string) string {
	if s == "" || s == "://" || s == "null" {
		return "null"
	}
	return cutText(s, 512)
}

// cutText returns s, or as much of its start as fits into n bytes, as valid UTF-8.
func cutText(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// sum returns a short digest of several strings.
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
