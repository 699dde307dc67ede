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
	"github.com/sluicehost/sluice/host/network"
)

// Options of a Host are the operator's (browser.*). Data is required.
type Options struct {
	Data string // the host's data directory; profiles lie in it
	// Path is browser.path; "" looks for a browser.
	Path           string
	MaxSurfaces    int           // 0 is 4
	Linger         time.Duration // browser.linger_s
	ProbeInterval  time.Duration // 0 is 2 s
	FirstUID       int           // browser.uid_range, of a host that is root; 0: a range of its own
	LastUID        int
	AllowNoSandbox bool // never for connectors that are marked untrusted
	// ActionsPerMinute is the operator's limit; 0 is 120.
	ActionsPerMinute int
	Watchdog         time.Duration  // of sessions that are being made; 0 is 2 min
	EgressMode       string         // "": a namespace where the machine has them
	Table            *network.Table // nil: as for network.Options
	Resolver         network.Resolver
	Log              *slog.Logger // nil drops what is said
	// Count raises a counter; nil counts nothing.
	Count func(name string, labels ...string)
	// Start and Open start browsers and gates; nil is the real ones.
	Start fleet.Starter
	Open  fleet.GateOpener
}

// SessionOptions are one run's: what its owner approved, and what it may use of
// its neighbours.
type SessionOptions struct {
	Connection  string // its id
	Name        string // of the connection, for people
	Connector   string // its name, for messages to the owner
	ProfileName string // where the owner set one
	Request     abi.BrowserRequest
	Policy      *network.Policy // of the connection, the very one of its requests
	Bytes       int64           // network.run_bytes; 0 is the default
	Passed      *atomic.Int64   // bytes of the run so far, counted with its own requests; nil: the browser's alone
	Scheduled   bool
	Untrusted   bool // the connector is marked so
	Interactive bool // somebody can be asked
	Trace       bool // of the run
	// Notice tells the owner, while they look, of something that happened beside the
	// picture, by a code and a name that a page chose; nil tells nobody. It
	// returns at once.
	Notice func(code, name string)
	// File opens a file of the guest's own mounts, and Stream a stream handle that is
	// not the binding's, for uploads; nil opens none.
	File   func(ctx context.Context, path string) (io.ReadCloser, error)
	Stream func(ctx context.Context, handle uint32) (io.ReadCloser, error)
	// Cookies puts cookies into the run's network jar and says how many it took;
	// nil takes none.
	Cookies func(host string, cookies []*http.Cookie) int
}

// A Host keeps the browsers of one Sluice host and makes the binding of each run.
// It is safe for concurrent use.
type Host struct {
	o        Options
	surfaces *fleet.Manager
	// engine makes what works a surface.
	engine func(engine.Options) worker

	mu     sync.Mutex // guards what follows
	binary chromium.Binary
}

// profiles is the directory of profiles within a data directory.
func profiles(data string) string { return filepath.Join(data, "profiles") }

// New returns a host without browsers. What an earlier host of the same data
// directory left running is ended first; the caller holds the directory. A
// machine without a browser is no error.
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
		Dir: root, Max: o.MaxSurfaces, Start: h.o.Start, Open: h.o.Open, Linger: o.Linger, FirstUID: o.FirstUID, LastUID: o.LastUID, Log: o.Log,
	})
	return h, err
}

// Facts are what health and the doctor say of the binding.
type Facts struct {
	Browser   string // product and version; "" for none
	Problem   string // why there is none, and what to do about it
	Slow      string // why it is not known which one there is: it did not answer in time
	Egress    string // namespace or flags
	UID       string // own or shared
	NoSandbox bool   // the operator allows a browser without a sandbox
	Max, Live int
}

// Facts looks for the browser, which takes a moment the first time.
func (h *Host) Facts(ctx context.Context) Facts {
	s := h.surfaces.Facts()
	f := Facts{Egress: h.o.EgressMode, UID: s.UIDs, NoSandbox: h.o.AllowNoSandbox, Max: s.Max, Live: s.Live}
	b, err := h.find(ctx)
	switch {
	case errors.Is(err, chromium.ErrSlow), ctx.Err() != nil: // it is there, for all that is known
		f.Slow = fmt.Sprint(err)
		return f
	case err != nil:
		f.Problem = err.Error()
		return f
	}
	f.Browser = b.Product + " " + b.Version
	return f
}

// Session is the binding of one run. It starts nothing.
func (h *Host) Session(o SessionOptions) *Session { return newSession(h, o) }

// Forget removes the profiles of a connection. While a run has one of them the error is
// profile_in_use.
func (h *Host) Forget(ctx context.Context, connection string) error {
	return h.surfaces.Forget(ctx, connection)
}

// Close ends every browser.
func (h *Host) Close(ctx context.Context) error { return h.surfaces.Close(ctx) }

// The uids that browsers of a root host have when nothing else is configured: above
// those of the sandbox's workers, or, in a container that maps few, below.
const (
	firstUID          = 300_000
	lastUID           = 309_999
	firstContainerUID = 40_000
	lastContainerUID  = 49_999
)

// uidRange is the range of uids for browsers; 0, 0 for a host that cannot give uids.
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

// mapped reports whether all uids of a range exist in this user namespace. A system
// that does not say so has them.
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
