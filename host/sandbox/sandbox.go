package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sluicehost/sluice/host/jail"
)

// A Sandbox starts guests. It is safe for concurrent use.
type Sandbox struct {
	options  Options
	launcher *jail.Launcher
	nursery  *nursery
	cache    *cache
	promised atomic.Pointer[jail.Isolation] // what Probe found; nil before
	broken   atomic.Bool                    // Probe found a hole
}

// Open opens the cache and starts blank workers. It fails if the cache's
// directory cannot be used, or if the machine does not offer the isolation that
// is required.
func Open(ctx context.Context, o Options) (*Sandbox, error) {
	o, err := o.settled()
	if err != nil {
		return nil, err
	}
	launcher, err := jail.NewLauncher(o.Jail)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	s := &Sandbox{options: o, launcher: launcher}
	if s.cache, err = openCache(o, launcher.GID()); err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox: %w", err), launcher.Close())
	}
	s.nursery = openNursery(launcher, o)
	return s, nil
}

// Close ends every worker and waits for them. Guests end as killed.
func (s *Sandbox) Close() error {
	s.nursery.close()
	err := s.launcher.Close()
	s.cache.close()
	return err
}

// ErrIsolationBroken: a layer that is reported as active let a canary through.
// The host starts no run.
var ErrIsolationBroken = errors.New("isolation_broken")

// Probe sends canaries into the jail, reports what holds and what is missing,
// and from then on counts on what it found: a worker that ends up with less is
// refused. A host calls it at start, before any run; doctor prints the report.
// dataDir is the host's data directory, which no canary may reach.
//
// The report is complete beside ErrIsolationBroken, and beside a *Failure with
// CodeIsolationUnavailable when less than Options.Require holds.
func (s *Sandbox) Probe(ctx context.Context, dataDir string) (jail.Report, error) {
	report, err := s.launcher.Probe(ctx, dataDir)
	if err != nil {
		return report, fmt.Errorf("probe isolation: %w", err)
	}
	if broken := report.Broken(); len(broken) > 0 {
		names := make([]string, len(broken))
		for i, a := range broken {
			names[i] = a.Name
		}
		s.broken.Store(true)
		return report, fmt.Errorf("%w: %s", ErrIsolationBroken, strings.Join(names, ", "))
	}
	s.broken.Store(false)
	s.promised.Store(&report.Isolation)
	if r := s.options.Require; r != "" && !report.Isolation.Meets(r) {
		return report, &Failure{Code: CodeIsolationUnavailable, Detail: fmt.Sprintf("isolation is %s, %s is required", report.Isolation.Level, r)}
	}
	return report, nil
}

// Isolation is what holds around a guest, for rooms that see the jail
// through the sandbox only.
type Isolation = jail.Isolation
