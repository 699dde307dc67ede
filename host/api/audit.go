package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// auditAPI has the route of the audit log.
type auditAPI struct{ audit host.AuditLog }

func (a *auditAPI) routes() []route {
	return []route{{
		Route: web.Route{Method: "GET", Path: "/v1/audit", Scope: access.AuditRead, Whole: true,
			Handle: a.listEntries},
		see:     "api.md#api-keys-audit-feed",
		summary: "What was done, newest first; each entry's hash covers the one before",
		answer:  web.List[host.AuditEntry]{},
		query: append([]parameter{
			{name: "action", typ: "string", text: "Only this action."},
			{name: "actor", typ: "string", text: "Only by this principal."},
			{name: "target", typ: "string", text: "Only on this thing."},
			{name: "from", typ: "string", text: "From this time on, RFC 3339."},
			{name: "until", typ: "string", text: "Before this time, RFC 3339."},
		}, paging...),
	}, {
		Route: web.Route{Method: "GET", Path: "/v1/audit/copies", Scope: access.AuditRead, Whole: true,
			Handle: a.listCopies},
		see:     "api.md#api-keys-audit-feed",
		summary: "What hosts that share a store copied into it of their audit logs, checked as a whole",
		answer:  web.List[host.AuditCopy]{},
	}}
}

func (a *auditAPI) listCopies(c *fiber.Ctx) error {
	all, err := a.audit.AuditCopies(web.Context(c))
	if err != nil {
		return err
	}
	return web.Listed(c, all, "")
}

func (a *auditAPI) listEntries(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	query := host.AuditQuery{
		Action: q.Text("action", 128), Actor: q.Text("actor", 256), Target: q.Text("target", 256),
		From: q.Time("from"), Until: q.Time("until"), Before: page.After, Limit: page.Limit,
	}
	if err := q.Err(); err != nil {
		return err
	}
	entries, next, err := a.audit.AuditEntries(web.Context(c), query)
	if err != nil {
		return err
	}
	return web.Listed(c, entries, next)
}
