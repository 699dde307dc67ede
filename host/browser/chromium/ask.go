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

// permissions are denied for all origins, always. Without one of those that
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

// forbid denies permissions, and downloads unless the tabs have a place for them.
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

// The bounds of a probe.
const (
	probeLimit     = 5 * time.Second
	pingLimit      = time.Second
	pingPageLimit  = 1500 * time.Millisecond
	interruptLimit = 250 * time.Millisecond
)

// Why a surface is not to be used, or lost.
const (
	CodeNotReady     = "browser_surface_not_ready"
	CodeUnreachable  = "browser_surface_cdp_unreachable"
	CodeDisconnected = "browser_surface_cdp_disconnected"
	CodePageStale    = "browser_surface_page_stale"
	CodeTimeout      = "browser_surface_probe_timeout"
)

// A Verdict is what a probe found out. Code and Detail, at most 200 bytes without
// addresses, paths or pids, are empty when it is OK.
type Verdict struct {
	OK     bool
	Code   string
	Detail string
	// Rescued: the page came back after its script was ended.
	Rescued bool
	// Dialog: the page could not be asked, because a dialog is open.
	Dialog bool
}

// A Probed can be asked whether it lives; a [page.Browser] can.
type Probed interface {
	Fault() error
	Ping(ctx context.Context) error
	PingPage(ctx context.Context) error
	Interrupt(ctx context.Context) error
}

// Probe asks a browser and its active page whether they answer. What is known
// to be wrong, and an answer that is an error, count at once; an answer that does not
// come must fail to come twice in a row, and once more after the page's script was
// ended. It takes at most 5 s. The error is that of ctx, when it ended first: then
// nothing is known.
func Probe(ctx context.Context, b Probed) (v Verdict, err error) {
	defer func() {
		if p := recover(); p != nil { // a probe that breaks is no proof of life
			v, err = Verdict{Code: CodeUnreachable, Detail: "the probe broke"}, nil
		}
	}()
	within, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	fault, dialog := ask(within, b)
	if errors.Is(fault, page.ErrHung) {
		fault, dialog = ask(within, b)
	}
	rescued := false
	if errors.Is(fault, page.ErrHung) {
		_ = limited(within, interruptLimit, b.Interrupt)
		fault, dialog = ask(within, b)
		rescued = fault == nil
	}
	if ctx.Err() != nil {
		return Verdict{}, ctx.Err()
	}
	if fault != nil {
		return judge(fault), nil
	}
	return Verdict{OK: true, Rescued: rescued, Dialog: dialog}, nil
}

// ask is one probe of both levels. While a dialog is open only the browser counts.
func ask(ctx context.Context, b Probed) (fault error, dialog bool) {
	if fault = b.Fault(); fault != nil {
		return fault, false
	}
	if fault = limited(ctx, pingLimit, b.Ping); fault != nil {
		return fault, false
	}
	fault = limited(ctx, pingPageLimit, b.PingPage)
	if errors.Is(fault, page.ErrDialog) {
		return nil, true
	}
	return fault, false
}

// limited asks under a limit. No answer is page.ErrHung, whatever the error says.
func limited(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(ctx)
	if err == nil || errors.Is(err, page.ErrLost) || errors.Is(err, page.ErrGone) || errors.Is(err, page.ErrDialog) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w in %v", page.ErrHung, limit)
	}
	return err
}

// judge names what is wrong.
func judge(fault error) Verdict {
	switch {
	case errors.Is(fault, ErrExited):
		return Verdict{Code: CodeUnreachable, Detail: "the browser's process ended"}
	case errors.Is(fault, page.ErrLost):
		return Verdict{Code: CodeDisconnected, Detail: "the connection to the browser ended"}
	case errors.Is(fault, page.ErrGone):
		return Verdict{Code: CodePageStale, Detail: "the page crashed, was detached or closed"}
	case errors.Is(fault, page.ErrHung):
		return Verdict{Code: CodeTimeout, Detail: "the page did not answer, also after its script was ended"}
	}
	return Verdict{Code: CodeDisconnected, Detail: "the browser answered with an error"}
}
