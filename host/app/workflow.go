package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// workflows determines the connection and the module of a start.
type workflows struct {
	*directory
	modules     *modules
	connections *connectionStore
	temporaries *temporaries
}

// A workflow is what a start names: a connection and its connector.
type workflow struct {
	connection store.ConnectionID
	loaded     *Loaded
	temporary  bool // the connection is only for this run
	create     bool // make the connection if it does not exist
}

// resolve determines what to run: q.WorkflowID is looked up as the id of a connection, then as the name of a
// connector. It refuses a connection that does not exist, is disabled, has an active run or no usable grant, in
// that order.
func (ws *workflows) resolve(ctx context.Context, q host.StartRun) (workflow, error) {
	if g := q.Overrides; g != nil && (len(g.Module) > 0 || len(g.Manifest) > 0 || g.Connection != "") {
		return ws.withOverrides(ctx, q.WorkflowID, g)
	}
	c, err := ws.connections.permanent(ctx, store.ConnectionID(q.WorkflowID))
	if err == nil {
		return ws.fromConnection(ctx, c)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return workflow{}, err
	}
	listed, err := ws.listed(ctx, q.WorkflowID)
	if err != nil {
		return workflow{}, err
	}
	if listed.Conformance {
		return ws.temporaries.make(ctx, listed, q.Inputs)
	}
	if q.Overrides != nil {
		return ws.withOverrides(ctx, q.WorkflowID, q.Overrides)
	}
	if c, err = ws.onlyConnection(ctx, listed.ID); err != nil {
		return workflow{}, err
	}
	return ws.fromConnection(ctx, c)
}

// listed finds a connector by its name. The refusal does not repeat the name.
func (ws *workflows) listed(ctx context.Context, name string) (store.Connector, error) {
	for _, bundled := range []bool{false, true} {
		c, ok, err := ws.modules.connector(ctx, name, bundled)
		if ok || err != nil {
			return c, err
		}
	}
	return store.Connector{},
		host.Refuse("validation_error", "workflowId: there is no connection and no connector of this name").
			With("fields", []map[string]string{{"path": "workflowId", "rule": "known"}})
}

// onlyConnection returns the only enabled connection of a connector, or refuses.
func (ws *workflows) onlyConnection(ctx context.Context, id store.ConnectorID) (store.Connection, error) {
	all, err := ws.Store.Connections(ctx)
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
		return store.Connection{},
			host.Refuse("connection_not_ready", "this connector has no connection that is enabled").With("code",
				"connection_not_found")
	case 1:
		return enabled[0], nil
	}
	ids := make([]string, 0, len(enabled))
	for _, c := range enabled {
		ids = append(ids, string(c.ID))
	}
	return store.Connection{},
		host.Refuse("ambiguous_connection", "this connector has several connections; name one of them").With("connectionIds",
			ids)
}

func (ws *workflows) fromConnection(ctx context.Context, c store.Connection) (workflow, error) {
	w := workflow{connection: c.ID}
	if !c.Enabled {
		return w, host.Refuse("connection_disabled", "connection %s is disabled", c.ID)
	}
	if err := ws.connections.idle(ctx, c.ID); err != nil {
		return w, err
	}
	if code := c.Grant.Fault(store.Now(ws.Store)); code != "" {
		return w, host.Refuse(code, "the grant of connection %s is %s; sluice grant %[1]s gives a new one", c.ID,
			strings.TrimPrefix(code, "grant_")).With("connectionId", string(c.ID))
	}
	var err error
	w.loaded, err = ws.modules.LoadFor(ctx, c)
	return w, err
}

// withOverrides returns the workflow for a module that need not be installed, or for an installed one whose
// connection is made if needed.
func (ws *workflows) withOverrides(ctx context.Context, name string, g *host.Overrides) (w workflow, err error) {
	w.create = true
	switch {
	case len(g.Module) > 0:
		w.loaded, err = ws.modules.LoadBytes(g.Module, g.Manifest)
	default:
		w.loaded, err = ws.modules.installed(ctx, name, "")
		if err == nil && len(g.Manifest) > 0 {
			w.loaded, err = ws.modules.loadListed(ctx, w.loaded.Connector, g.Manifest)
		}
	}
	if err != nil {
		return w, err
	}
	if len(g.Signature) > 0 {
		if w.loaded.Signature, err = signature.Parse(g.Signature); err != nil {
			return w, host.Refuse(CodeSignatureInvalid, "this is no signature of minisign")
		}
	}
	if g.Strict {
		w.loaded.strict()
	}
	w.connection = store.ConnectionID(g.Connection)
	return w, nil
}
