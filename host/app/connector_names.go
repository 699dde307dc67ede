package app

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// connectorNames knows what the connectors of runs are called.
type connectorNames struct {
	*directory
	known sync.Map // module digest to Named
}

// A Named is what a run's connector is called.
type Named struct{ Name, Version string }

// ConnectorOf says which connector a run was of, as far as it is known: the
// module may be uninstalled by now, or replaced by another version.
func (cn *connectorNames) ConnectorOf(ctx context.Context, r store.Run) (Named, bool) {
	if n, ok := cn.known.Load(r.Digest); ok {
		return n.(Named), true
	}
	connectors, err := cn.Store.Connectors(ctx)
	if err != nil {
		return Named{}, false
	}
	for _, c := range connectors {
		if c.Digest == r.Digest {
			n := Named{c.Name, c.Version}
			cn.known.Store(r.Digest, n)
			return n, true
		}
	}
	c, err := cn.Store.Connection(ctx, r.ConnectionID)
	if err != nil || c.Digest != r.Digest {
		return Named{}, false
	}
	m, err := abi.ReadManifest(c.Manifest)
	if err != nil {
		return Named{}, false
	}
	n := Named{m.Name(), m.Version}
	cn.known.Store(r.Digest, n)
	return n, true
}
