package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// health is the answer of host/web at /healthz and /readyz.
type health struct {
	Status string `json:"status"`
}

type readiness struct {
	Status string            `json:"status" enum:"ok|failed"`
	Checks map[string]string `json:"checks"`
}

// systemAPI has the routes of the host itself. host/web serves health, readiness and metrics, which
// are only described here.
type systemAPI struct {
	system  host.System
	backups host.Backups
}

func (a *systemAPI) routes() []route {
	return documented("api.md#health-metrics-system", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/system", Scope: access.AuditRead, Handle: a.getInfo},
			summary: "What this host is, and which limits are in force", answer: host.Info{}},
		{Route: web.Route{Method: "POST", Path: "/v1/backups", Owner: true, Keyed: true, Handle: a.backup},
			see:     "security.md#backup",
			summary: "Copy everything into one file on the host's machine; over the local socket only",
			body:    host.NewBackup{},
			answer:  host.Backup{}, status: 201, codes: []string{"forbidden", "conflict"}},
		{Route: web.Route{Method: "GET", Path: "/healthz", Open: true}, elsewhere: true,
			summary: "Whether the process serves", answer: health{}},
		{Route: web.Route{Method: "GET", Path: "/readyz", Open: true}, elsewhere: true,
			summary: "Whether it can do its work, check by check", answer: readiness{}, also: []int{503}},
		{Route: web.Route{Method: "GET", Path: "/metrics", Scope: access.MetricsRead}, elsewhere: true,
			summary: "Metrics as Prometheus reads them", media: "text/plain"},
	})
}

// backup makes a backup. It is only for callers who can write to the data directory anyway; a
// browser session may not name files. It continues if the client disconnects, and ends without a
// file if the host stops.
func (a *systemAPI) backup(c *fiber.Ctx) error {
	if web.Principal(c).Session() {
		return web.NewProblem(0, "forbidden",
			"A backup is asked for at the local socket: sluice backup, where the host runs.")
	}
	var q host.NewBackup
	if err := web.Body(c, &q); err != nil {
		return err
	}
	made, err := a.backups.Backup(web.PollContext(c), q)
	if err != nil {
		return err
	}
	return web.JSON(c, 201, made)
}

func (a *systemAPI) getInfo(c *fiber.Ctx) error {
	return web.JSON(c, 200, a.system.Info(web.Context(c)))
}
