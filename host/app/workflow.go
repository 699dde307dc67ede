package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A workflow is what a start names: a connection and its connector.
type workflow struct {
	connection store.ConnectionID
	loaded     *Loaded
	temporary  bool // the connection is this run's alone
	making     bool // a connection that there is not is made
}

// resolve finds out what is to be run (A63): a connection's id is looked up
// first, then a connector's name. It makes checks 1 to 4 of runtime.md §6.1, in
// their order.
func (s *Service) resolve(ctx context.Context, q host.StartRun) (workflow, error) {
	if g := q.Given; g != nil && (len(g.Module) > 0 || len(g.Manifest) > 0 || g.Connection != "") {
		return s.ofGiven(ctx, q.WorkflowID, g)
	}
	c, err := s.named(ctx, q.WorkflowID)
	if err == nil {
		return s.ofConnection(ctx, c)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return workflow{}, err
	}
	listed, err := s.listed(ctx, q.WorkflowID)
	if err != nil {
		return workflow{}, err
	}
	if listed.Conformance {
		return s.ofConformance(ctx, listed, q.Inputs)
	}
	if q.Given != nil {
		return s.ofGiven(ctx, q.WorkflowID, q.Given)
	}
	if c, err = s.onlyConnection(ctx, listed.ID); err != nil {
		return workflow{}, err
	}
	return s.ofConnection(ctx, c)
}

// named is the connection of that id; store.ErrNotFound. The connection of
// another's run is nobody's to start.
func (s *Service) named(ctx context.Context, id string) (store.Connection, error) {
	if !abi.IsSlug(id) {
		return store.Connection{}, store.ErrNotFound
	}
	c, err := s.host.Store.Connection(ctx, store.ConnectionID(id))
	if err == nil && c.Temporary {
		return store.Connection{}, store.ErrNotFound
	}
	return c, err
}

// listed is the connector of that name. The name is not echoed (A62).
func (s *Service) listed(ctx context.Context, name string) (store.Connector, error) {
	for _, bundled := range []bool{false, true} {
		c, ok, err := s.host.connector(ctx, name, bundled)
		if ok || err != nil {
			return c, err
		}
	}
	return store.Connector{}, host.Refuse("validation_error", "workflowId: there is no connection and no connector of this name").
		With("fields", []map[string]string{{"path": "workflowId", "rule": "known"}})
}

// onlyConnection is the only enabled connection of a connector.
func (s *Service) onlyConnection(ctx context.Context, id store.ConnectorID) (store.Connection, error) {
	all, err := s.host.Store.Connections(ctx)
	if err != nil {
		return store.Connection{}, fmt.Errorf("list connections: %w", err)
	}
	var enabled []store.Connection
	for _, c := range all {
		if c.ConnectorID == id && c.Enabled && !c.Temporary {
			enabled = append(enabled, c)
		}
	}
	switch len(enabled) {
	case 0:
		return store.Connection{}, host.Refuse("connection_not_ready", "this connector has no connection that is enabled").With("code", "connection_not_found")
	case 1:
		return enabled[0], nil
	}
	ids := make([]string, 0, len(enabled))
	for _, c := range enabled {
		ids = append(ids, string(c.ID))
	}
	return store.Connection{}, host.Refuse("ambiguous_connection", "this connector has several connections; name one of them").With("connectionIds", ids)
}

func (s *Service) ofConnection(ctx context.Context, c store.Connection) (workflow, error) {
	w := workflow{connection: c.ID}
	if !c.Enabled {
		return w, host.Refuse("connection_disabled", "connection %s is disabled", c.ID)
	}
	if err := s.host.idle(ctx, c.ID); err != nil {
		return w, err
	}
	if code := c.Grant.Fault(time.Now()); code != "" {
		return w, host.Refuse(code, "the grant of connection %s is %s; sluice grant %[1]s gives a new one", c.ID, strings.TrimPrefix(code, "grant_")).With("connectionId", string(c.ID))
	}
	var err error
	w.loaded, err = s.host.LoadFor(ctx, c)
	return w, err
}

// LoadFor loads the module of a connection (R17, R18): the one that its owner
// approved, or, where that is not installed any more, the one that is.
func (h *Host) LoadFor(ctx context.Context, c store.Connection) (*Loaded, error) {
	all, err := h.Store.Connectors(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connectors: %w", err)
	}
	for _, listed := range all { // installed before bundled
		if listed.ID == c.ConnectorID && listed.Digest == c.Digest {
			return h.loadListed(listed, nil)
		}
	}
	return h.installed(ctx, string(c.ConnectorID), "")
}

// loadListed loads a module that the store lists, with a manifest instead of the
// one that it was installed with, nil for none.
func (h *Host) loadListed(c store.Connector, manifest []byte) (*Loaded, error) {
	wasm, err := h.openModule(c)
	if err != nil {
		return nil, err
	}
	if manifest == nil {
		manifest = c.Manifest
	}
	l, err := h.LoadBytes(wasm, manifest)
	if err != nil {
		return nil, err
	}
	l.Connector.Bundled, l.Connector.Signer, l.Connector.Conformance = c.Bundled, c.Signer, c.Conformance
	return l, nil
}
