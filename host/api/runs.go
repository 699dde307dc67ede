package api

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

type cancelRun struct {
	Reason string `json:"reason,omitempty"`
}

type runStatus struct {
	RunID  store.RunID `json:"runId"`
	Status string      `json:"status"`
}

type pauseRun struct {
	Reason      string `json:"reason,omitempty"`
	DrainPolicy string `json:"drainPolicy,omitempty" enum:"drain-current-node|immediate"`
}

type pausedRun struct {
	RunID    store.RunID `json:"runId"`
	Status   string      `json:"status"`
	PausedAt string      `json:"pausedAt"`
}

type resumedRun struct {
	RunID     store.RunID `json:"runId"`
	Status    string      `json:"status"`
	ResumedAt string      `json:"resumedAt"`
}

// runAPI has the routes of runs: started, listed, read, steered, forked.
type runAPI struct {
	find       lookup
	runs       host.Runs
	list       store.Runs
	events     store.Timelines
	streams    *stream.Hub
	workflows  workflowFinder
	interrupts *interruptAPI
	base       baseURL
}

// A baseURL is the address of the host for clients; "" uses the Host header, which web has checked.
type baseURL string

func (b baseURL) of(c *fiber.Ctx) string {
	if b != "" {
		return string(b)
	}
	scheme := "http://"
	if web.Secure(c) {
		scheme = "https://"
	}
	return scheme + string(c.Request().Host())
}

func (a *runAPI) routes() []route {
	one := "/v1/runs/:runId"
	refused := []string{"run_already_active", "ambiguous_connection", "connection_not_ready", "rate_limited"}
	return documented("api.md#cancel-pause-resume", []route{
		{Route: web.Route{Method: "POST", Path: "/v1/runs", Scope: access.RunsCreate, Keyed: true, Upload: true,
			Handle: a.createRun},
			see: "api.md#creating-a-run", summary: "Start a run of a connection, or of a conformance connector",
			headers: []string{"X-Dedup", "traceparent", "tracestate"},
			body:    createRun{}, answer: createdRun{}, status: 201, codes: refused},
		{Route: web.Route{Method: "GET", Path: "/v1/runs", Scope: access.RunsRead, Handle: a.listRuns},
			see: "api.md#status-and-snapshot", summary: "List runs, newest first",
			answer: web.List[timeline.Snapshot]{}, query: append([]parameter{
				{name: "connectionId", typ: "string", text: "Only runs of a connection."},
				{name: "connectorName", typ: "string", text: "Only runs of a connector."},
				{name: "status", typ: "string", text: "Only runs that stand there.", words: statusNames(),
					repeat: true},
				{name: "outcome", typ: "string", text: "Only runs that came out so; partial: something was left out.",
					words: outcomes},
				{name: "triggerKind", typ: "string", text: "Only runs started so.", words: triggers},
				{name: "tag", typ: "string", text: "Only runs with a tag."},
				{name: "createdAfter", typ: "string", text: "RFC 3339."},
				{name: "createdBefore", typ: "string", text: "RFC 3339."},
			}, paging...)},
		{Route: web.Route{Method: "GET", Path: one, Scope: access.RunsRead, Handle: a.getRun},
			see: "api.md#status-and-snapshot", summary: "The snapshot of a run", answer: timeline.Snapshot{}},
		{Route: web.Route{Method: "GET", Path: one + "/result", Scope: access.RunsRead, Handle: a.result},
			see:     "runs.md#the-run-result",
			summary: "The result value of a run that is over; its cursors only with state:read",
			answer:  map[string]json.RawMessage{}, codes: []string{"conflict"}},
		{Route: web.Route{Method: "GET", Path: one + "/requests", Scope: access.AuditRead, Handle: a.requests},
			summary: "What a run asked of servers, oldest first", query: paging, answer: web.List[host.Request]{}},
		{Route: web.Route{Method: "GET", Path: one + "/recording", Scope: access.RunsRead, Whole: true,
			Handle: a.recording},
			see:     "api.md#running-what-is-not-stored",
			summary: "What a run that was started with given.record asked of servers and got, once",
			answer:  host.Recording{}},
		{Route: web.Route{Method: "GET", Path: one + "/timeline", Owner: true, Handle: a.timeline},
			see: "api.md#the-stored-timeline", summary: "The events of a run as they are stored",
			answer: storedEvents{},
			query:  []parameter{{name: "from", typ: "integer", text: "The first sequence."}}},
		{Route: web.Route{Method: "POST", Path: one + "/cancel", Scope: access.RunsCancel, Keyed: true,
			Handle: a.cancelRun},
			summary: "Cancel a run", body: cancelRun{}, answer: runStatus{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "pause", Scope: access.RunsCancel, Keyed: true,
			Handle: a.pauseRun},
			summary: "Pause a run", body: pauseRun{}, answer: pausedRun{}, status: 202, codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "resume", Scope: access.RunsCancel, Keyed: true,
			Handle: a.resumeRun},
			summary: "Let a paused run go on", body: cancelRun{}, answer: resumedRun{}, status: 202,
			codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "fork", Scope: access.RunsCreate, Keyed: true,
			Handle: a.forkRun},
			see: "api.md#fork", summary: "Branch off a run that is over", body: forkRun{}, answer: forkedRun{},
			status: 201,
			codes:  append([]string{"replay_unavailable", "events_expired", "conflict"}, refused...)},
	})
}

var triggers = []string{"manual", "scheduled", "retry"}

func statusNames() []string {
	var names []string
	for _, s := range timeline.Statuses() {
		names = append(names, string(s))
	}
	return names
}

func (a *runAPI) getRun(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	s, err := a.streams.Snapshot(web.Context(c), r.ID)
	if err != nil {
		return err
	}
	if web.Principal(c).Allows(access.ApprovalsRespond) {
		if err := a.interrupts.addToken(c, &s); err != nil {
			return err
		}
	}
	return web.JSON(c, 200, s)
}

// scanned bounds the runs that one page of a filtered list reads. The page may then be short and
// not be the last.
const scanned = 5000

func (a *runAPI) listRuns(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	filter, err := runFilterOf(c)
	if err != nil {
		return err
	}
	visible, err := a.find.visible(c)
	if err != nil {
		return err
	}
	ctx, before := web.Context(c), store.RunID(page.After)
	var out []timeline.Snapshot
	for looked := 0; looked < scanned; {
		rows, err := a.list.Runs(ctx, filter.connection, before, 500)
		if err != nil {
			return err
		}
		for _, r := range rows {
			before, looked = r.ID, looked+1
			if !filter.matchesRow(r) || !visible.has(r.ConnectionID) {
				continue
			}
			s, err := a.streams.Brief(ctx, r) // reads no log for a finished run
			if err != nil {
				return err
			}
			if !filter.matchesSnapshot(s) {
				continue
			}
			if out = append(out, s); len(out) == page.Limit {
				return web.Listed(c, out, string(before))
			}
		}
		if len(rows) < 500 {
			return web.Listed(c, out, "")
		}
	}
	return web.Listed(c, out, string(before))
}

// runFilter filters a list of runs.
type runFilter struct {
	connection              store.ConnectionID
	connector, trigger, tag string
	outcome                 string
	statuses                []string
	after, before           time.Time
}

// outcomes lists the outcomes of runs.
var outcomes = []string{"complete", timeline.Partial, "failed", "cancelled"}

func runFilterOf(c *fiber.Ctx) (runFilter, error) {
	q := web.QueryOf(c)
	f := runFilter{
		connection: store.ConnectionID(q.Text("connectionId", 64)), connector: q.Text("connectorName", 128),
		tag: q.Text("tag", 1024), trigger: q.OneOf("triggerKind", "", triggers...),
		outcome: q.OneOf("outcome", "", outcomes...), after: q.Time("createdAfter"), before: q.Time("createdBefore"),
	}
	for _, s := range c.Context().QueryArgs().PeekMulti("status") {
		f.statuses = append(f.statuses, string(s))
	}
	if err := q.Err(); err != nil {
		return f, err
	}
	if slices.ContainsFunc(f.statuses, func(s string) bool { return !slices.Contains(statusNames(), s) }) {
		return f, web.Invalid(web.Field{Path: "query.status", Rule: "one of " + strings.Join(statusNames(), ", ")})
	}
	return f, nil
}

// matchesRow checks what the row of a run shows, without reading its log.
func (f runFilter) matchesRow(r store.Run) bool {
	ended := timeline.RowStatus(r)
	return (f.trigger == "" || r.TriggerKind == f.trigger) && (f.tag == "" || slices.Contains(r.Request.Tags, f.tag)) &&
		(f.after.IsZero() || r.StartedAt.After(f.after)) && (f.before.IsZero() || r.StartedAt.Before(f.before)) &&
		(len(f.statuses) == 0 || !ended.Terminal() || slices.Contains(f.statuses, string(ended)))
}

// matchesSnapshot checks the rest.
func (f runFilter) matchesSnapshot(s timeline.Snapshot) bool {
	return (f.outcome == "" || s.Sluice.Outcome == f.outcome) &&
		(f.connector == "" || s.Sluice.ConnectorName == f.connector) &&
		(len(f.statuses) == 0 || slices.Contains(f.statuses, string(s.Status)))
}

func (a *runAPI) cancelRun(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	var q cancelRun
	if err := web.OpenBody(c, &q); err != nil {
		return err
	}
	status, err := a.runs.CancelRun(web.Context(c), r.ID, abi.Cut(abi.Clean(q.Reason), maxReason))
	if err != nil {
		return err
	}
	return web.JSON(c, 200, runStatus{r.ID, status})
}

func (a *runAPI) pauseRun(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	var q pauseRun
	if err := web.Body(c, &q); err != nil {
		return err
	}
	switch q.DrainPolicy {
	case "":
		q.DrainPolicy = "drain-current-node"
	case "drain-current-node", "immediate":
	default:
		return web.Invalid(web.Field{Path: "drainPolicy", Rule: "drain-current-node or immediate"})
	}
	at, err := a.runs.PauseRun(web.Context(c), r.ID, q.DrainPolicy, abi.Cut(abi.Clean(q.Reason), maxReason))
	if err != nil {
		return err
	}
	return web.JSON(c, 202, pausedRun{r.ID, "paused", store.Time(at)})
}

func (a *runAPI) resumeRun(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	var q cancelRun
	if err := web.Body(c, &q); err != nil {
		return err
	}
	at, err := a.runs.ResumeRun(web.Context(c), r.ID, abi.Cut(abi.Clean(q.Reason), maxReason))
	if err != nil {
		return err
	}
	return web.JSON(c, 202, resumedRun{r.ID, "running", store.Time(at)})
}

// result answers with the result of a finished run, as stored. Its cursors are only for those who
// may read state.
func (a *runAPI) result(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	if len(r.Result) == 0 {
		return web.NewProblem(0, "conflict", "The run is not over; it has no result yet.").With("runStatus", r.Status)
	}
	if web.Principal(c).Allows(access.StateRead) {
		return web.JSON(c, 200, r.Result) // web.JSON escapes it for HTML
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Result, &members); err != nil {
		return err
	}
	delete(members, "state")
	return web.JSON(c, 200, members)
}

// recording returns what a run recorded, once.
func (a *runAPI) recording(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	out, err := a.runs.Recording(web.Context(c), r.ID)
	if err != nil {
		return err
	}
	if out.Scrubbed == nil {
		out.Scrubbed = []string{}
	}
	return web.JSON(c, 200, out)
}

// timelinePage bounds the stored events in one answer.
const timelinePage = 500

// storedEvents are events of a run as stored.
type storedEvents struct {
	Events []store.Event `json:"events"`
	More   bool          `json:"more"`
}

func (a *runAPI) timeline(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	from := q.Int("from", 0, 0, 1<<53)
	if err := q.Err(); err != nil {
		return err
	}
	out := storedEvents{}
	if out.Events, err = a.events.Events(web.Context(c), r.ID, uint64(from), timelinePage); err != nil {
		return err
	}
	out.More = len(out.Events) == timelinePage
	return web.JSON(c, 200, out)
}

// requests lists the requests of a run to servers. A cursor is the number of entries on earlier
// pages.
func (a *runAPI) requests(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	skip := 0
	if page.After != "" {
		if skip, err = strconv.Atoi(page.After); err != nil {
			return err // only this host makes cursors
		}
	}
	list, err := a.runs.Requests(web.Context(c), r.ID, skip, page.Limit)
	if err != nil {
		return err
	}
	next := ""
	if len(list) == page.Limit {
		next = strconv.Itoa(skip + page.Limit)
	}
	return web.Listed(c, list, next)
}
