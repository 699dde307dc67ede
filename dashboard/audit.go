package dashboard

import (
	"context"
	"net/url"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
)

// auditPage is how many entries a page lists.
const auditPage = 50

// auditBody is a page of the audit log.
type auditBody struct {
	host.AuditQuery
	Entries []host.AuditEntry
	Next    string
	Shared  bool // entries say which host wrote them
}

// auditOf parses the query of the page.
func auditOf(c *fiber.Ctx) (host.AuditQuery, error) {
	q := web.QueryOf(c)
	want := host.AuditQuery{Action: q.Text("action", 128), Actor: q.Text("actor", 128), Target: q.Text("target", 256),
		Before: q.Text("before", 128), Limit: auditPage}
	return want, q.Err()
}

// auditUI serves the page of the audit log.
type auditUI struct {
	*frame
	audit host.AuditLog
}

func (u *auditUI) routes() []web.Route {
	return []web.Route{
		page("/ui/audit", u.listEntries),
		live("/ui/live/audit", u.auditLive),
	}
}

func (u *auditUI) lookAudit(ctx context.Context, want host.AuditQuery) (auditBody, error) {
	entries, next, err := u.audit.AuditEntries(ctx, want)
	shared := slices.ContainsFunc(entries, func(e host.AuditEntry) bool { return e.HostID != "" })
	return auditBody{AuditQuery: want, Entries: entries, Next: next, Shared: shared}, err
}

func (u *auditUI) listEntries(c *fiber.Ctx) error {
	want, err := auditOf(c)
	if err != nil {
		return err
	}
	b, err := u.lookAudit(web.Context(c), want)
	if err != nil {
		return err
	}
	at := url.Values{"action": {want.Action}, "actor": {want.Actor}, "target": {want.Target}}
	return u.show(c, "audit", content{Title: "Audit", Nav: "audit", Live: "/ui/live/audit?" + at.Encode(), Body: b})
}

// auditLive streams the newest entries to the page.
func (u *auditUI) auditLive(c *fiber.Ctx) error {
	want, err := auditOf(c)
	if err != nil {
		return err
	}
	return u.follow(c, "audit", func(ctx context.Context) (any, error) { return u.lookAudit(ctx, want) }, "entries")
}
