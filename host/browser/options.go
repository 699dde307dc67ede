package browser

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/network"
)

// Options of a Host are the operator's (browser.*). Data is required.
type Options struct {
	Data string // the host's data directory; profiles lie in it (B182)
	// Path is browser.path; "" looks for a browser (B172).
	Path           string
	MaxSurfaces    int           // 0 is 4 (B169)
	Linger         time.Duration // browser.linger_s (B170)
	ProbeInterval  time.Duration // 0 is 2 s (B200)
	FirstUID       int           // browser.uid_range, of a host that is root (B175); 0: a range of its own
	LastUID        int
	AllowNoSandbox bool // B176; never for connectors that are marked untrusted
	// ActionsPerMinute is the operator's limit; 0 is 120.
	ActionsPerMinute int
	Watchdog         time.Duration   // of sessions that are being made; 0 is 2 min (B189)
	Threshold        float64         // of confidence; 0 is 0.50 (B127)
	Settings         engine.Settings // zero members are the defaults (B66)
	EgressMode       string          // "": a namespace where the machine has them (B248)
	Table            *network.Table  // nil: as for network.Options
	Resolver         network.Resolver
	Log              *slog.Logger // nil drops what is said
	// Count raises a counter (B64); nil counts nothing.
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
	ProfileName string // where the owner set one (B181)
	Request     abi.BrowserRequest
	Policy      *network.Policy // of the connection, the very one of its requests (B237)
	Bytes       int64           // network.run_bytes; 0 is the default
	Passed      *atomic.Int64   // bytes of the run so far, counted with its own requests (B241); nil: the browser's alone
	Scheduled   bool
	Untrusted   bool // the connector is marked so (B176)
	Interactive bool // somebody can be asked (B187)
	Trace       bool // of the run (B163)
	// Notice tells the owner, while they look, of something that happened beside the
	// picture, by a code and a name that a page chose (B228); nil tells nobody. It
	// returns at once.
	Notice func(code, name string)
	// File opens a file of the guest's own mounts, and Stream a stream handle that is
	// not the binding's, for uploads (B31); nil opens none.
	File   func(ctx context.Context, path string) (io.ReadCloser, error)
	Stream func(ctx context.Context, handle uint32) (io.ReadCloser, error)
	// Cookies puts cookies into the run's network jar and says how many it took
	// (B34); nil takes none.
	Cookies func(host string, cookies []*http.Cookie) int
}
