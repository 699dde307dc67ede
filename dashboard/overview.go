package dashboard

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// overviewBody is what an owner sees first: what needs them, what there is, and what comes next.
type overviewBody struct {
	Asks        []timeline.Item
	Connections []connectionRow
	Next        []host.Schedule
	Recent      []timeline.Snapshot
	Connectors  int
	Info        host.Info
	Failing     []string // failed readiness checks
	Today       today
	Day         *plot // when connections run next
}

// recentRuns and nextRuns bound the lists.
const (
	recentRuns = 8
	nextRuns   = 6
)

// overviewUI serves the first page.
type overviewUI struct {
	*frame
	connections host.Connections
	connectors  host.Connectors
	system      host.System
	rows        store.Runs
}

func (u *overviewUI) routes() []web.Route {
	return renewed(u.frame, "/ui/", content{Title: "Overview", Nav: "overview", Live: "/ui/live/overview"}, u.lookOverview,
		"asks", "today", "connections", "beside")
}

func (u *overviewUI) lookOverview(ctx context.Context) (b overviewBody, err error) {
	if b.Asks, err = u.items(ctx); err != nil {
		return b, err
	}
	connections, err := u.connections.Connections(ctx)
	if err != nil {
		return b, err
	}
	waits := map[string]bool{}
	for _, i := range b.Asks {
		waits[string(i.ConnectionID)] = true
	}
	for _, c := range connections {
		row := connectionRow{Connection: c, Waits: waits[c.ConnectionID]}
		if len(b.Connections) < barsFor {
			p, err := u.lastRuns(ctx, store.ConnectionID(c.ConnectionID))
			if err != nil {
				return b, err
			}
			row.Runs = &p
		}
		b.Connections = append(b.Connections, row)
		if s := c.Schedule; s != nil && s.NextDueAt != nil {
			b.Next = append(b.Next, *s)
		}
	}
	slices.SortStableFunc(b.Connections, func(x, y connectionRow) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), byName(x.Connection, y.Connection))
	})
	slices.SortFunc(b.Next, func(x, y host.Schedule) int { return x.NextDueAt.Compare(*y.NextDueAt) })
	b.nextDay(u.now())
	b.Next = b.Next[:min(len(b.Next), nextRuns)]
	if b.Today, err = u.today(ctx); err != nil {
		return b, err
	}
	if len(b.Connections) == 0 {
		all, err := u.connectors.Connectors(ctx)
		if err != nil {
			return b, err
		}
		b.Connectors = len(all)
	}
	b.Info, b.Failing = u.system.Info(ctx), u.system.Ready(ctx)
	b.Recent, err = recent(ctx, u.rows, u.streams, "", recentRuns)
	return b, err
}

// healthOf returns one word for the state of a connection.
func healthOf(c host.Connection) string {
	switch {
	case c.ActiveRunID != "":
		return "running"
	case c.NeedsAttention:
		return "attention"
	case !c.Enabled:
		return "off"
	case !c.Ready:
		return "not ready"
	case c.LastRun == nil:
		return "new"
	case c.LastRun.Status == "failed":
		return "failed"
	case c.LastRun.Outcome == timeline.Partial:
		return leftOut
	}
	return "ready"
}

// A connectionRow is a connection in the list, with its recent runs and whether one waits for the
// owner.
type connectionRow struct {
	host.Connection
	Waits bool
	Runs  *plot // recent runs; nil if there are too many connections
}

// Todo returns the page on which the connection gets what it lacks.
func (c connectionRow) Todo() string { return nextStep(c.Connection) }

// rank sorts what needs attention first.
func rank(c connectionRow) int {
	if c.Waits {
		return -1
	}
	return slices.Index([]string{"attention", "failed", leftOut, "running", "not ready", "new", "ready", "off"},
		healthOf(c.Connection))
}

func nameOf(c host.Connection) string { return cmp.Or(c.DisplayName, c.ConnectionID) }

// freshness returns the tone for the age of the newest data.
func freshness(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "calm"
	case d < 36*time.Hour:
		return "good"
	case d < 14*24*time.Hour:
		return "calm"
	}
	return "warn"
}
