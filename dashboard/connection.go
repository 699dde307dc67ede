package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// connectionBody is what the page of a connection shows.
type connectionBody struct {
	host.Connection
	Requested  host.Requested
	Streams    []streamStats
	Runs       []timeline.Snapshot
	Gaps       []store.DetailGap
	Statistics host.Statistics
	Health     string
	Fields     []setting
	Given      []string // what it was given, in words
}

// streamStats are the counters of a stream with the tone of its freshness.
type streamStats struct {
	store.StreamStats
	Tone string
}

func byName(a, b host.Connection) int { return cmp.Compare(nameOf(a), nameOf(b)) }

func connectionOf(c *fiber.Ctx) (store.ConnectionID, error) {
	id, err := web.ID(c, "connectionId")
	return store.ConnectionID(id), err
}

// connectionUI serves the page of a connection and its actions.
type connectionUI struct {
	*frame
	connections host.Connections
	connectors  host.Connectors
	grants      host.Grants
	schedules   host.Schedules
	state       host.State
	secrets     host.Secrets
	rows        store.Runs
	stored      store.Store
}

func (u *connectionUI) routes() []web.Route {
	one := "/ui/connections/:connectionId"
	return []web.Route{
		page("/ui/connections", func(c *fiber.Ctx) error { return c.Redirect("/ui/", fiber.StatusSeeOther) }), // it lists them
		action("/ui/connections", u.createConnection),
		page(one, u.showConnection),
		page(one+"/start", u.start),
		live(one+"/live", u.connectionLive),
		part(one+"/history", u.history),
		action(one+"/change", u.changeConnection),
		action(one+"/dismiss", u.dismiss),
		action(one+"/delete", u.deleteConnection),
		action(one+"/reset", u.resetState),
		action(one+"/secret", u.setSecret),
		action(one+"/secret/remove", u.removeSecret),
	}
}

func (u *connectionUI) lookConnection(ctx context.Context, id store.ConnectionID) (b connectionBody, err error) {
	if b.Connection, err = u.connections.Connection(ctx, id); err != nil {
		return b, err
	}
	if b.Requested, err = u.grants.Requested(ctx, id); err != nil {
		return b, err
	}
	stats, err := u.stored.Streams(ctx, id)
	if err != nil {
		return b, err
	}
	for _, s := range stats {
		b.Streams = append(b.Streams, streamStats{s, freshness(u.now(), s.UpdatedAt)})
	}
	if b.Runs, err = recent(ctx, u.rows, u.streams, id, 10); err != nil {
		return b, err
	}
	row, err := u.stored.Connection(ctx, id)
	if err != nil {
		return b, err
	}
	space := store.GrantID("")
	if row.Grant != nil {
		space = row.Grant.ID
	}
	if b.Gaps, err = u.stored.Gaps(ctx, id, space, "pending"); err != nil {
		return b, err
	}
	if b.Schedule != nil {
		if b.Statistics, err = u.schedules.ScheduleStatistics(ctx, id); err != nil {
			return b, err
		}
	}
	for _, w := range b.Requested.Words {
		if b.Grant != nil && !slices.Contains(b.Requested.Missing, w) {
			b.Given = append(b.Given, w)
		}
	}
	b.Health, b.Fields = healthOf(b.Connection), settingsOf(row.Manifest, b.Settings)
	for _, r := range b.Runs {
		if string(r.RunID) == string(b.ActiveRunID) {
			b.Health = string(r.Status) // it may be waiting for the owner
		}
	}
	return b, nil
}

func (u *connectionUI) showConnection(c *fiber.Ctx) error {
	id, err := connectionOf(c)
	if err != nil {
		return err
	}
	b, err := u.lookConnection(web.Context(c), id)
	if err != nil {
		return err
	}
	return u.show(c, "connection", content{Title: nameOf(b.Connection), Nav: "overview",
		Live: "/ui/connections/" + string(id) + "/live", Chart: true, Body: b})
}

func (u *connectionUI) connectionLive(c *fiber.Ctx) error {
	id, err := connectionOf(c)
	if err != nil {
		return err
	}
	if _, err := u.connections.Connection(web.Context(c), id); err != nil {
		return err
	}
	return u.follow(c, "connection", func(ctx context.Context) (any, error) { return u.lookConnection(ctx, id) },
		"head", "streams", "runs", "grant", "schedule")
}

// historyRuns is how many runs the chart shows.
const historyRuns = 200

// history serves the data of a connection's chart: for every finished run when it began, what it
// stored and how long it took.
func (u *connectionUI) history(c *fiber.Ctx) error {
	id, err := connectionOf(c)
	if err != nil {
		return err
	}
	rows, err := u.rows.Runs(web.Context(c), id, "", historyRuns)
	if err != nil {
		return err
	}
	type series struct {
		At      []int64   `json:"at"`
		Records []int64   `json:"records"`
		Seconds []float64 `json:"seconds"`
		Failed  []bool    `json:"failed"`
	}
	out := series{[]int64{}, []int64{}, []float64{}, []bool{}}
	for _, r := range slices.Backward(rows) {
		if r.FinishedAt == nil {
			continue
		}
		var result struct {
			Records int64 `json:"records_flushed"`
		}
		_ = json.Unmarshal(r.Result, &result) // a result without counts stored nothing
		out.At = append(out.At, r.StartedAt.Unix())
		out.Records = append(out.Records, result.Records)
		out.Seconds = append(out.Seconds, r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond).Seconds())
		out.Failed = append(out.Failed, timeline.RowStatus(r) == timeline.Failed)
	}
	return web.JSON(c, 200, out)
}

func (u *connectionUI) createConnection(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	ctx, name := web.Context(c), f.text("connector", 128)
	x, err := u.connectors.Connector(ctx, name)
	if err != nil {
		return err
	}
	q := host.NewConnection{ConnectorName: name, ConnectionID: f.text("connectionId", 64),
		DisplayName:     f.text("displayName", 80),
		CollectionSince: f.text("collectionSince", 32), Settings: f.settings(x.Manifest)}
	if err := f.err(); err != nil {
		return err
	}
	conn, err := u.connections.CreateConnection(ctx, q)
	if err != nil {
		return placed(err, settingFields(x.Manifest))
	}
	return leave(c, "/ui/connections/"+conn.ConnectionID+"/grant")
}

// changeConnection applies the form's changes.
func (u *connectionUI) changeConnection(c *fiber.Ctx) error {
	id, f, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	ctx := web.Context(c)
	now, err := u.connections.Connection(ctx, id)
	if err != nil {
		return err
	}
	var q host.ChangeConnection
	var fields map[string]string
	if f.on("enabled") {
		on := f.raw("enabled") == "true"
		q.Enabled = &on
	}
	if f.on("displayName") {
		name, since := f.text("displayName", 80), f.text("collectionSince", 32)
		q.DisplayName, q.CollectionSince = &name, &since
		x, err := u.connectors.Connector(ctx, now.ConnectorName)
		if err != nil {
			return err
		}
		q.Settings, fields = f.settings(x.Manifest), settingFields(x.Manifest)
	}
	if err := f.err(); err != nil {
		return err
	}
	if _, err := u.connections.ChangeConnection(ctx, id, q, nil); err != nil {
		return placed(err, fields)
	}
	return reload(c, nil)
}

func connectionAndForm(c *fiber.Ctx) (store.ConnectionID, *form, error) {
	id, err := connectionOf(c)
	if err != nil {
		return "", nil, err
	}
	f, err := formOf(c)
	return id, f, err
}

func (u *connectionUI) dismiss(c *fiber.Ctx) error {
	id, _, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	return reload(c, u.state.DismissAttention(web.Context(c), id))
}

// deleteConnection requires the id to be typed if data is deleted as well.
func (u *connectionUI) deleteConnection(c *fiber.Ctx) error {
	id, f, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	erase := f.on("erase")
	if erase && f.text("confirm", 64) != string(id) {
		f.fail("confirm", "the id of the connection, since its data is erased")
		return f.err()
	}
	if err := u.connections.DeleteConnection(web.Context(c), id, erase); err != nil {
		return err
	}
	return leave(c, "/ui/")
}

// resetState makes the next run collect one stream, or all, from the beginning.
func (u *connectionUI) resetState(c *fiber.Ctx) error {
	id, f, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	ctx := web.Context(c)
	row, err := u.stored.Connection(ctx, id)
	if err != nil {
		return err
	}
	space := store.GrantID("")
	if row.Grant != nil {
		space = row.Grant.ID
	}
	if err := u.state.ResetState(ctx, id, space, store.Stream(f.text("stream", 256))); err != nil {
		return err
	}
	return done(c, "The next run begins from the beginning.")
}

// setSecret stores a value, which is never shown again.
func (u *connectionUI) setSecret(c *fiber.Ctx) error {
	defer web.Wipe(c)
	id, f, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	name, value := f.text("name", 128), []byte(f.raw("value"))
	if len(value) == 0 {
		f.fail("value", "filled in")
	}
	if err := f.err(); err != nil {
		return err
	}
	return reload(c, u.secrets.SetSecret(web.Context(c), id, name, value))
}

func (u *connectionUI) removeSecret(c *fiber.Ctx) error {
	id, f, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	return reload(c, u.secrets.RemoveSecret(web.Context(c), id, f.text("name", 128)))
}
