package dashboard

import (
	"context"
	"net/url"
	"strconv"

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
}

// auditOf reads what a page of the log is asked to list.
func auditOf(c *fiber.Ctx) (host.AuditQuery, error) {
	q := web.QueryOf(c)
	want := host.AuditQuery{Action: q.Text("action", 128), Actor: q.Text("actor", 128), Target: q.Text("target", 256),
		Before: uint64(q.Int("before", 0, 0, 1<<53)), Limit: auditPage}
	return want, q.Err()
}

func (u *UI) lookAudit(ctx context.Context, want host.AuditQuery) (auditBody, error) {
	entries, next, err := u.Host.AuditEntries(ctx, want)
	b := auditBody{AuditQuery: want, Entries: entries}
	if next > 0 {
		b.Next = strconv.FormatUint(next, 10)
	}
	return b, err
}

func (u *UI) audit(c *fiber.Ctx) error {
	want, err := auditOf(c)
	if err != nil {
		return err
	}
	b, err := u.lookAudit(web.Context(c), want)
	if err != nil {
		return err
	}
	at := url.Values{"action": {want.Action}, "actor": {want.Actor}, "target": {want.Target}}
	return u.show(c, "audit", page{Title: "Audit", Nav: "audit", Live: "/ui/live/audit?" + at.Encode(), Body: b})
}

// auditLive streams the newest entries.
func (u *UI) auditLive(c *fiber.Ctx) error {
	want, err := auditOf(c)
	if err != nil {
		return err
	}
	return u.follow(c, "", "audit", func(ctx context.Context) ([]region, error) {
		b, err := u.lookAudit(ctx, want)
		if err != nil {
			return nil, err
		}
		count, err := u.badge(ctx)
		return []region{{"badge", "badge", count}, {"entries", "entries", b}}, err
	})
}
