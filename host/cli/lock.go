package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// connectorsLock is connectors.lock: what exactly is installed, by whom,
// and what it was granted. It has no times and no host paths, so that two are
// equal exactly if what they say is.
type connectorsLock struct {
	Version    int               `json:"lock_version"`
	Connectors []lockedConnector `json:"connectors"`
	// Pins are the publishers' keys, of connectors that are not installed too.
	Pins []lockedPin `json:"pins"`
}

type lockedConnector struct {
	claimLine
	Bundled bool               `json:"bundled"`
	Signer  *store.Signer      `json:"signer"` // null: unsigned
	Granted []lockedConnection `json:"connections"`
}

type lockedConnection struct {
	ID         string          `json:"connection_id"`
	Digest     string          `json:"digest,omitempty"` // that the owner approved
	AccessMode string          `json:"access_mode,omitempty"`
	Status     string          `json:"grant_status,omitempty"`
	Scope      json.RawMessage `json:"scope"` // null: all that the manifest declares
	Hosts      []string        `json:"hosts"`
	Mounts     []lockedMount   `json:"mounts"`
	Browser    bool            `json:"browser"`
}

type lockedMount struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable"`
}

type lockedPin struct {
	ConnectorID store.ConnectorID `json:"connector_id"`
	Signer      store.Signer      `json:"signer"`
}

func (c listCommands) lockConnectors(ctx context.Context, src *client.Client) error {
	all, err := src.Connectors(ctx)
	if err != nil {
		return fmt.Errorf("list connectors: %w", err)
	}
	connections, err := src.Connections(ctx)
	if err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	pins, err := src.Pins(ctx)
	if err != nil {
		return fmt.Errorf("list pinned keys: %w", err)
	}
	lock := connectorsLock{Version: 1, Connectors: []lockedConnector{}, Pins: []lockedPin{}}
	for _, k := range all {
		line := lockedConnector{claimLine{k.ConnectorID, k.Version, k.ModuleDigest}, k.Source.Type == "bundled", signerOf(k),
			[]lockedConnection{}}
		for _, n := range connections {
			if n.ConnectorID == k.ConnectorID {
				line.Granted = append(line.Granted, lockOf(n))
			}
		}
		lock.Connectors = append(lock.Connectors, line)
	}
	for _, p := range pins {
		lock.Pins = append(lock.Pins,
			lockedPin{store.ConnectorID(p.ConnectorID), store.Signer{KeyID: p.KeyID, Key: p.PublicKey}})
	}
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ") // a file that people compare
	return e.Encode(lock)
}

func lockOf(n host.Connection) lockedConnection {
	a := app.ApprovedBy(n.Bindings)
	l := lockedConnection{ID: n.ConnectionID, Digest: n.ModuleDigest, Hosts: append([]string{}, a.Hosts...),
		Mounts: []lockedMount{}, Browser: a.Browser}
	for _, m := range a.Mounts {
		l.Mounts = append(l.Mounts, lockedMount{m.Name, m.Writable})
	}
	if g := grantOf(n); g != nil {
		l.AccessMode, l.Status, l.Scope = g.AccessMode, g.Status, g.Scope
	}
	return l
}
