package chromium

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdpnetwork "github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"

	"github.com/sluicehost/sluice/host/browser/page"
)

// errAnswer is an answer that is not what was asked for.
var errAnswer = errors.New("the browser answered something else")

// Ping asks the browser whether it answers. page.ErrHung is no answer before ctx
// ended, page.ErrLost no browser; any other error was its answer.
func (b *Browser) Ping(ctx context.Context) error {
	v, err := cdp.Call(ctx, b.cdp, browser.GetVersion, cdp.Empty{})
	if err == nil && v.Product == "" {
		err = errAnswer
	}
	return b.why(ctx, err)
}

// PingPage asks the active tab. page.ErrDialog says that it cannot answer because a
// dialog is open, page.ErrGone that it crashed, was detached, or there is none.
func (b *Browser) PingPage(ctx context.Context) error {
	t, err := b.current()
	if err != nil {
		return err
	}
	if t.dialogOpen() {
		return page.ErrDialog
	}
	got, err := cdp.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "1", ReturnByValue: new(true)})
	switch {
	case err != nil && t.dialogOpen():
		return page.ErrDialog
	case err != nil && t.fallen.Load():
		return page.ErrGone
	case err == nil && string(got.Result.Value) != "1":
		err = errAnswer
	}
	return b.why(ctx, err)
}

// Interrupt ends the script that runs in the active tab.
func (b *Browser) Interrupt(ctx context.Context) error {
	t, err := b.current()
	if err != nil {
		return err
	}
	_, err = cdp.Call(ctx, t.session, runtime.TerminateExecution, cdp.Empty{})
	return b.why(ctx, err)
}

// current is the active tab, if it is of use.
func (b *Browser) current() (*Tab, error) {
	if err := b.Fault(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.active == nil {
		return nil, page.ErrGone
	}
	return b.active, nil
}

// cookieLimit is how many cookies are handed over at most.
const cookieLimit = 1000

// Cookies are those that the browser would send to one of the hosts, which are
// lower-case names without ports. Path, Secure, HttpOnly and expiry are theirs to
// honour who uses them; those that have expired are not among them.
func (b *Browser) Cookies(ctx context.Context, hosts []string) ([]*http.Cookie, error) {
	all, err := cdp.Call(ctx, b.cdp, storage.GetCookies, storage.GetCookiesParams{})
	if err != nil {
		return nil, b.why(ctx, err)
	}
	var out []*http.Cookie
	for _, c := range all.Cookies {
		if len(out) < cookieLimit && sentTo(c.Domain, hosts) && !(c.Expires > 0 && expiry(c.Expires).Before(time.Now())) {
			out = append(out, cookie(c))
		}
	}
	return out, nil
}

// sentTo matches a cookie's domain: one with a dot in front goes to subdomains too.
func sentTo(domain string, hosts []string) bool {
	domain = strings.ToLower(domain)
	wide := strings.HasPrefix(domain, ".")
	for _, h := range hosts {
		if h == strings.TrimPrefix(domain, ".") || wide && strings.HasSuffix(h, domain) {
			return true
		}
	}
	return false
}

func expiry(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)) }

func cookie(c *cdpnetwork.Cookie) *http.Cookie {
	out := &http.Cookie{Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Secure: c.Secure, HttpOnly: c.HTTPOnly} // #nosec G124 -- the attributes are the cookie's own
	if !c.Session && c.Expires > 0 {
		out.Expires = expiry(c.Expires)
	}
	switch c.SameSite {
	case cdpnetwork.CookieSameSiteStrict:
		out.SameSite = http.SameSiteStrictMode
	case cdpnetwork.CookieSameSiteLax:
		out.SameSite = http.SameSiteLaxMode
	case cdpnetwork.CookieSameSiteNone:
		out.SameSite = http.SameSiteNoneMode
	}
	return out
}

// permissions are denied for all origins, always (B254). Without one of those that
// must be known the browser is not used; others a browser may not have.
var permissions = []struct {
	name string
	must bool
}{
	{"camera", true}, {"microphone", true}, {"geolocation", true}, {"notifications", true}, {"midi", true}, {midiSysex, true},
	{"clipboard-read", true}, {"clipboard-write", false}, {"local-fonts", false}, {"push", false}, {"background-sync", false},
	{"background-fetch", false}, {"periodic-background-sync", false}, {"persistent-storage", false}, {"payment-handler", false},
	{"idle-detection", false}, {"storage-access", false}, {"top-level-storage-access", false}, {"window-management", false},
	{"display-capture", false}, {"nfc", false}, {"screen-wake-lock", false}, {"system-wake-lock", false}, {"keyboard-lock", false},
	{"pointer-lock", false}, {"speaker-selection", false}, {"captured-surface-control", false}, {"local-network-access", false},
	{"local-network", false}, {"loopback-network", false}, {"accelerometer", false}, {"gyroscope", false}, {"magnetometer", false},
	{"ambient-light-sensor", false}, {"web-app-installation", false}, {"smart-card", false}, {"hand-tracking", false},
}

// midiSysex is midi with the right to send everything.
const midiSysex = "midi sysex"

func descriptor(name string) *browser.PermissionDescriptor {
	if name == midiSysex {
		return &browser.PermissionDescriptor{Name: "midi", Sysex: true}
	}
	return &browser.PermissionDescriptor{Name: name, UserVisibleOnly: name == "push"}
}

// forbid denies permissions, and downloads unless the tabs have a place for them
// (B252, B254).
func (b *Browser) forbid(ctx context.Context) error {
	for _, p := range permissions {
		params := browser.SetPermissionParams{Setting: browser.PermissionSettingDenied, Permission: descriptor(p.name)}
		if _, err := cdp.Call(ctx, b.cdp, browser.SetPermission, params); err != nil && p.must {
			return fmt.Errorf("%w: permission %s cannot be denied: %w", ErrUnsafe, p.name, b.why(ctx, err))
		}
		if err := ctx.Err(); err != nil {
			return b.why(ctx, err)
		}
	}
	return b.permitDownloads(ctx, true)
}

// permitDownloads lets files be saved where the tabs have a place for them, or none.
func (b *Browser) permitDownloads(ctx context.Context, may bool) error {
	p := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: new(true)}
	if dir := b.options.Tabs.Downloads; may && dir != "" {
		p.Behavior, p.DownloadPath = browser.SetDownloadBehaviorBehaviorAllowAndName, dir
	}
	_, err := cdp.Call(ctx, b.cdp, browser.SetDownloadBehavior, p)
	if err == nil {
		b.mu.Lock()
		b.saving = may
		b.mu.Unlock()
	}
	return b.why(ctx, err)
}
