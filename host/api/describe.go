package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
)

// implementation names this program in the discovery document.
type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Vendor  string `json:"vendor"`
}

// descriptionAPI has the routes that describe this host. They need no credential.
type descriptionAPI struct {
	implementation    implementation
	connectors        host.Connectors
	limits            map[string]int64
	browser           bool
	openapi, asyncapi func() ([]byte, error) // generated on first use
}

func (a *descriptionAPI) routes() []route {
	return documented("api.md#discovery", []route{
		{Route: web.Route{Method: "GET", Path: "/.well-known/openwop", Open: true, Handle: a.discovery},
			summary: "What this host can do", answer: map[string]any{}},
		{Route: web.Route{Method: "GET", Path: "/v1/openapi.json", Open: true, Handle: a.openAPIDocument},
			summary: "This document", answer: map[string]any{}},
		{Route: web.Route{Method: "GET", Path: "/v1/asyncapi.yaml", Open: true, Handle: a.asyncAPIDocument},
			summary: "The event streams as an AsyncAPI document", media: "application/yaml"},
	})
}

func (a *descriptionAPI) openAPIDocument(c *fiber.Ctx) error {
	text, err := a.openapi()
	if err != nil {
		return err
	}
	return web.Bytes(c, 200, text)
}

func (a *descriptionAPI) asyncAPIDocument(c *fiber.Ctx) error {
	text, err := a.asyncapi()
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "application/yaml")
	return c.Status(200).Send(text)
}

// discovery lists what this host can do: everything in it works, and what does not work is not in
// it.
func (a *descriptionAPI) discovery(c *fiber.Ctx) error {
	connectors, err := a.connectors.Connectors(web.Context(c))
	if err != nil {
		return err
	}
	body, err := web.Encode(a.capabilities(connectors))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	c.Set(fiber.HeaderCacheControl, "public, max-age=300")
	c.Set("Capabilities-Etag", `"`+hex.EncodeToString(sum[:16])+`"`)
	return web.Bytes(c, 200, body)
}

func (a *descriptionAPI) capabilities(connectors []host.Connector) map[string]any {
	bindings := []string{"connector.network", "connector.filesystem", "connector.interactive"}
	if a.browser {
		bindings = append(bindings, "connector.browser")
	}
	d := map[string]any{
		"protocolVersion":    "1.0",
		"supportedEnvelopes": []string{"clarification.request"},
		"schemaVersions":     map[string]int{"clarification.request": 1},
		"limits": map[string]int64{
			"clarificationRounds": a.limits["limits.interactions_per_run"], "schemaRounds": 0, "envelopesPerTurn": 0,
			"maxNodeExecutions": 64,
		},
		"implementation": a.implementation, "engineVersion": 1, "eventLogSchemaVersion": 1,
		"supportedTransports": []string{"rest"},
		"configurable":        configurableSchema,
		"runtimeCapabilities": bindings,
		"secrets": map[string]any{"supported": true, "scopes": []string{"tenant", "run"},
			"resolution": "host-managed"},
		"testing":     map[string]any{"testKeyPrefix": "slk_test_"},
		"compliance":  map[string]any{"defaultMode": "mask"},
		"replay":      map[string]any{"supported": true, "modes": []string{"branch"}},
		"debugBundle": map[string]any{"supported": true},
		"runs": map[string]any{"pauseResume": map[string]any{"supported": true,
			"drainPolicies": []string{"immediate", "drain-current-node"}}},
		"idempotency": map[string]any{"supported": true, "retentionSeconds": 86400, "ackTimeoutSeconds": 30},
		"webhooks":    map[string]any{"supported": true, "signatureAlgorithms": []string{"v1"}},
		"extensions": map[string]any{"sluice": map[string]any{
			"apiVersion": 1, "stage": 1,
			"features": []string{"connectors", "connections", "grants", "secrets", "schedules", "records", "state",
				"assistance", "audit"},
			"limits": a.published(),
		}},
	}
	if f := fixtures(connectors); len(f) > 0 {
		d["fixtures"] = f
	}
	return d
}

// published returns the limits in force by name, and those that clients of the API encounter.
func (a *descriptionAPI) published() map[string]int64 {
	l := map[string]int64{
		"maxRequestBodyBytes": web.MaxBody, "maxRunDurationSec": a.limits["budget.total"] / 1000,
	}
	maps.Copy(l, a.limits)
	return l
}

// configurableSchema describes the overlay keys that are supported.
var configurableSchema = json.RawMessage(`{"type":"object","properties":{
	"recursionLimit":{"type":"integer","minimum":1},
	"sluice":{"type":"object","properties":{"budgets":{"type":"object","additionalProperties":{"type":"integer","minimum":1}}}}}}`)

// fixtures returns the installed conformance connectors.
func fixtures(connectors []host.Connector) []string {
	var names []string
	for _, c := range connectors {
		if c.Conformance {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}
