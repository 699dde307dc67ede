package ui

import (
	"context"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/dashboard/control"
	"github.com/sluicehost/sluice/dashboard/timeline"
	"github.com/sluicehost/sluice/dashboard/web"
	"github.com/sluicehost/sluice/store"
)

// runsPage is how many runs a page lists, and runsScanned how many rows it looks
// at for them.
const (
	runsPage    = 50
	runsScanned = 2000
)

// runsBody is a page of runs.
type runsBody struct {
	Runs        []timeline.Snapshot
	Connections []control.Connection
	Connection  string
	Status      string
	Next        string // id to continue behind, "" at the end
}

// recent are the newest runs, of all connections with "".
func (u *UI) recent(ctx context.Context, connection store.ConnectionID, limit int) ([]timeline.Snapshot, error) {
	rows, err := u.Store.Runs(ctx, connection, "", limit)
	if err != nil {
		return nil, err
	}
	var out []timeline.Snapshot
	for _, r := range rows {
		s, err := u.Streams.Brief(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (u *UI) runs(c *fiber.Ctx) error {
	q := web.QueryOf(c)
	b := runsBody{Connection: q.Text("connection", 64), Status: q.Text("status", 16)}
	before := store.RunID(q.Text("before", 64))
	if err := q.Err(); err != nil {
		return err
	}
	if !slices.Contains([]string{"", "active", "completed", "failed", "cancelled"}, b.Status) {
		return web.Invalid(web.Field{Path: "query.status", Rule: "active, completed, failed or cancelled"})
	}
	ctx := web.Context(c)
	var err error
	if b.Connections, err = u.Host.Connections(ctx); err != nil {
		return err
	}
	for looked := 0; looked < runsScanned && len(b.Runs) < runsPage; {
		rows, err := u.Store.Runs(ctx, store.ConnectionID(b.Connection), before, runsPage)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if len(b.Runs) == runsPage {
				break
			}
			looked, before = looked+1, r.ID
			if status := timeline.RowStatus(r); b.Status == "active" && status.Terminal() || b.Status != "" && b.Status != "active" && string(status) != b.Status {
				continue
			}
			s, err := u.Streams.Brief(ctx, r)
			if err != nil {
				return err
			}
			b.Runs = append(b.Runs, s)
		}
		b.Next = string(before)
		if len(rows) == 0 || before == rows[len(rows)-1].ID && len(rows) < runsPage {
			b.Next = "" // nothing is behind them
			break
		}
	}
	slices.SortFunc(b.Connections, byName)
	return u.show(c, "runs", page{Title: "Runs", Nav: "runs", Body: b})
}
