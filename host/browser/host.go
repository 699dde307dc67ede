package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/store"
)

// Options of a Host are set by the operator (browser.*). Data is required.
type Options struct {
	Data string // the host's data directory, which contains the profiles
	// Path is browser.path; "" searches for a browser.
	Path           string
	MaxSurfaces    int           // 0 is 4
	Linger         time.Duration // browser.linger_s
	ProbeInterval  time.Duration // 0 is 2 s
	FirstUID       int           // browser.uid_range, if the host is root; 0: a default range
	LastUID        int
	AllowNoSandbox bool // never for connectors marked untrusted
	// ActionsPerMinute is the operator's limit; 0 is 120.
	ActionsPerMinute int
	Watchdog         time.Duration // for establishing sessions; 0 is 2 min
	EgressMode       string        // "": a namespace if the machine supports it
	Table            *egress.Table // nil: as for egress.Options
	Resolver         egress.Resolver
	Log              *slog.Logger // nil discards messages
	// Count increments a counter; it may be nil.
	Count func(name string, labels ...string)
	// Start and Open start browsers and gates; nil starts real ones.
	Start fleet.Starter
	Open  fleet.GateOpener
}

// SessionOptions belong to one run: what its owner approved, and what it may use from other
// bindings.
type SessionOptions struct {
	Connection  string // the connection's id
	Name        string // of the connection, for people
	Connector   string // the connector's name, for messages to the owner
	ProfileName string // if the owner set one
	Request     abi.BrowserRequest
	Policy      *egress.Policy // of the connection, the same as for its requests
	Bytes       int64          // network.run_bytes; 0 is the default
	Passed      *atomic.Int64  // bytes passed so far in the run, shared with its own requests; nil: counted separately
	Scheduled   bool
	Untrusted   bool // the connector is marked untrusted
	Interactive bool // somebody can be asked
	Trace       bool // record a trace of the run
	// Notice tells viewers of an event beside the picture, by a code and a name chosen by a page.
	// It may be nil and must return at once.
	Notice func(code, name string)
	// AssistanceID returns the id by which the API knows an assistance of a run; required for a
	// ViewedSession.
	AssistanceID func(run store.RunID, request string) string
	// File opens a file of the guest's mounts, and Stream a stream handle of another binding, for
	// uploads; they may be nil.
	File   func(ctx context.Context, path string) (io.ReadCloser, error)
	Stream func(ctx context.Context, handle uint32) (io.ReadCloser, error)
	// Cookies adds cookies to the run's network jar and returns how many it took; it may be nil.
	Cookies func(host string, cookies []*http.Cookie) int
}

// A Host keeps the browsers of one Sluice host and makes the binding of each run. It is safe for
// concurrent use.
type Host struct {
	o        Options
	surfaces *fleet.Manager
	// engine makes the worker of a surface.
	engine func(engine.Options) worker

	mu     sync.Mutex // guards what follows
	binary chromium.Binary
}

// profiles returns the directory of profiles in a data directory.
func profiles(data string) string { return filepath.Join(data, "profiles") }

// New returns a host without browsers. It first ends what an earlier host left running; the caller
// holds the data directory. A machine without a browser is no error.
func New(o Options) (*Host, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.EgressMode == "" {
		o.EgressMode = chromium.EgressMode()
	}
	if o.ActionsPerMinute <= 0 {
		o.ActionsPerMinute = defaultRate
	}
	if o.Watchdog <= 0 {
		o.Watchdog = fleet.DefaultWatchdog
	}
	o.FirstUID, o.LastUID = uidRange(o.FirstUID, o.LastUID)
	h := &Host{o: o, engine: func(o engine.Options) worker { return engine.New(o) }}
	root, err := filepath.Abs(profiles(o.Data))
	if err != nil {
		return nil, err
	}
	if err := SweepTraces(Traces(o.Data)); err != nil {
		o.Log.Warn("traces that were begun by an earlier host are left", "error", err)
	}
	if ended, left := chromium.Leftovers(root); ended+left > 0 {
		o.Log.Warn("browsers of an earlier host were ended", "ended", ended, "left", left)
	}
	if h.o.Start == nil {
		h.o.Start = h.start
	}
	if h.o.Open == nil {
		h.o.Open = h.open
	}
	h.surfaces, err = fleet.New(fleet.Options{
		Dir: root, Max: o.MaxSurfaces, Start: h.o.Start, Open: h.o.Open, Linger: o.Linger, FirstUID: o.FirstUID,
		LastUID: o.LastUID, Log: o.Log,
	})
	return h, err
}

// Facts are reported by health and sluice doctor.
type Facts struct {
	Browser   string // product and version; "" if there is none
	Problem   string // why there is none, and what to do
	Slow      string // why it is unknown: it did not answer in time
	Egress    string // namespace or flags
	UID       string // own or shared
	NoSandbox bool   // the operator allows a browser without a sandbox
	Max, Live int
}

// Facts returns the state of the binding. It looks for the browser, which takes a moment the first
// time.
func (h *Host) Facts(ctx context.Context) Facts {
	s := h.surfaces.Facts()
	f := Facts{Egress: h.o.EgressMode, UID: s.UIDs, NoSandbox: h.o.AllowNoSandbox, Max: s.Max, Live: s.Live}
	b, err := h.find(ctx)
	switch {
	case errors.Is(err, chromium.ErrSlow), ctx.Err() != nil: // as far as known there is one
		f.Slow = fmt.Sprint(err)
		return f
	case err != nil:
		f.Problem = err.Error()
		return f
	}
	f.Browser = b.Product + " " + b.Version
	return f
}

// Session returns the binding of one run. It starts nothing.
func (h *Host) Session(o SessionOptions) *Session { return newSession(h, o) }

// Forget removes the profiles of a connection. It fails with profile_in_use while a run has one.
func (h *Host) Forget(ctx context.Context, connection string) error {
	return h.surfaces.Forget(ctx, connection)
}

// Close ends every browser.
func (h *Host) Close(ctx context.Context) error { return h.surfaces.Close(ctx) }

// Default uids of browsers on a root host: above those of the sandbox's workers or, in a container
// that maps few uids, below.
const (
	firstUID          = 300_000
	lastUID           = 309_999
	firstContainerUID = 60_000
	lastContainerUID  = 64_999
)

// uidRange returns the range of uids for browsers, or 0, 0 if the host cannot assign uids.
func uidRange(first, last int) (int, int) {
	switch {
	case os.Geteuid() != 0:
		return 0, 0
	case first != 0:
		return first, last
	case mapped(firstUID, lastUID):
		return firstUID, lastUID
	}
	return firstContainerUID, lastContainerUID
}

// mapped reports whether all uids of a range exist in this user namespace. Without a uid map they
// do.
func mapped(first, last int) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil && inside <= first && last-inside < n {
			return true
		}
	}
	return false
}
