package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/fleet"
	liveview "github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// Browsers lends browsers to runs. Its methods may be called from any goroutine.
type Browsers interface {
	// Facts describes the browsers of this host, or why there are none.
	Facts(ctx context.Context) browser.Facts
	// NewSession makes the browser binding of one run, which closes it. It starts no browser.
	NewSession(o browser.SessionOptions) (Browser, error)
	// Forget removes the browser profiles of a connection that has no run.
	Forget(ctx context.Context, id store.ConnectionID) error
	Close(ctx context.Context) error
}

// A Browser is the browser binding of one run.
type Browser interface {
	binding.Binding
	binding.Reporter
	binding.Screen
	binding.Sealer
	binding.Pauser
	binding.Spender
}

// TraceWanted reports whether the environment asks for traces of browser actions in every run.
func TraceWanted() bool { return os.Getenv("SLUICE_TRACE") == "1" || os.Getenv("PDPP_TRACE") == "1" }

// NoBrowser returns why this host lends no browsers, "" if it does.
func (h *bindings) NoBrowser(ctx context.Context) string {
	if h.Options.Browsers == nil {
		return "this host was opened without browsers"
	}
	return h.Options.Browsers.Facts(ctx).Problem
}

// browserInfo returns what the system page shows about browsers.
func (h *bindings) browserInfo(ctx context.Context) host.BrowserInfo {
	if h.Options.Browsers == nil {
		return host.BrowserInfo{Problem: h.NoBrowser(ctx)}
	}
	f := h.Options.Browsers.Facts(ctx)
	return host.BrowserInfo{Product: f.Browser, Problem: cmp.Or(f.Problem, f.Slow), Egress: f.Egress, UID: f.UID,
		Max: f.Max, Live: f.Live}
}

// browsers adds the findings about browsers.
func (c *checkup) browsers(f browser.Facts) {
	if f.Problem != "" {
		c.add("browser", StateWeak,
			"install chromium or chrome-headless-shell, or name one with SLUICE_BROWSER; connectors that need none run without",
			"none: %s", f.Problem)
		return
	}
	switch remedy := untried(f); {
	case f.Slow != "":
		c.add("browser", StateWeak,
			"run sluice doctor again when less is going on, or name another browser with SLUICE_BROWSER", "slow: %s", f.Slow)
	case remedy != "":
		c.add("browser", StateWeak, remedy, "%s, %d at once; tried with %s", f.Browser, f.Max, triedText)
	default:
		c.add("browser", StateOK, "", "%s, %d at once; tried with %s", f.Browser, f.Max, triedText)
	}
	if f.Egress == "namespace" {
		c.add("egress", StateOK, "", "namespace: a browser has no network but the host's proxy")
	} else {
		c.add("egress", StateWeak, "run sluice as root, which lets it make network namespaces",
			"%s: browsers are only told to use the host's proxy", f.Egress)
	}
	switch {
	case f.NoSandbox:
		c.add("browser_sandbox", StateBad, "take browser.allow_no_sandbox out of the configuration",
			"browsers may run without their sandbox")
	default:
		c.add("browser_sandbox", StateOK, "", "browsers run in their own sandbox, or not at all")
	}
	if f.UID == "own" {
		c.add("browser_uid", StateOK, "", "each browser has a uid of its own")
	} else {
		c.add("browser_uid", StateWeak, "run sluice as root with browser.uid_range", "browsers run as the user of the host")
	}
	c.add("browser_memory", StateWeak,
		"bound the host and its browsers together, for example with MemoryMax= of a systemd unit",
		"browsers have no memory limit of their own")
}

// The major versions of Chromium that this release was tested with. Newer ones are expected to work.
const (
	triedFirst, triedLast = 148, 156
	triedText             = "Chromium 148 to 156"
)

// untried returns the remedy for a browser that is older than all tested versions, "" for others.
func untried(f browser.Facts) string {
	_, version, _ := strings.Cut(f.Browser, " ")
	for _, word := range strings.Fields(version) {
		number, _, _ := strings.Cut(word, ".")
		if major, err := strconv.Atoi(number); err == nil && major < triedFirst {
			return "update the browser: this one is older than those that were tried"
		}
	}
	return ""
}

// absent returns the bindings that this host cannot lend, by name, with the reason.
func (h *bindings) absent(ctx context.Context) map[string]string {
	out := map[string]string{}
	if why := h.NoBrowser(ctx); why != "" {
		out[abi.BindingBrowser] = why
	}
	return out
}

// absentFor is absent for a run of one connector. It looks only for requested bindings, since that takes a
// moment. A replay gets no browser.
func (h *bindings) absentFor(ctx context.Context, m *abi.Manifest, replay bool) map[string]string {
	switch _, asked := m.Bindings[abi.BindingBrowser]; {
	case !asked:
		return nil
	case replay:
		return map[string]string{abi.BindingBrowser: "a replay has no pages to show"}
	}
	return h.absent(ctx)
}

// browser returns the browser of one run, nil if it has none or its module does not use it. file opens one of the
// run's files.
func (h *bindings) browser(q RunRequest, plan *run.Plan, session binding.Binding,
	file func(path string) (io.ReadCloser, error)) (Browser, error) {
	if plan.PartialStart().Bindings.Browser == nil || !q.Connector.Module.Uses(abi.ModuleBrowser) {
		return nil, nil
	}
	p, err := guestPolicy(q.Connector.Manifest, plan.Connection)
	if err != nil {
		return nil, err
	}
	c := plan.Connection
	l := browser.SessionOptions{
		Connection: string(c.ID), Name: cmp.Or(c.DisplayName, string(c.ID)), ProfileName: c.ProfileName,
		Connector: q.Connector.Manifest.Name(), Request: *q.Connector.Manifest.Bindings[abi.BindingBrowser].Browser,
		Policy: p, Untrusted: untrusted(q.Connector.Connector), Scheduled: q.Trigger == "scheduled",
		Interactive: plan.Interactive, Trace: q.Trace || TraceWanted(),
	}
	l.File = func(_ context.Context, path string) (io.ReadCloser, error) { return file(path) }
	if s, ok := session.(ownSession); ok {
		l.Cookies, l.Passed = s.TakeCookies, s.Received()
		l.Stream = func(_ context.Context, handle uint32) (io.ReadCloser, error) { return s.Take(handle) }
	}
	b, err := h.Options.Browsers.NewSession(l)
	if err != nil {
		return nil, fmt.Errorf("lend a browser to %s: %w", plan.Connection.ID, err)
	}
	return b, nil
}

// untrusted reports whether a connector is treated as untrusted: it is neither bundled with Sluice nor signed by
// a publisher whose key the owner pinned.
func untrusted(c store.Connector) bool { return !c.Bundled && c.Signer == nil }

// closeUnused closes bindings that no run uses. Nil ones are ignored.
func closeUnused(lent ...binding.Binding) error {
	var errs []error
	for _, b := range lent {
		if b != nil {
			errs = append(errs, b.Close(context.Background()))
		}
	}
	return errors.Join(errs...)
}

// forgetProfiles removes the browser profiles of a connection.
func (h *bindings) forgetProfiles(ctx context.Context, id store.ConnectionID) error {
	if h.Options.Browsers == nil {
		return nil
	}
	if err := h.Options.Browsers.Forget(ctx, id); err != nil {
		return fmt.Errorf("remove browser profiles of %s: %w", id, err)
	}
	return nil
}

// browsers lends the browsers of this machine. Cleaning up after an earlier host and looking for a browser
// happen at the first use, since most commands need none.
type browsers struct {
	o     browser.Options
	views *liveview.Views

	mu   sync.Mutex // guards what follows
	host *browser.Host
	over bool
}

var _ Browsers = (*browsers)(nil)

// newBrowsers returns browsers that keep profiles in the data directory, or in the scratch space of a host
// without one.
func newBrowsers(h *directory) *browsers {
	o := h.Options.Browser
	if o.Data = h.DataDir; o.Data == "" {
		o.Data = h.temp
	}
	if o.Path == "" {
		o.Path = os.Getenv("SLUICE_BROWSER")
	}
	if o.Watchdog == 0 {
		o.Watchdog = fleet.WatchdogLimit(os.Getenv("SLUICE_SESSION_ESTABLISH_WATCHDOG_MS"))
	}
	if o.Log == nil {
		o.Log = h.Options.Log
	}
	return &browsers{o: o, views: liveview.New()}
}

var errBrowsersClosed = errors.New("the browsers of this host are closed")

// open makes the host of browsers at the first call.
func (b *browsers) open() (*browser.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return nil, errBrowsersClosed
	}
	if b.host == nil {
		h, err := browser.New(b.o)
		if err != nil {
			return nil, err
		}
		b.host = h
	}
	return b.host, nil
}

// Facts implements Browsers.
func (b *browsers) Facts(ctx context.Context) browser.Facts {
	h, err := b.open()
	if err != nil {
		return browser.Facts{Problem: err.Error()}
	}
	return h.Facts(ctx)
}

// NewSession implements Browsers.
func (b *browsers) NewSession(o browser.SessionOptions) (Browser, error) {
	h, err := b.open()
	if err != nil {
		return nil, err
	}
	o.AssistanceID = timeline.AssistanceID
	return h.ViewedSession(o, b.views), nil
}

// Forget implements Browsers.
func (b *browsers) Forget(ctx context.Context, id store.ConnectionID) error {
	h, err := b.open()
	if err != nil {
		return err
	}
	return h.Forget(ctx, string(id))
}

// Close implements Browsers. It ends every browser.
func (b *browsers) Close(ctx context.Context) error {
	b.mu.Lock()
	h := b.host
	b.host, b.over = nil, true
	b.mu.Unlock()
	if h == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, browsersClose)
	defer cancel()
	return h.Close(ctx)
}

// browsersClose bounds the time for ending browsers that are kept for a next run; those of runs have ended by
// then.
const browsersClose = 15 * time.Second

// liveViews returns the views of the browsers of this host, or empty ones if its browsers are not its own.
func liveViews(h *directory) *liveview.Views {
	if b, ok := h.Options.Browsers.(*browsers); ok {
		return b.views
	}
	return liveview.New()
}
