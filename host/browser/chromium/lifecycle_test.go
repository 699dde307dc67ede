//go:build unix

package chromium_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A browser that is killed is lost at once, and no call waits for it.
func TestKilledBrowserIsLost(t *testing.T) {
	o := options(t)
	b := started(t, o)
	waiting := make(chan error, 1)
	go func() {
		_, err := b.Eval(context.Background(), `new Promise(() => {})`)
		waiting <- err
	}()
	if err := b.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := syscall.Kill(b.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.Lost()
	t.Log("noticed after ", time.Since(begun))
	if err := <-waiting; err == nil {
		t.Error("a call that was under way succeeded")
	}
	for name, call := range map[string]func(context.Context) error{
		"Ping": b.Ping, "PingPage": b.PingPage, "Interrupt": b.Interrupt, "Reset": b.Reset,
		"Cookies":  func(ctx context.Context) error { _, err := b.Cookies(ctx, []string{"site.test"}); return err },
		"Activate": func(ctx context.Context) error { return b.Activate(ctx, "tab_1") },
		"NewTab":   func(ctx context.Context) error { _, err := b.NewTab(ctx); return err },
	} {
		if err := call(context.Background()); !errors.Is(err, page.ErrLost) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
	if err := b.Fault(); !errors.Is(err, chromium.ErrExited) {
		t.Errorf("fault: %v", err)
	}
	if v, err := chromium.Probe(t.Context(), b); err != nil || v.Code != chromium.CodeUnreachable {
		t.Errorf("probe: %+v, %v", v, err)
	}
}

// A crashed renderer makes the active tab useless, and is noticed without a probe.
func TestKilledRendererIsNoticed(t *testing.T) {
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	b := started(t, o)
	load(t, b, "http://site.test/")
	begun := time.Now()
	for _, pid := range renderers(o) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	until(t, b, "the crash is noticed", func() bool { return b.Fault() != nil })
	t.Log("noticed after ", time.Since(begun))
	if err := b.Fault(); !errors.Is(err, page.ErrGone) {
		t.Error(err)
	}
	if v, err := chromium.Probe(t.Context(), b); err != nil || v.Code != chromium.CodePageStale {
		t.Errorf("probe: %+v, %v", v, err)
	}
	if err := b.Ping(t.Context()); err != nil {
		t.Errorf("the browser itself: %v", err)
	}
}

// A page that never yields is rescued by ending its script; one whose process stands
// still is not.
func TestProbeOfHungPages(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	b := started(t, o)
	load(t, b, "http://site.test/")
	hung := make(chan error, 1)
	go func() {
		_, err := b.Eval(context.Background(), `for (;;) {}`)
		hung <- err
	}()
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for { // until the loop has begun
		if err := b.PingPage(short); err != nil {
			break
		}
	}
	begun := time.Now()
	v, err := chromium.Probe(t.Context(), b)
	if err != nil || !v.OK || !v.Rescued {
		t.Errorf("a loop: %+v, %v", v, err)
	}
	<-hung
	t.Logf("a loop was ended after %v", time.Since(begun))

	for _, pid := range renderers(o) {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if v, err = chromium.Probe(t.Context(), b); err != nil || v.Code != chromium.CodeTimeout {
		t.Errorf("a process that stands still: %+v, %v", v, err)
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// An open dialog silences the page and is no loss.
func TestProbeBesideADialog(t *testing.T) {
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	b := started(t, o)
	load(t, b, "http://site.test/")
	tab := b.Tabs()[0]
	tab.OnDialog(page.DialogKeep, nil)
	eval(t, b, `setTimeout(() => { alert("well?") }), 1`)
	until(t, b, "the dialog is open", func() bool { return tab.Facts().Dialog != nil })
	v, err := chromium.Probe(t.Context(), b)
	if err != nil || !v.OK || !v.Dialog {
		t.Errorf("%+v, %v", v, err)
	}
	if err := b.PingPage(t.Context()); !errors.Is(err, page.ErrDialog) {
		t.Errorf("page: %v", err)
	}
	if err := tab.Answer(t.Context(), true, ""); err != nil {
		t.Fatal(err)
	}
	if v, err := chromium.Probe(t.Context(), b); err != nil || !v.OK || v.Dialog {
		t.Errorf("once it was answered: %+v, %v", v, err)
	}
}

// A browser that does not answer at all is killed after the time for a graceful end,
// and calls end with their contexts.
func TestHungBrowser(t *testing.T) {
	t.Parallel()
	b := started(t, options(t))
	if err := syscall.Kill(b.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Ping(ctx); !errors.Is(err, page.ErrHung) {
		t.Errorf("ping: %v", err)
	}
	if err := b.PingPage(ctx); !errors.Is(err, page.ErrHung) {
		t.Errorf("page: %v", err)
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := b.Close(context.Background()); err != nil {
		t.Errorf("again: %v", err)
	}
}

// A context that ends cuts the graceful end short.
func TestCloseObeysItsContext(t *testing.T) {
	t.Parallel()
	patient, hurried := started(t, options(t)), started(t, options(t))
	for _, b := range []*chromium.Browser{patient, hurried} {
		if err := syscall.Kill(b.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- patient.Close(t.Context()) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := hurried.Close(ctx); err != nil {
		t.Error(err)
	}
	if len(ended) > 0 {
		t.Error("it took as long as a graceful end")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What a page stored a moment before the end is there at the next start, also
// beside the lock of a browser that was killed.
func TestCookiesSurviveClose(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	b, err := chromium.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	load(t, b, "http://site.test/")
	eval(t, b, `document.cookie = "kept=yes; max-age=3600; path=/"; localStorage.setItem("kept", "yes")`)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !gone(b.Lost()) {
		t.Error("closed, and not lost")
	}
	for _, name := range []string{"SingletonLock", "SingletonCookie", "SingletonSocket"} {
		if err := os.Symlink("elsewhere-99999", o.Profile+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	b = started(t, o)
	cookies, err := b.Cookies(t.Context(), []string{"site.test"})
	if err != nil || len(cookies) != 1 || cookies[0].Name != "kept" || cookies[0].Value != "yes" ||
		cookies[0].Domain != "site.test" {
		t.Errorf("cookies: %v, %v", cookies, err)
	}
	if cookies, err = b.Cookies(t.Context(), []string{"other.test", "www.site.test"}); err != nil || len(cookies) != 0 {
		t.Errorf("cookies of others: %v, %v", cookies, err)
	}
	load(t, b, "http://site.test/")
	if got := eval(t, b, `localStorage.getItem("kept")`); got != `"yes"` {
		t.Errorf("storage: %s", got)
	}
}

func gone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
