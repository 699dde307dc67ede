package ui

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/dashboard/control"
	"github.com/sluicehost/sluice/dashboard/web"
)

// auditPage is how many entries a page lists.
const auditPage = 50

func (u *UI) audit(c *fiber.Ctx) error {
	q := web.QueryOf(c)
	want := control.AuditQuery{Action: q.Text("action", 128), Actor: q.Text("actor", 128), Target: q.Text("target", 256),
		Before: uint64(q.Int("before", 0, 0, 1<<53)), Limit: auditPage}
	if err := q.Err(); err != nil {
		return err
	}
	entries, next, err := u.Host.AuditEntries(web.Context(c), want)
	if err != nil {
		return err
	}
	body := struct {
		control.AuditQuery
		Entries []control.AuditEntry
		Next    string
	}{AuditQuery: want, Entries: entries}
	if next > 0 {
		body.Next = strconv.FormatUint(next, 10)
	}
	return u.show(c, "audit", page{Title: "Audit", Nav: "audit", Body: body})
}
