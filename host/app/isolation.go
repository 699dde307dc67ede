package app

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/patience"
	"github.com/sluicehost/sluice/host/sandbox"
)

// How long a self-test may take, and how long a failed one stands before it is
// made anew.
const (
	probeTime  = 30 * time.Second
	probeAgain = time.Minute
)

// An isolation is what the self-test of the jail found (S22). It is made once,
// when somebody asks first.
type isolation struct {
	mu    sync.Mutex // guards what follows; held while the test is made, so that there is one
	found jail.Isolation
	err   error
	at    time.Time // zero: not made yet
}

// Isolation is what holds around a worker (S20). A jail with a hole is
// sandbox.ErrIsolationBroken.
func (h *Host) Isolation(ctx context.Context) (jail.Isolation, error) {
	i := &h.isolation
	i.mu.Lock()
	defer i.mu.Unlock()
	if h.Sandbox == nil {
		return jail.Isolation{}, sandbox.ErrClosed
	}
	if !i.at.IsZero() && (i.err == nil || time.Since(i.at) < probeAgain) {
		return i.found, i.err
	}
	ctx, cancel := patience.Within(context.WithoutCancel(ctx), probeTime) // whoever asked may go away, and ask again
	defer cancel()
	report, err := h.Sandbox.Probe(ctx, h.DataDir)
	i.found, i.err, i.at = report.Isolation, err, time.Now()
	return i.found, i.err
}

// Checks that are made by rooms of their own, by name.
type checks struct {
	mu    sync.Mutex // guards named
	named map[string]func() bool
}

// AddCheck makes readiness depend on ok, which answers at once (A228).
func (h *Host) AddCheck(name string, ok func() bool) {
	h.checks.mu.Lock()
	defer h.checks.mu.Unlock()
	if h.checks.named == nil {
		h.checks.named = map[string]func() bool{}
	}
	h.checks.named[name] = ok
}

// failing are the names of checks that fail.
func (c *checks) failing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for name, ok := range c.named {
		if !ok() {
			out = append(out, name)
		}
	}
	return out
}
