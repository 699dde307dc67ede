package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Browsers lends browsers to runs. Its methods may be called from any goroutine.
type Browsers interface {
	// Facts says what there is, and why there is nothing.
	Facts(ctx context.Context) BrowserFacts
	// Lend makes the binding of one run, which closes it. It starts nothing.
	Lend(l Lease) (Browser, error)
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

// BrowserFacts are what a check-up says of browsers.
type BrowserFacts struct {
	Browser   string // product and version; "" for none
	Problem   string // why there is none, and what to do about it; "" when there is one
	Slow      string // why it is not known which one there is: it did not answer in time; it may for a run
	Egress    string // namespace or flags
	UID       string // own or shared
	NoSandbox bool   // the operator allows a browser without a sandbox
	Max, Live int    // surfaces
}

// A Lease is what one run may do with a browser: what its owner approved, and what
// it may use of its neighbours.
type Lease struct {
	Connection  store.Connection
	Connector   string // its name
	Request     abi.BrowserRequest
	Policy      *network.Policy // of the connection, for all that the browser reaches
	Scheduled   bool
	Untrusted   bool          // nobody whom the owner knows vouches for the connector
	Interactive bool          // somebody can be asked
	Trace       bool          // what it does is recorded
	Passed      *atomic.Int64 // bytes that the run received, the browser's among them; nil: not counted together
	// Cookies puts cookies of a host into the run's network jar and says how many it took.
	Cookies func(host string, cookies []*http.Cookie) int
	// File opens a file of the guest's own mounts, and Stream the body of an answer that the
	// guest has a handle of, which it has no more then.
	File   func(ctx context.Context, path string) (io.ReadCloser, error)
	Stream func(ctx context.Context, handle uint32) (io.ReadCloser, error)
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

// findings are the lines of a check-up about browsers.
func (f BrowserFacts) findings(c *checkup) {
	if f.Problem != "" {
		c.add("browser", StateWeak, "install chromium or chrome-headless-shell, or name one with SLUICE_BROWSER; connectors that need none run without", "none: %s", f.Problem)
		return
	}
	switch remedy := f.untried(); {
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
func (f BrowserFacts) untried() string {
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
	l := Lease{
		Connection: plan.Connection, Connector: q.Connector.Manifest.Name(), Request: *q.Connector.Manifest.Bindings[abi.BindingBrowser].Browser,
		Policy: p, Untrusted: untrusted(q.Connector.Connector), Scheduled: q.Trigger == "scheduled", Interactive: plan.Interactive, Trace: q.Trace || TraceWanted(),
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
