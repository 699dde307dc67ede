package api

import (
	"encoding/json"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// workflow is a connector as a workflow of openwop, with one node.
type workflow struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Version     string         `json:"version"`
	Description string         `json:"description,omitempty"`
	Nodes       []workflowNode `json:"nodes"`
	Edges       []struct{}     `json:"edges"`
	Triggers    []trigger      `json:"triggers"`
	Variables   []variable     `json:"variables"`
	Metadata    map[string]any `json:"metadata"`
	Settings    timeouts       `json:"settings"`
}

type workflowNode struct {
	ID       string         `json:"id"`
	TypeID   string         `json:"typeId"`
	Name     string         `json:"name"`
	Position position       `json:"position"`
	Config   map[string]any `json:"config"`
	Inputs   map[string]any `json:"inputs"`
}

type position struct {
	X int `json:"x"`
	Y int `json:"y"`
}

type trigger struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Enabled bool   `json:"enabled"`
}

type variable struct {
	Name         string          `json:"name"`
	Type         string          `json:"type"`
	Required     bool            `json:"required,omitempty"`
	DefaultValue json.RawMessage `json:"defaultValue,omitempty"`
	Sensitive    bool            `json:"sensitive,omitempty"`
}

type timeouts struct {
	Timeout int64 `json:"timeout" doc:"ms; what a run may take in all"`
}

// workflowAPI has the route that shows a connector as a workflow.
type workflowAPI struct {
	workflowFinder
	timeout int64 // limit of a run's total time, in ms
}

// A workflowFinder finds what a workflow id means.
type workflowFinder struct {
	connections host.Connections
	connectors  host.Connectors
}

func (a *workflowAPI) routes() []route {
	return []route{{
		Route: web.Route{Method: "GET", Path: "/v1/workflows/:workflowId", Scope: access.ManifestRead,
			Handle: a.getWorkflow},
		see: "api.md#workflow-view", summary: "A connector as a workflow with one node", answer: workflow{},
	}}
}

// connection returns the connection that a workflow id names, directly or as the only one of a
// connector. It is nil for a conformance connector, which has none. The error is the same as for
// starting it.
func (a workflowFinder) connection(c *fiber.Ctx, id string) (*host.Connection, error) {
	ctx := web.Context(c)
	conn, err := a.connections.Connection(ctx, store.ConnectionID(id))
	if err == nil {
		return &conn, nil
	}
	if p, known := web.ProblemOf(err); !errors.Is(err, store.ErrNotFound) && (!known || p.Code != "not_found") {
		return nil, err
	}
	connector, err := a.connectors.Connector(ctx, id)
	if err != nil || connector.Conformance {
		return nil, err
	}
	if len(connector.Connections) != 1 {
		return nil, store.ErrNotFound
	}
	conn, err = a.connections.Connection(ctx, store.ConnectionID(connector.Connections[0].ConnectionID))
	return &conn, err
}

func (a *workflowAPI) getWorkflow(c *fiber.Ctx) error {
	id, err := web.ID(c, "workflowId")
	if err != nil {
		return err
	}
	name := id
	p := web.Principal(c)
	if conn, err := a.connections.Connection(web.Context(c), store.ConnectionID(id)); err == nil {
		if !p.SeesConnection(idOf(conn)) {
			return web.NotFound()
		}
		if err := usable(p, conn); err != nil {
			return err
		}
		name = conn.ConnectorName
	}
	connector, err := a.connectors.Connector(web.Context(c), name)
	if err != nil {
		return err
	}
	m, err := abi.ReadManifest(connector.Manifest)
	if err != nil {
		return err
	}
	w := workflow{
		ID: id, Name: connector.DisplayName, Version: connector.Version, Description: connector.Description,
		Nodes: []workflowNode{{ID: m.Node(), TypeID: connector.Name, Name: connector.DisplayName,
			Config: map[string]any{}, Inputs: map[string]any{}}},
		Edges: []struct{}{}, Triggers: []trigger{{ID: "manual", Type: "manual", Enabled: true}},
		Variables: variables(m, connector.Conformance), Metadata: map[string]any{}, Settings: timeouts{a.timeout},
	}
	if w.Name == "" {
		w.Name, w.Nodes[0].Name = connector.Name, connector.Name
	}
	return web.JSON(c, 200, w)
}

// variables lists run options, never values. A conformance connector's variables are its settings.
func variables(m *abi.Manifest, conformance bool) []variable {
	if !conformance {
		return []variable{
			{Name: "collectionMode", Type: "string"},
			{Name: "scope", Type: "object"},
			{Name: "persistState", Type: "boolean", DefaultValue: json.RawMessage("true")},
			{Name: "trace", Type: "boolean", DefaultValue: json.RawMessage("false")},
		}
	}
	out := []variable{}
	if m.Sluice == nil || m.Sluice.Settings == nil {
		return out
	}
	required := map[string]bool{}
	for _, name := range m.Sluice.Settings.Required {
		required[name] = true
	}
	for _, s := range m.Sluice.Settings.Properties {
		out = append(out, variable{Name: s.Name, Type: s.Type, Required: required[s.Name], DefaultValue: s.Default})
	}
	return out
}
