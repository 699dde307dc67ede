package app

import (
	"context"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A Named is what a run's connector is called.
type Named struct{ Name, Version string }

// ConnectorOf says which connector a run was of, as far as it is known: the
// module may be uninstalled by now, or replaced by another version.
func (s *Service) ConnectorOf(ctx context.Context, r store.Run) (Named, bool) {
	if n, ok := s.names.Load(r.Digest); ok {
		return n.(Named), true
	}
	connectors, err := s.host.Store.Connectors(ctx)
	if err != nil {
		return Named{}, false
	}
	for _, c := range connectors {
		if c.Digest == r.Digest {
			n := Named{c.Name, c.Version}
			s.names.Store(r.Digest, n)
			return n, true
		}
	}
	c, err := s.host.Store.Connection(ctx, r.ConnectionID)
	if err != nil || c.Digest != r.Digest {
		return Named{}, false
	}
	m, err := abi.ReadManifest(c.Manifest)
	if err != nil {
		return Named{}, false
	}
	n := Named{m.Name(), m.Version}
	s.names.Store(r.Digest, n)
	return n, true
}
