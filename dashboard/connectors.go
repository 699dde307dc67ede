package dashboard

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
)

// connectorUI serves the pages of connectors, and installs and removes them.
type connectorUI struct {
	*frame
	connectors  host.Connectors
	connections host.Connections
}

func (u *connectorUI) routes() []web.Route {
	return append(renewed(u.frame, "/ui/connectors",
		content{Title: "Connectors", Nav: "connectors", Live: "/ui/live/connectors"}, u.lookConnectors, "list"),
		upload("/ui/connectors/inspect", u.inspect),
		upload("/ui/connectors", u.install),
		page("/ui/connectors/:connectorName", u.showConnector),
		page("/ui/connectors/:connectorName/connect", u.review),
		action("/ui/connectors/:connectorName/uninstall", u.uninstall),
	)
}

func (u *connectorUI) lookConnectors(ctx context.Context) (gallery, error) {
	all, err := u.connectors.Connectors(ctx)
	return galleryOf(all), err
}

func (u *connectorUI) showConnector(c *fiber.Ctx) error {
	name, err := web.ID(c, "connectorName")
	if err != nil {
		return err
	}
	x, err := u.connectors.Connector(web.Context(c), name)
	if err != nil {
		return err
	}
	return u.show(c, "connector", content{Title: x.DisplayName, Nav: "connectors", Body: x})
}

// inspect shows what an uploaded module is and asks for, without storing it.
func (u *connectorUI) inspect(c *fiber.Ctx) error {
	q, err := uploaded(c)
	if err != nil {
		return err
	}
	found, err := u.connectors.InspectConnector(web.Context(c), q)
	if err != nil {
		return err
	}
	return u.write(c, "connectors", "inspection", found)
}

// install installs the inspected module, which is identified by its digest.
func (u *connectorUI) install(c *fiber.Ctx) error {
	q, err := uploaded(c)
	if err != nil {
		return err
	}
	x, _, err := u.connectors.InstallConnector(web.Context(c), q)
	if err != nil {
		return err
	}
	return leave(c, "/ui/connectors/"+x.Name+"/connect")
}

func (u *connectorUI) uninstall(c *fiber.Ctx) error {
	name, err := web.ID(c, "connectorName")
	if err != nil {
		return err
	}
	if _, err := formOf(c); err != nil {
		return err
	}
	if err := u.connectors.UninstallConnector(web.Context(c), name, ""); err != nil {
		return err
	}
	return leave(c, "/ui/connectors")
}

var parts = []string{"module", "manifest", "signature", "expectedDigest", "force"}

// uploaded reads a multipart form with a module.
func uploaded(c *fiber.Ctx) (host.InstallConnector, error) {
	if web.ContentType(c) != "multipart/form-data" {
		return host.InstallConnector{},
			web.NewProblem(0, "unsupported_media_type", "A module is uploaded as multipart/form-data.")
	}
	if _, err := web.RawBody(c); err != nil {
		return host.InstallConnector{}, err
	}
	seen, err := web.Parts(c, parts, "module")
	if err != nil {
		return host.InstallConnector{}, web.Invalid(web.Field{Path: "module", Rule: "a file that arrived whole"})
	}
	q := host.InstallConnector{Module: seen["module"], ExpectedDigest: string(seen["expectedDigest"]),
		Force: string(seen["force"]) == "true"}
	if len(seen["manifest"]) > 0 { // an unselected file arrives as an empty part
		q.Manifest = seen["manifest"]
	}
	if len(seen["signature"]) > 0 {
		q.Signature = seen["signature"]
	}
	if len(q.Module) == 0 {
		return q, web.Invalid(web.Field{Path: "module", Rule: "a WebAssembly module"})
	}
	return q, nil
}
