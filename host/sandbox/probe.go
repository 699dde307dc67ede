package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/host/jail"
)

// ErrIsolationBroken: a layer that is reported as active let a canary through.
// The host starts no run (S22).
var ErrIsolationBroken = errors.New("isolation_broken")

// Probe sends canaries into the jail, reports what holds and what is missing,
// and from then on counts on what it found: a worker that ends up with less is
// refused. A host calls it at start, before any run; doctor prints the report.
// dataDir is the host's data directory, which no canary may reach.
//
// The report is complete beside ErrIsolationBroken, and beside a *Failure with
// CodeIsolationUnavailable when less than Options.Require holds (S21).
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
