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
	"sync/atomic"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Browsers lends browsers to runs. Its methods may be called from any goroutine.
type Browsers interface {
	// Facts says what there is, and why there is nothing.
	Facts(ctx context.Context) browser.Facts
	// Lend makes the binding of one run, which closes it. It starts nothing.
	Lend(o browser.SessionOptions) (Browser, error)
	// Forget removes the profiles of a connection that has no run.
	Forget(ctx context.Context, id store.ConnectionID) error
	Close(ctx context.Context) error
}

// A Browser is the browser binding of one run.
type Browser interface {
	binding.Binding
	binding.Speaker
	binding.Screen
	binding.Sealer
	binding.Pauser
	binding.Spender
}

// TraceWanted reports whether the environment asks for traces of browser actions in every run.
func TraceWanted() bool { return os.Getenv("SLUICE_TRACE") == "1" || os.Getenv("PDPP_TRACE") == "1" }

// NoBrowser says why this host lends no browser, "" when it does.
func (h *bindings) NoBrowser(ctx context.Context) string {
	if h.Options.Browsers == nil {
		return "this host was opened without browsers"
	}
	return h.Options.Browsers.Facts(ctx).Problem
}

// browserInfo is what the system page says.
func (h *bindings) browserInfo(ctx context.Context) host.BrowserInfo {
	if h.Options.Browsers == nil {
		return host.BrowserInfo{Problem: h.NoBrowser(ctx)}
	}
	f := h.Options.Browsers.Facts(ctx)
	return host.BrowserInfo{Product: f.Browser, Problem: cmp.Or(f.Problem, f.Slow), Egress: f.Egress, UID: f.UID, Max: f.Max, Live: f.Live}
}

// browsers are the lines about browsers.
func (c *checkup) browsers(f browser.Facts) {
	if f.Problem != "" {
		c.add("browser", StateWeak, "install chromium or chrome-headless-shell, or name one with SLUICE_BROWSER; connectors that need none run without", "none: %s", f.Problem)
		return
	}
	switch remedy := untried(f); {
	case f.Slow != "":
		c.add("browser", StateWeak, "run sluice doctor again when less is going on, or name another browser with SLUICE_BROWSER", "slow: %s", f.Slow)
	case remedy != "":
		c.add("browser", StateWeak, remedy, "%s, %d at once; tried with %s", f.Browser, f.Max, triedText)
	default:
		c.add("browser", StateOK, "", "%s, %d at once; tried with %s", f.Browser, f.Max, triedText)
	}
	if f.Egress == "namespace" {
		c.add("egress", StateOK, "", "namespace: a browser has no network but the host's proxy")
	} else {
		c.add("egress", StateWeak, "run sluice as root, which lets it make network namespaces", "%s: browsers are only told to use the host's proxy", f.Egress)
	}
	switch {
	case f.NoSandbox:
		c.add("browser_sandbox", StateBad, "take browser.allow_no_sandbox out of the configuration", "browsers may run without their sandbox")
	default:
		c.add("browser_sandbox", StateOK, "", "browsers run in their own sandbox, or not at all")
	}
	if f.UID == "own" {
		c.add("browser_uid", StateOK, "", "each browser has a uid of its own")
	} else {
		c.add("browser_uid", StateWeak, "run sluice as root with browser.uid_range", "browsers run as the user of the host")
	}
	c.add("browser_memory", StateWeak, "bound the host and its browsers together, for example with MemoryMax= of a systemd unit", "browsers have no memory limit of their own")
}

// The versions of Chromium that this release was tried with. Those of the last year
// are expected to work, and so are newer ones.
const (
	triedFirst, triedLast = 148, 156
	triedText             = "Chromium 148 to 156"
)

// untried is what to do about a browser that is older than all that were tried; "" for
// one that is not.
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

// absent says by name which bindings this host has none of to lend, and why.
func (h *bindings) absent(ctx context.Context) map[string]string {
	out := map[string]string{}
	if why := h.NoBrowser(ctx); why != "" {
		out[abi.BindingBrowser] = why
	}
	return out
}

// absentFor is absent for a run of a connector. Only what is asked for is looked for:
// that takes a moment. A replay has no pages to show.
func (h *bindings) absentFor(ctx context.Context, m *abi.Manifest, replay bool) map[string]string {
	switch _, asked := m.Bindings[abi.BindingBrowser]; {
	case !asked:
		return nil
	case replay:
		return map[string]string{abi.BindingBrowser: "a replay has no pages to show"}
	}
	return h.absent(ctx)
}

// browser is the browser of one run, nil when it has none or cannot use it.
func (h *bindings) browser(q RunRequest, plan *run.Plan, session binding.Binding, files *atomic.Pointer[filesystem.FS]) (Browser, error) {
	if plan.Given().Bindings.Browser == nil || !q.Connector.Module.Uses(abi.ModuleBrowser) {
		return nil, nil
	}
	p, err := policyOf(network.GuestHosts(q.Connector.Manifest, plan.Connection.Approved.Hosts))
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
	l.File = func(_ context.Context, path string) (io.ReadCloser, error) {
		fs := files.Load()
		if fs == nil {
			return nil, errors.New("the run has no files")
		}
		return fs.Take(path)
	}
	if s, ok := session.(ownSession); ok {
		l.Cookies, l.Passed = s.TakeCookies, s.Received()
		l.Stream = func(_ context.Context, handle uint32) (io.ReadCloser, error) { return s.Take(handle) }
	}
	b, err := h.Options.Browsers.Lend(l)
	if err != nil {
		return nil, fmt.Errorf("lend a browser to %s: %w", plan.Connection.ID, err)
	}
	return b, nil
}

// untrusted reports whether a connector is marked so: it came neither with Sluice nor signed
// by a publisher whose key the owner pinned.
func untrusted(c store.Connector) bool { return !c.Bundled && c.Signer == nil }

// unused closes the bindings of a run that was not accepted.
func unused(lent ...binding.Binding) error {
	var errs []error
	for _, b := range lent {
		if b != nil {
			errs = append(errs, b.Close(context.Background()))
		}
	}
	return errors.Join(errs...)
}

// forgetProfiles removes what a connection's browsers kept.
func (h *bindings) forgetProfiles(ctx context.Context, id store.ConnectionID) error {
	if h.Options.Browsers == nil {
		return nil
	}
	if err := h.Options.Browsers.Forget(ctx, id); err != nil {
		return fmt.Errorf("remove browser profiles of %s: %w", id, err)
	}
	return nil
}
