package api

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// installSource is the JSON body of an install from bytes that the host has.
type installSource struct {
	Source         moduleSource    `json:"source"`
	Manifest       json.RawMessage `json:"manifest,omitempty"`
	ExpectedDigest string          `json:"expectedDigest,omitempty"`
}

type moduleSource struct {
	Type   string `json:"type" enum:"digest"`
	Digest string `json:"digest"`
}

// connectorVersion is one installed version.
type connectorVersion struct {
	Version      string         `json:"version"`
	ModuleDigest string         `json:"moduleDigest"`
	InstalledAt  time.Time      `json:"installedAt"`
	Signature    host.Signature `json:"signature"`
	IsDefault    bool           `json:"isDefault"`
	Connections  []string       `json:"connections"`
}

type chooseVersion struct {
	Version string `json:"version"`
}

// moduleParts are the parts of an upload: the module, its manifest unless embedded, its minisign
// signature, the publisher's key, its digest, force to install despite warnings, and conformance
// for connectors that only test clients.
var moduleParts = []string{"module", "manifest", "signature", "key", "expectedDigest", "force", "conformance"}

// connectorAPI has the routes of connectors. All connections share a connector's module, so a key
// for some of them cannot change it.
type connectorAPI struct {
	find       lookup
	connectors host.Connectors
}

func (a *connectorAPI) routes() []route {
	one := "/v1/connectors/:connectorName"
	refused := []string{"connector_version_conflict", "connector_invalid", "module_invalid", "module_compile_timeout",
		"module_compile_memory",
		"module_compile_failed", "signature_required", "signature_invalid", "sandbox_escape_attempt"}
	return documented("api.md#connectors", []route{
		{Route: web.Route{Method: "POST", Path: "/v1/connectors", Scope: access.ConnectorsManage, Whole: true,
			Keyed: true, Upload: true, Handle: a.installConnector},
			summary: "Install a module; nothing is granted and no guest code runs", form: moduleParts,
			answer: host.Connector{}, status: 201, also: []int{200}, codes: refused},
		{Route: web.Route{Method: "POST", Path: "/v1/connectors", Verb: "inspect", Scope: access.ConnectorsManage,
			Upload: true, Handle: a.inspectConnector},
			summary: "Look at a module and store nothing", form: moduleParts, answer: host.Inspection{},
			codes: refused},
		{Route: web.Route{Method: "GET", Path: "/v1/connectors", Scope: access.ManifestRead, Handle: a.listConnectors},
			summary: "List connectors, each with its connections", query: paging, answer: web.List[host.Connector]{}},
		{Route: web.Route{Method: "GET", Path: one, Scope: access.ManifestRead, Handle: found(a.connector)},
			summary: "One connector", answer: host.Connector{}},
		{Route: web.Route{Method: "GET", Path: one + "/versions", Scope: access.ManifestRead, Handle: a.listVersions},
			summary: "The installed versions of a connector", query: paging, answer: web.List[connectorVersion]{}},
		{Route: web.Route{Method: "PUT", Path: one + "/default", Scope: access.ConnectorsManage, Whole: true,
			Keyed: true, Handle: a.chooseDefault},
			summary: "Choose the version that new connections get", body: chooseVersion{}, answer: host.Connector{}},
		{Route: web.Route{Method: "DELETE", Path: one, Scope: access.ConnectorsManage, Whole: true, Keyed: true,
			Handle: a.uninstallConnector},
			summary: "Uninstall a connector, or one version",
			query:   []parameter{{name: "version", typ: "string", text: "Only this version."}},
			codes:   []string{"connector_in_use"}},
		{Route: web.Route{Method: "GET", Path: "/v1/publishers", Scope: access.ManifestRead, Whole: true,
			Handle: listAll(a.connectors.Pins)},
			summary: "The publishers' keys that are pinned", answer: web.List[host.Pin]{}},
	})
}

func (a *connectorAPI) installConnector(c *fiber.Ctx) error {
	q, err := install(c)
	if err != nil {
		return err
	}
	// A forced module inherits the grants of the version before it, so forcing requires the right
	// to approve grants.
	if q.Force && !web.Principal(c).Allows(access.GrantsApprove) {
		return web.NewProblem(0, "forbidden",
			"Only who may approve grants may force a module that needs a second look.").With("scopeRequired",
			access.GrantsApprove)
	}
	connector, created, err := a.connectors.InstallConnector(web.Context(c), q)
	if err != nil {
		return err
	}
	if !created {
		return web.JSON(c, 200, connector)
	}
	return web.Created(c, "/v1/connectors/"+connector.Name, connector)
}

func (a *connectorAPI) inspectConnector(c *fiber.Ctx) error {
	q, err := install(c)
	if err != nil {
		return err
	}
	found, err := a.connectors.InspectConnector(web.Context(c), q)
	return web.Answer(c, found, err)
}

// install reads an upload, or JSON that names bytes in the store.
func install(c *fiber.Ctx) (host.InstallConnector, error) {
	if web.ContentType(c) == "multipart/form-data" {
		return uploaded(c)
	}
	var q installSource
	if err := web.Body(c, &q); err != nil {
		return host.InstallConnector{}, err
	}
	if q.Source.Type != "digest" {
		return host.InstallConnector{}, web.Invalid(web.Field{Path: "source.type",
			Rule: "digest; modules are uploaded as multipart/form-data"})
	}
	return host.InstallConnector{Digest: q.Source.Digest, Manifest: q.Manifest, ExpectedDigest: q.ExpectedDigest}, nil
}

// uploaded reads a module with the parts beside it.
func uploaded(c *fiber.Ctx) (host.InstallConnector, error) {
	var q host.InstallConnector
	seen, err := web.Parts(c, moduleParts, "module")
	if err != nil {
		return q, err
	}
	if len(seen["module"]) == 0 {
		return q, web.Invalid(web.Field{Path: "module", Rule: "the bytes of a WebAssembly module"})
	}
	return host.InstallConnector{
		Module: seen["module"], Manifest: seen["manifest"], Signature: seen["signature"], Key: string(seen["key"]),
		ExpectedDigest: string(seen["expectedDigest"]), Force: string(seen["force"]) == "true",
		Conformance: string(seen["conformance"]) == "true",
	}, nil
}

func (a *connectorAPI) listConnectors(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	all, err := a.connectors.Connectors(web.Context(c))
	if err != nil {
		return err
	}
	visible, err := a.find.visible(c)
	if err != nil {
		return err
	}
	for i := range all {
		all[i] = visible.redact(all[i])
	}
	return listed(c, page, all, func(x host.Connector) string { return x.Name })
}

func (a *connectorAPI) connector(c *fiber.Ctx) (host.Connector, error) {
	name, err := web.ID(c, "connectorName")
	if err != nil {
		return host.Connector{}, err
	}
	x, err := a.connectors.Connector(web.Context(c), name)
	if err != nil {
		return x, err
	}
	visible, err := a.find.visible(c)
	return visible.redact(x), err
}

// listVersions lists the installed version. There is only one at a time.
func (a *connectorAPI) listVersions(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	x, err := a.connector(c)
	if err != nil {
		return err
	}
	v := connectorVersion{Version: x.Version, ModuleDigest: x.ModuleDigest, InstalledAt: x.InstalledAt,
		Signature: x.Signature, IsDefault: true, Connections: []string{}}
	for _, ref := range x.Connections {
		v.Connections = append(v.Connections, ref.ConnectionID)
	}
	return listed(c, page, []connectorVersion{v}, func(v connectorVersion) string { return v.Version })
}

func (a *connectorAPI) chooseDefault(c *fiber.Ctx) error {
	x, err := a.connector(c)
	if err != nil {
		return err
	}
	var q chooseVersion
	if err := web.Body(c, &q); err != nil {
		return err
	}
	if q.Version != x.Version {
		return web.NotFound()
	}
	return web.JSON(c, 200, x)
}

func (a *connectorAPI) uninstallConnector(c *fiber.Ctx) error {
	name, err := web.ID(c, "connectorName")
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	version := q.Text("version", 128)
	if err := q.Err(); err != nil {
		return err
	}
	return web.Done(c, a.connectors.UninstallConnector(web.Context(c), name, version))
}
