package sandbox

import (
	"context"
	"errors"
	"fmt"
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
// is required (S21).
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
