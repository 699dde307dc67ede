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
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Browsers lends browsers to runs. Its methods may be called from any goroutine.
type Browsers interface {
	// Facts describes the browsers of this host, or why there are none.
	Facts(ctx context.Context) browser.Facts
	// Lend makes the browser binding of one run, which closes it. It starts no browser.
	Lend(o browser.SessionOptions) (Browser, error)
	// Forget removes the browser profiles of a connection that has no run.
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

// browser returns the browser of one run, nil if it has none or its module does not use it.
func (h *bindings) browser(q RunRequest, plan *run.Plan, session binding.Binding,
	files *atomic.Pointer[filesystem.FS]) (Browser, error) {
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
