package browser

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/patience"
)

// find returns the browser of this host. It searches until there is one.
func (h *Host) find(ctx context.Context) (chromium.Binary, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.binary.Path != "" {
		return h.binary, nil
	}
	if h.o.FirstUID != 0 {
		if err := chromium.Reach(profiles(h.o.Data)); err != nil {
			return chromium.Binary{}, err
		}
	}
	b, err := chromium.Find(ctx, h.o.Path, h.o.EgressMode == chromium.ModeNamespace)
	if err == nil {
		h.binary = b
	}
	return b, err
}

// start is the fleet.Starter of real browsers.
func (h *Host) start(ctx context.Context, o fleet.StartOptions) (page.Browser, error) {
	binary, err := h.find(ctx)
	if err != nil {
		return nil, h.startRefusal(err)
	}
	gate, ok := o.Gate.(*fence)
	if !ok {
		return nil, errors.New("start a browser: its gate is none of this host's")
	}
	var downloads string
	if o.Kind.Downloads {
		downloads = filepath.Join(o.Home, "downloads")
		if err = private(downloads, o.UID); err != nil {
			return nil, err
		}
	}
	b, err := chromium.Start(ctx, chromium.Options{
		Binary: binary, Profile: o.Profile, Home: o.Home, UID: o.UID, GID: o.UID,
		Proxy: gate.ProxyURL(), Wrap: gate.Wrap, Attach: gate.Attach, Namespace: gate.Mode() == chromium.ModeNamespace,
		AllowNoSandbox: h.o.AllowNoSandbox && o.Kind.Trusted, Window: o.Kind.Viewport, DenyPopups: o.Kind.DenyPopups,
		Tabs: chromium.TabOptions{Allowed: gate.allowed, Refused: gate.refused, Downloads: downloads,
			MayDownload: gate.mayDownload, Offered: gate.offered}, Log: h.o.Log,
	})
	if err != nil {
		return nil, h.startRefusal(err)
	}
	return &started{Browser: b, h: h, downloads: downloads}, nil
}

// startRefusal returns what a guest is told when no browser can be started. Paths are only logged.
func (h *Host) startRefusal(err error) error {
	r := &engine.Refusal{Verb: engine.Open}
	switch {
	case errors.Is(err, chromium.ErrMissing):
		r.Code, r.Message = "browser_missing", missing
	case errors.Is(err, chromium.ErrUnsafe):
		r.Code, r.Message = "browser_unsafe", "the browser of this host cannot be used safely; sluice doctor says why"
	case errors.Is(err, chromium.ErrSlow):
		r.Code, r.Message = "surface_start_failed", slow()
	default:
		return err
	}
	h.o.Log.Error("no browser was started", "error", err)
	return r
}

// slow explains why a browser does not answer.
func slow() string {
	if patience.Busy() != "" {
		return "the machine is busy: its browser did not answer in time; try again later"
	}
	return "the browser of this host does not answer; try again later, or see sluice doctor"
}

// missing says how to get a browser. Nothing is downloaded.
const missing = "this host has no browser: looked for browser.path, chromium, google-chrome and chromium-headless-shell. Install one: " +
	"apt-get install chromium (or chromium-headless-shell) on Debian and Ubuntu, dnf install chromium on Fedora, apk add chromium on Alpine; or set browser.path"

// A started browser can also be reset, and counts its undecodable events at the end.
type started struct {
	*chromium.Browser
	h         *Host
	once      sync.Once // guards the count
	downloads string    // where it saves files; "" if nowhere
}

var _ page.Browser = (*started)(nil)

// Close implements page.Browser.
func (b *started) Close(ctx context.Context) error {
	err := b.Browser.Close(ctx)
	b.once.Do(func() { b.h.undecodable(b.Undecodable()) })
	return err
}

// mostUndecodable bounds what one browser adds to the counter. A page does not control events, but
// it can influence their number.
const mostUndecodable = 1000

// undecodable counts the events of an ended browser that the library did not know. With the browser
// version that this host was tested with there are none.
func (h *Host) undecodable(events int64) {
	if events == 0 {
		return
	}
	h.o.Log.Warn("a browser sent events that are not known; it may be newer than this host", "events", events)
	for range min(events, mostUndecodable) {
		if h.o.Count != nil {
			h.o.Count("events_undecodable_total")
		}
	}
}

// Reset leaves one blank tab, and removes files that the run did not fetch.
func (b *started) Reset(ctx context.Context) error {
	if err := b.Browser.Reset(ctx); err != nil || b.downloads == "" {
		return err
	}
	home, err := os.OpenRoot(filepath.Dir(b.downloads))
	if err != nil {
		return err
	}
	defer home.Close()
	dir, err := home.OpenRoot(filepath.Base(b.downloads))
	if err != nil {
		return err
	}
	defer dir.Close()
	left, err := fs.ReadDir(dir.FS(), ".")
	for _, f := range left {
		err = errors.Join(err, dir.RemoveAll(f.Name()))
	}
	return err
}

// A fence is the gate of one browser together with the same policy for its tabs.
type fence struct {
	*chromium.Gate
	policy atomic.Pointer[egress.Policy] // nil: nothing is allowed
	saves  atomic.Pointer[func() bool]   // nil: nothing is saved
	told   atomic.Pointer[func(page.Download)]
}

// Downloads sets the functions that admit each offered file and receive its outcome.
func (f *fence) Downloads(may func() bool, told func(page.Download)) {
	f.saves.Store(&may)
	f.told.Store(&told)
}

func (f *fence) offered(d page.Download) {
	if told := f.told.Load(); told != nil {
		(*told)(d)
	}
}

func (f *fence) mayDownload() bool {
	may := f.saves.Load()
	return may != nil && (*may)()
}

// open is the fleet.GateOpener of real gates.
func (h *Host) open(context.Context, int) (fleet.Gate, error) {
	g, err := chromium.OpenGate(chromium.GateOptions{Table: h.o.Table, Resolver: h.o.Resolver, Mode: h.o.EgressMode})
	if err != nil {
		return nil, err
	}
	return &fence{Gate: g}, nil
}

// Lost implements fleet.Gate.
func (f *fence) Lost() <-chan struct{} { return f.Dead() }

// Bind puts the browser under the policy of a run.
func (f *fence) Bind(b chromium.GateBinding) {
	f.policy.Store(b.Policy)
	f.Gate.Bind(b)
}

// Unbind implements fleet.Gate.
func (f *fence) Unbind() {
	f.policy.Store(nil)
	f.saves.Store(nil)
	f.told.Store(nil)
	f.Gate.Unbind()
}

// allowed checks an address before it is loaded and after it was committed.
func (f *fence) allowed(address string) error { return allowed(f.policy.Load(), address) }

// allowed checks an address against a policy. The driver checks the schemes of addresses without a
// host.
func allowed(policy *egress.Policy, address string) error {
	if address == "about:blank" {
		return nil
	}
	scheme, host, port, err := place(address)
	if err != nil {
		return err
	}
	if policy == nil {
		return page.ErrHost
	}
	if _, step := policy.Match(scheme, host, port); step != "" {
		return page.ErrHost
	}
	return nil
}

// refused returns page.ErrHost if the gate last denied the address's host and port, even if the
// policy has the name, since its IP addresses may not be allowed.
func (f *fence) refused(address string) error {
	_, host, port, err := place(address)
	if err != nil || f.Verdict(host, port) == "" {
		return nil
	}
	return page.ErrHost
}

// place returns scheme, host and port of an address, or page.ErrScheme or page.ErrHost.
func place(address string) (scheme, host string, port uint16, err error) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return "", "", 0, page.ErrHost
	}
	scheme = strings.ToLower(u.Scheme)
	if scheme != "http" && scheme != "https" {
		return "", "", 0, page.ErrScheme
	}
	host, number := strings.TrimSuffix(u.Host, ":"), uint64(443)
	if scheme == "http" {
		number = 80
	}
	if p := u.Port(); p != "" {
		host = strings.TrimSuffix(u.Host, ":"+p)
		if number, err = strconv.ParseUint(p, 10, 16); err != nil {
			return "", "", 0, page.ErrHost
		}
	}
	if host, err = egress.CanonicalHost(host); err != nil {
		return "", "", 0, page.ErrHost
	}
	return scheme, host, uint16(number), nil
}
