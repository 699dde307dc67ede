package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/tests/e2e/served"
)

// chromium is one browser for all tests; each tab has cookies of its own.
var chromium struct {
	once  sync.Once
	ctx   context.Context
	close func()
	err   error
}

// elsewhere is a name that the browser resolves to this machine, as in a rebinding
// attack.
const elsewhere = "rebound.example"

func startChromium() {
	chromium.close = func() {}
	path := os.Getenv("SLUICE_CHROMIUM")
	if path == "" {
		if path, chromium.err = exec.LookPath("chromium"); chromium.err != nil {
			chromium.err = fmt.Errorf("these tests need Chromium: install it (.ci/run does), or name it in SLUICE_CHROMIUM: %w",
				chromium.err)
			return
		}
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", "MAP "+elsewhere+" 127.0.0.1, MAP pwned.invalid ~NOTFOUND"))
	// As in host/browser/chromium, a window keeps no renderer ready for its address bar.
	options = append(options, chromedp.Flag("disable-features",
		"Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup"), chromedp.DisableGPU)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses to work for root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	chromium.ctx = ctx
	chromium.close = func() {
		_ = chromedp.Cancel(ctx) // waits for its end
		cancel()
		stop()
	}
	chromium.err = chromedp.Do(ctx)
}

// A tab is a page of the browser, and the complaints that it made.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // of the service

	mu       sync.Mutex // guards all below
	dialogs  []string
	troubles []string // exceptions, blocked content
	foreign  []string // requests to other hosts
	expected bool     // dialogs are accepted and not noted
}

// newTab opens a tab with cookies of its own.
func newTab(t *testing.T, base string) *tab {
	t.Helper()
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	return listening(t, ctx, base)
}

// beside opens another tab of the same session.
func (b *tab) beside() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	return listening(b.t, ctx, b.base)
}

func listening(t *testing.T, ctx context.Context, base string) *tab {
	t.Helper()
	b := &tab{t: t, base: base}
	if err := chromedp.Do(ctx); err != nil { // opens it
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.heard); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	return b
}

func (b *tab) heard(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *page.EventJavascriptDialogOpening:
		if !b.expected {
			b.dialogs = append(b.dialogs, ev.Message)
		}
		go chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
	case *runtime.EventExceptionThrown:
		b.troubles = append(b.troubles,
			fmt.Sprintf("exception: %s %+v", ev.ExceptionDetails.Text, ev.ExceptionDetails.Exception))
	case *cdplog.EventEntryAdded:
		if ev.Entry.Source == "security" || strings.Contains(ev.Entry.Text, "Content Security Policy") ||
			strings.Contains(ev.Entry.Text, "TrustedHTML") {
			b.troubles = append(b.troubles, ev.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u := ev.Request.URL; !strings.HasPrefix(u, b.base+"/") && u != "about:blank" &&
			!strings.HasPrefix(u, "data:image/") && !strings.HasPrefix(u, viewer) {
			b.foreign = append(b.foreign, u)
		}
	}
}

// viewer is what the browser shows PDFs with.
const viewer = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/"

// clean fails the test for anything that a page of ours must never do.
func (b *tab) clean(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.dialogs)+len(b.troubles)+len(b.foreign) > 0 {
		b.t.Errorf("%s: dialogs %q, troubles %q, requests elsewhere %q", where, b.dialogs, b.troubles, b.foreign)
	}
	b.dialogs, b.troubles, b.foreign = nil, nil, nil
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.shot(atFailure)
		text, _ := chromedp.Run(context.WithoutCancel(b.ctx),
			chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 1500)`))
		b.t.Fatalf("%v, on %s", err, text)
	}
}

// open goes to a page of the service.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// eval returns the value of an expression, awaited.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.300s: %v", expression[max(0, len(expression)-300):], err)
	}
	return v
}

// until waits for an expression to become true. While a page is being replaced it
// counts as not yet true.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	look := time.NewTicker(40 * time.Millisecond)
	defer look.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			b.do(func(context.Context, *chromedp.Target) (chromedp.Void, error) {
				return chromedp.Void{}, fmt.Errorf("never: %s (%v)", expression, err)
			})
		}
	}
}

// sees waits for a text on the page.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.body && document.body.innerText.includes(%q)`, text))
}

// click presses the first matching element, even inside of closed details. An element
// that the page replaces before the press is looked up again.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)`, selector) + ` !== null`)
	eval[any](b, fmt.Sprintf(
		`(() => { for (let e = document.querySelector(%q); e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true })()`, selector))
	press := []chromedp.Action[chromedp.Void]{chromedp.ScrollIntoView(chromedp.CSS(selector)),
		chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)}
	for range 3 {
		b.atRest(selector)
		if err := chromedp.Do(b.ctx, press...); err == nil {
			return
		} else if !strings.Contains(err.Error(), "Could not find node with given id") {
			break
		}
	}
	b.do(press...)
}

// atRest waits, for a while, until an element stays where it is: what is above it may still be
// on its way, and a press would meet its neighbour.
func (b *tab) atRest(selector string) {
	script := fmt.Sprintf(`new Promise((done) => {
		const place = () => JSON.stringify(document.querySelector(%q)?.getBoundingClientRect());
		const was = place();
		setTimeout(() => done(was === place()), 50);
	})`, selector)
	for range 20 {
		if still, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise)); still &&
			err == nil {
			return
		}
	}
}

// shot saves a picture of the page, see picture.
func (b *tab) shot(name string) {
	b.t.Helper()
	b.picture(name, chromedp.FullScreenshot(100))
}

// part saves a picture of one element. docs/live-view.png and docs/live-view-phone.png
// were made with it.
func (b *tab) part(selector, name string) {
	b.t.Helper()
	b.picture(name, chromedp.Screenshot(chromedp.CSS(selector)))
}

// atFailure names the picture of a page where a test fails.
const atFailure = "failed"

// picture saves a picture in screenshots, for people: nothing looks at it. It costs seconds of processor time a test, so
// it takes one only where SLUICE_SCREENSHOTS is set, or of a page that fails a test.
func (b *tab) picture(name string, take chromedp.Action[[]byte]) {
	b.t.Helper()
	if os.Getenv("SLUICE_SCREENSHOTS") == "" && name != atFailure {
		return
	}
	if err := os.MkdirAll("screenshots", 0o755); err != nil {
		b.t.Fatal(err)
	}
	png, err := chromedp.Run(context.WithoutCancel(b.ctx), take)
	if err != nil {
		b.t.Logf("no picture of %s: %v", name, err)
		return
	}
	path, err := filepath.Abs(filepath.Join("screenshots", strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png"))
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Log("picture: ", path)
}

// media switches pages to light or dark.
func (b *tab) media(scheme string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}},
	}); err != nil {
		b.t.Fatal(err)
	}
}

// signIn opens a login link: with plain, the one that has the address.
func signIn(t *testing.T, h *served.Host, plain bool) *tab {
	t.Helper()
	link, err := h.Server.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url := link.URL
	if plain {
		url = link.PlainURL
	}
	base, _, _ := strings.Cut(url, "/ui/")
	b := newTab(t, base)
	b.do(chromedp.Navigate(url))
	b.until(`location.pathname === "/ui/" && document.readyState === "complete"`)
	return b
}

// frameURLs returns the addresses of the documents in the frames of a page.
func frameURLs(b *tab) (urls []string) {
	b.t.Helper()
	tree, err := chromedp.Call(b.ctx, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	var walk func(*page.FrameTree)
	walk = func(f *page.FrameTree) {
		if f.Frame.UnreachableURL == "" {
			urls = append(urls, f.Frame.URL)
		}
		for _, c := range f.ChildFrames {
			walk(c)
		}
	}
	for _, c := range tree.FrameTree.ChildFrames {
		walk(c)
	}
	return urls
}
