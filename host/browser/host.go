package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/sluicehost/sluice/host/browser/chromium"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

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

// profiles is the directory of profiles within a data directory (B182).
func profiles(data string) string { return filepath.Join(data, "profiles") }

// New returns a host without browsers. What an earlier host of the same data
// directory left running is ended first (B178); the caller holds the directory. A
// machine without a browser is no error (B173).
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
	Problem   string // why there is none, and what to do about it (B173)
	Slow      string // why it is not known which one there is: it did not answer in time
	Egress    string // namespace or flags (B248)
	UID       string // own or shared (B175)
	NoSandbox bool   // the operator allows a browser without a sandbox (B176)
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

// Forget removes the profiles of a connection (B185). While a run has one of them
// the error is profile_in_use.
func (h *Host) Forget(ctx context.Context, connection string) error {
	return h.surfaces.Forget(ctx, connection)
}

// Close ends every browser.
func (h *Host) Close(ctx context.Context) error { return h.surfaces.Close(ctx) }
