package fleet

import (
	"context"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Request is what a run wants of a browser.
type Request struct {
	Connection string
	Profile    string // as Name chose it; checked by Acquire before everything else
	Persistent bool
	Scheduled  bool // owner-started runs come first
	Kind       Kind
	// Bind gives a gate the policy of the run. It is called once for each gate that
	// the surface tries, before its browser can be reached by the run.
	Bind func(Gate) error
	// Event is told of each step, in order, from the goroutine of Acquire, of
	// Release, or one of the surface's own. It returns at once.
	Event func(Event)
	// Lost is told once that the surface is gone, from a goroutine of the
	// surface's. It returns at once.
	Lost func(Probe)
}

// A Starter starts one browser and returns when it can be asked something. It
// leaves nothing behind when it fails. A *engine.Refusal among its errors is the
// guest's to see; everything else becomes surface_start_failed. page.ErrLost among
// them says that the process ended by itself.
type Starter func(ctx context.Context, o StartOptions) (page.Browser, error)

// StartOptions are what a Starter is told.
type StartOptions struct {
	Profile string // where the browser keeps its data: absolute, mode 0700, owned by UID
	Home    string // what it takes for its home, removed with it; of the same kind
	UID     int    // also the gid; 0: the browser runs as the host itself
	Gate    Gate   // what its traffic goes through
	Kind    Kind
}

// A Kind is what a browser must have been started with to serve a request. A
// running one serves another run only if it is of the same kind.
type Kind struct {
	Viewport   page.Viewport
	Downloads  bool // files may be saved, in Home
	DenyPopups bool
	// Trusted says that the connector is one for which the operator's
	// allow_no_sandbox may count.
	Trusted bool
}

// A Gate is the listener that all traffic of one browser goes through. One that is not
// bound denies everything.
type Gate interface {
	// Lost is closed when it does not serve any more.
	Lost() <-chan struct{}
	// Unbind makes it deny everything again, and ends what is open.
	Unbind()
	Close() error
}

// A GateOpener opens a gate that denies everything, for a browser that will run
// as uid.
type GateOpener func(ctx context.Context, uid int) (Gate, error)

// A Resetter is a browser that can lose its tabs: it closes all of them and has a
// blank one. Only such a one lingers.
type Resetter interface {
	Reset(ctx context.Context) error
}
