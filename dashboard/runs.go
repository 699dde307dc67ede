package dashboard

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// runsPage bounds the runs on a page, runsScanned the rows read to find them.
const (
	runsPage    = 50
	runsScanned = 2000
)

// runStates lists the states to filter runs by.
var runStates = []string{"active", "completed", timeline.Partial, "failed", "cancelled"}

// runsBody is a page of runs.
type runsBody struct {
	Runs        []timeline.Snapshot
	Connections []host.Connection
	Connection  string
	Status      string
	Find        string // text in a run's id, connection, trigger, reason or failure
	Before      string // id after which the list begins; "" for the newest
	Next        string // id to continue after; "" at the end
}

// recent returns the newest runs of a connection, or of all for "".
func recent(ctx context.Context, list store.Runs, streams *stream.Hub, connection store.ConnectionID,
	limit int) ([]timeline.Snapshot, error) {
	rows, err := list.Runs(ctx, connection, "", limit)
	if err != nil {
		return nil, err
	}
	var out []timeline.Snapshot
	for _, r := range rows {
		s, err := streams.Brief(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// runsOf parses the query of the list.
func runsOf(c *fiber.Ctx) (runsBody, error) {
	q := web.QueryOf(c)
	b := runsBody{Connection: q.Text("connection", 64), Status: q.Text("status", 16), Before: q.Text("before", 64),
		Find: q.Text("find", maxFind)}
	if err := q.Err(); err != nil {
		return b, err
	}
	if !slices.Contains(runStates, b.Status) && b.Status != "" {
		return b, web.Invalid(web.Field{Path: "query.status", Rule: strings.Join(runStates, ", ")})
	}
	return b, nil
}

// runUI serves the list of runs and the page of one, with its actions.
type runUI struct {
	*frame
	runs        host.Runs
	rows        store.Store
	connections host.Connections
	files       host.Artifacts
	system      host.System
}

func (u *runUI) routes() []web.Route {
	return []web.Route{
		page("/ui/runs", u.listRuns),
		live("/ui/live/runs", u.runsLive),
		action("/ui/runs", u.startRun),
		page("/ui/runs/:runId", u.showRun),
		live("/ui/runs/:runId/live", u.runLive),
		part("/ui/runs/:runId/older", u.olderEvents),
		action("/ui/runs/:runId/cancel", u.cancelRun),
		action("/ui/runs/:runId/pause", u.pauseRun),
		action("/ui/runs/:runId/resume", u.resumeRun),
		action("/ui/runs/:runId/answer", u.answer),
	}
}

func (u *runUI) lookRuns(ctx context.Context, b runsBody) (runsBody, error) {
	var err error
	if b.Connections, err = u.connections.Connections(ctx); err != nil {
		return b, err
	}
	slices.SortFunc(b.Connections, byName)
	before := store.RunID(b.Before)
	for looked := 0; looked < runsScanned && len(b.Runs) < runsPage; {
		rows, err := u.rows.Runs(ctx, store.ConnectionID(b.Connection), before, runsPage)
		if err != nil {
			return b, err
		}
		for _, r := range rows {
			if len(b.Runs) == runsPage {
				break
			}
			looked, before = looked+1, r.ID
			status := timeline.RowStatus(r)
			wanted := b.Status == "" || b.Status == string(status) || b.Status == "active" && !status.Terminal() ||
				b.Status == timeline.Partial && status == timeline.Completed
			if !wanted {
				continue
			}
			s, err := u.streams.Brief(ctx, r)
			if err != nil {
				return b, err
			}
			if b.Status == timeline.Partial && s.Sluice.Outcome != timeline.Partial {
				continue
			}
			if !b.finds(s) {
				continue
			}
			b.Runs = append(b.Runs, s)
		}
		b.Next = string(before)
		if len(rows) == 0 || before == rows[len(rows)-1].ID && len(rows) < runsPage {
			b.Next = "" // there are no more
			break
		}
	}
	return b, nil
}

// finds reports whether a run contains the text searched for.
func (b runsBody) finds(s timeline.Snapshot) bool {
	said := ""
	if s.Error != nil {
		said = s.Error.Code + " " + s.Error.Message
	}
	all := strings.Join([]string{string(s.RunID), string(s.Sluice.ConnectionID), statusWord(s.Sluice.TriggerKind),
		s.Sluice.TerminalReason, reasonWord(s.Sluice.TerminalReason), said}, " ")
	return b.Find == "" || strings.Contains(strings.ToLower(all), strings.ToLower(b.Find))
}

// Chip returns the address of the list with another state.
func (b runsBody) Chip(status string) string {
	return "/ui/runs?" + url.Values{"connection": {b.Connection}, "status": {status}, "find": {b.Find}}.Encode()
}

// Older returns the address of the next page.
func (b runsBody) Older() string { return b.Chip(b.Status) + "&before=" + url.QueryEscape(b.Next) }

func (u *runUI) listRuns(c *fiber.Ctx) error {
	b, err := runsOf(c)
	if err == nil {
		b, err = u.lookRuns(web.Context(c), b)
	}
	if err != nil {
		return err
	}
	known := b.Connection == "" ||
		slices.ContainsFunc(b.Connections, func(x host.Connection) bool { return x.ConnectionID == b.Connection })
	at := url.Values{"connection": {b.Connection}, "status": {b.Status}, "before": {b.Before}, "find": {b.Find}}
	return u.show(c, "runs", content{Title: "Runs", Nav: "runs", Live: "/ui/live/runs?" + at.Encode(),
		Known: known && b.Before == "" && b.Find == "", Body: b})
}

// runsLive streams the list with its filters.
func (u *runUI) runsLive(c *fiber.Ctx) error {
	asked, err := runsOf(c)
	if err != nil {
		return err
	}
	return u.follow(c, "runs", func(ctx context.Context) (any, error) { return u.lookRuns(ctx, asked) }, "runs")
}
