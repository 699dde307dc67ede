package app

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// connectorNames finds the names of the connectors of runs.
type connectorNames struct {
	*directory
	known sync.Map // module digest to ConnectorName
}

// A ConnectorName is the name and version of a run's connector.
type ConnectorName struct{ Name, Version string }

// ConnectorOf returns the connector of a run. It reports false if that is not known any more, since the module
// may have been uninstalled or replaced.
func (cn *connectorNames) ConnectorOf(ctx context.Context, r store.Run) (ConnectorName, bool) {
	if n, ok := cn.known.Load(r.Digest); ok {
		return n.(ConnectorName), true
	}
	connectors, err := cn.Store.Connectors(ctx)
	if err != nil {
		return ConnectorName{}, false
	}
	for _, c := range connectors {
		if c.Digest == r.Digest {
			n := ConnectorName{c.Name, c.Version}
			cn.known.Store(r.Digest, n)
			return n, true
		}
	}
	c, err := cn.Store.Connection(ctx, r.ConnectionID)
	if err != nil || c.Digest != r.Digest {
		return ConnectorName{}, false
	}
	m, err := abi.ReadManifest(c.Manifest)
	if err != nil {
		return ConnectorName{}, false
	}
	n := ConnectorName{m.Name(), m.Version}
	cn.known.Store(r.Digest, n)
	return n, true
}
