package fleet

import (
	"context"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Request says what browser a run needs.
type Request struct {
	Connection string
	Profile    string // as chosen by Name; Acquire checks it first
	Persistent bool
	Scheduled  bool // owner-started runs are served first
	Kind       Kind
	// Bind puts a gate under the policy of the run. It is called once for each gate that the
	// surface tries, before the run can use its browser.
	Bind func(Gate) error
	// Event receives each step in order, from the goroutine of Acquire or Release or from one of
	// the surface. It must return at once.
	Event func(Event)
	// Lost is called once if the surface is lost, from a goroutine of the surface. It must return
	// at once.
	Lost func(Probe)
}

// A Starter starts a browser and returns once it can answer. On failure it leaves nothing behind.
// An *engine.Refusal is shown to the guest; any other error becomes surface_start_failed.
// page.ErrLost means that the process ended by itself.
type Starter func(ctx context.Context, o StartOptions) (page.Browser, error)

// StartOptions are the options of a Starter.
type StartOptions struct {
	Profile string // the browser's data: absolute, mode 0700, owned by UID
	Home    string // its home directory, likewise; removed with it
	UID     int    // also the gid; 0: the browser runs as the host's user
	Gate    Gate   // for all its traffic
	Kind    Kind
}

// A Kind holds the properties that a browser must be started with. A running browser only serves
// runs of the same kind.
type Kind struct {
	Viewport   page.Viewport
	Downloads  bool // files may be saved, in Home
	DenyPopups bool
	// Trusted means that the operator's allow_no_sandbox may apply to the connector.
	Trusted bool
}

// A Gate is the proxy for all traffic of one browser. It denies everything unless a policy is
// bound.
type Gate interface {
	// Lost is closed when the gate no longer serves.
	Lost() <-chan struct{}
	// Unbind makes it deny everything again and closes open connections.
	Unbind()
	Close() error
}

// A GateOpener opens a gate that denies everything, for a browser that will run as uid.
type GateOpener func(ctx context.Context, uid int) (Gate, error)

// A Resetter is a browser that can close all its tabs and open a blank one. Only such a browser
// lingers.
type Resetter interface {
	Reset(ctx context.Context) error
}
