package api

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// createRun is the body of A62.
type createRun struct {
	WorkflowID   string          `json:"workflowId"`
	Inputs       json.RawMessage `json:"inputs,omitempty"`
	Configurable json.RawMessage `json:"configurable,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	TenantID     string          `json:"tenantId,omitempty"`
	ScopeID      string          `json:"scopeId,omitempty"`
	CallbackURL  json.RawMessage `json:"callbackUrl,omitempty"`
	Given        *host.Given     `json:"given,omitempty"`
}

// createdRun is the answer of A62.
type createdRun struct {
	RunID     store.RunID     `json:"runId"`
	Status    timeline.Status `json:"status"`
	EventsURL string          `json:"eventsUrl"`
	StatusURL string          `json:"statusUrl"`
	TraceID   store.TraceID   `json:"traceId"`
}

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

// runRoutes are A62 to A83.
func (a *API) runRoutes() []route {
	one := "/v1/runs/:runId"
	refused := []string{"run_already_active", "ambiguous_connection", "connection_not_ready", "rate_limited"}
	return []route{
		{Route: web.Route{Method: "POST", Path: "/v1/runs", Scope: access.RunsCreate, Keyed: true, Upload: true, Handle: a.createRun},
			see: "api.md#creating-a-run", summary: "Start a run of a connection, or of a conformance connector", headers: []string{"X-Dedup", "traceparent", "tracestate"},
			body: createRun{}, answer: createdRun{}, status: 201, codes: refused},
		{Route: web.Route{Method: "GET", Path: "/v1/runs", Scope: access.RunsRead, Handle: a.listRuns},
			see: "api.md#status-and-snapshot", summary: "List runs, newest first", answer: web.List[timeline.Snapshot]{}, query: append([]parameter{
				{name: "connectionId", typ: "string", text: "Only runs of a connection."},
				{name: "connectorName", typ: "string", text: "Only runs of a connector."},
				{name: "status", typ: "string", text: "Only runs that stand there.", words: statusNames(), repeat: true},
				{name: "outcome", typ: "string", text: "Only runs that came out so; partial: something was left out.", words: outcomes},
				{name: "triggerKind", typ: "string", text: "Only runs started so.", words: triggers},
				{name: "tag", typ: "string", text: "Only runs with a tag."},
				{name: "createdAfter", typ: "string", text: "RFC 3339."},
				{name: "createdBefore", typ: "string", text: "RFC 3339."},
			}, paging...)},
		{Route: web.Route{Method: "GET", Path: one, Scope: access.RunsRead, Handle: a.getRun},
			see: "api.md#status-and-snapshot", summary: "The snapshot of a run", answer: timeline.Snapshot{}},
		{Route: web.Route{Method: "GET", Path: one + "/result", Scope: access.RunsRead, Handle: a.result},
			see: "runs.md#the-run-result", summary: "The result value of a run that is over; its cursors only with state:read", answer: map[string]json.RawMessage{}, codes: []string{"conflict"}},
		{Route: web.Route{Method: "GET", Path: one + "/requests", Scope: access.AuditRead, Handle: a.requests},
			see: "api.md#status-and-snapshot", summary: "What a run asked of servers, oldest first", query: paging, answer: web.List[host.Request]{}},
		{Route: web.Route{Method: "GET", Path: one + "/recording", Scope: access.RunsRead, Whole: true, Handle: a.recording},
			see: "api.md#running-what-is-not-stored", summary: "What a run that was started with given.record asked of servers and got, once", answer: host.Recording{}},
		{Route: web.Route{Method: "GET", Path: one + "/timeline", Owner: true, Handle: a.timeline},
			see: "api.md#the-stored-timeline", summary: "The events of a run as they are stored", answer: storedEvents[map[string]json.RawMessage]{},
			query: []parameter{{name: "from", typ: "integer", text: "The first sequence."}}},
		{Route: web.Route{Method: "POST", Path: one + "/cancel", Scope: access.RunsCancel, Keyed: true, Handle: a.cancelRun},
			see: "api.md#cancel-pause-resume", summary: "Cancel a run", body: cancelRun{}, answer: runStatus{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "pause", Scope: access.RunsCancel, Keyed: true, Handle: a.pauseRun},
			see: "api.md#cancel-pause-resume", summary: "Pause a run", body: pauseRun{}, answer: pausedRun{}, status: 202, codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "resume", Scope: access.RunsCancel, Keyed: true, Handle: a.resumeRun},
			see: "api.md#cancel-pause-resume", summary: "Let a paused run go on", body: cancelRun{}, answer: resumedRun{}, status: 202, codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "fork", Scope: access.RunsCreate, Keyed: true, Handle: a.forkRun},
			see: "api.md#fork", summary: "Branch off a run that is over", body: forkRun{}, answer: forkedRun{}, status: 201,
			codes: append([]string{"replay_unavailable", "events_expired", "conflict"}, refused...)},
	}
}

var triggers = []string{"manual", "scheduled", "retry"}

func statusNames() []string {
	var names []string
	for _, s := range timeline.Statuses() {
		names = append(names, string(s))
	}
	return names
}

// Bounds of A62 and A253.
const (
	maxTags     = 100
	maxTag      = 256
	maxMetadata = 50_000
	maxReason   = 500
	tenant      = "default"
)

func (a *API) createRun(c *fiber.Ctx) error {
	if c.Get("X-Force-Engine-Version") != "" {
		return web.NewProblem(0, "force_engine_version_forbidden", "This host runs connectors on one engine version.")
	}
	q, err := readCreateRun(c)
	if err != nil {
		return err
	}
	start, err := q.start(c)
	if err != nil {
		return err
	}
	if err := mayGive(web.Principal(c), q.Given); err != nil {
		return err
	}
	if err := a.mayStart(c, start.WorkflowID); err != nil {
		return err
	}
	var answer []byte
	start.With = func(r store.Run) []store.Write {
		body, err := web.Encode(a.created(c, r))
		if err != nil {
			return nil
		}
		answer = body
		return web.SlotOf(c).Writes(201, body, "/v1/runs/"+string(r.ID))
	}
	r, err := a.Host.StartRun(web.Context(c), start)
	if err != nil {
		return unknownWorkflow(a.hideActive(c, err))
	}
	if answer == nil {
		if answer, err = web.Encode(a.created(c, r)); err != nil {
			return err
		}
	}
	c.Set(fiber.HeaderLocation, "/v1/runs/"+string(r.ID))
	return web.Bytes(c, 201, answer)
}

// start checks the body as far as no host is needed.
func (q *createRun) start(c *fiber.Ctx) (host.StartRun, error) {
	var wrong []web.Field
	rule := func(path, text string) { wrong = append(wrong, web.Field{Path: path, Rule: text}) }
	if q.WorkflowID == "" && (q.Given == nil || q.Given.Module == nil) || len(q.WorkflowID) > 128 {
		rule("workflowId", "the id of a connection, or the name of a connector")
	}
	if q.CallbackURL != nil {
		return host.StartRun{}, web.NewProblem(0, "validation_error", "callbackUrl is not supported; subscribe a webhook instead.").With("unsupported", []string{"callbackUrl"})
	}
	if q.TenantID != "" && q.TenantID != tenant {
		return host.StartRun{}, web.NewProblem(0, "forbidden", "The credential is for another tenant.")
	}
	dedup := c.Get("X-Dedup")
	switch {
	case dedup != "" && dedup != "enforce":
		rule("X-Dedup", "enforce, or absent")
	case dedup == "enforce" && q.ScopeID == "":
		rule("scopeId", "given with X-Dedup")
	case len(q.ScopeID) > 256:
		rule("scopeId", "at most 256 bytes")
	}
	if !tagsFit(q.Tags) {
		rule("tags", tagRule)
	}
	wrong = append(wrong, small("metadata", q.Metadata)...)
	wrong = append(wrong, small("configurable", q.Configurable)...)
	start := host.StartRun{WorkflowID: q.WorkflowID, Given: q.Given, Dedup: dedup == "enforce", Request: store.Request{
		WorkflowID: q.WorkflowID, Tags: q.Tags, Metadata: q.Metadata, Configurable: q.Configurable, ScopeID: q.ScopeID,
		TraceParent: traceParent(c.Get("traceparent")),
	}}
	wrong = append(wrong, options(q.Inputs, &start)...)
	wrong = append(wrong, overlay(q.Configurable, &start)...)
	if len(wrong) > 0 {
		return start, web.Invalid(wrong...)
	}
	return start, nil
}

const tagRule = "at most 100 texts of 1 to 256 characters"

func tagsFit(tags []string) bool {
	return len(tags) <= maxTags && !slices.ContainsFunc(tags, func(t string) bool { return t == "" || len([]rune(t)) > maxTag })
}

// small bounds an object that is kept of a request and shown in every list.
func small(path string, raw json.RawMessage) []web.Field {
	if raw != nil && (!isObject(raw) || len(raw) > maxMetadata) {
		return []web.Field{{Path: path, Rule: "an object of at most 50 KB"}}
	}
	return nil
}

// options reads the run options of A65. The object is kept whole for conformance
// connectors, whose settings it is laid over.
func options(inputs json.RawMessage, start *host.StartRun) (wrong []web.Field) {
	if inputs == nil {
		return nil
	}
	v, err := strictjson.Parse(inputs, strictjson.ParseOptions{})
	if err != nil {
		return []web.Field{{Path: "inputs", Rule: "an object"}}
	}
	start.Inputs = inputs
	if m, ok := v.Member("collectionMode"); ok {
		text, isText := m.Text()
		if !isText || text != abi.FullRefresh && text != abi.Incremental {
			wrong = append(wrong, web.Field{Path: "inputs.collectionMode", Rule: "full_refresh or incremental"})
		}
		start.Mode = text
	}
	if m, ok := v.Member("scope"); ok && !m.Absent() {
		if !m.Is(strictjson.KindObject) {
			wrong = append(wrong, web.Field{Path: "inputs.scope", Rule: "an object with streams"})
		}
		start.Scope = slices.Clone(m.Raw)
	}
	if m, ok := v.Member("persistState"); ok {
		keep, isBool := m.Bool()
		if !isBool {
			wrong = append(wrong, web.Field{Path: "inputs.persistState", Rule: "true or false"})
		}
		start.NoPersist = !keep
	}
	for _, name := range []string{"trace", "record", "narrow"} {
		m, ok := v.Member(name)
		if ok && !m.Is(strictjson.KindBool) {
			wrong = append(wrong, web.Field{Path: "inputs." + name, Rule: "true or false"})
		}
		switch on, _ := m.Bool(); name {
		case "trace":
			start.Trace = on
		case "narrow":
			start.Narrow = on
		}
	}
	return wrong
}

// overlay reads the keys of configurable that are honoured (A67).
func overlay(configurable json.RawMessage, start *host.StartRun) (wrong []web.Field) {
	if configurable == nil {
		return nil
	}
	v, err := strictjson.Parse(configurable, strictjson.ParseOptions{})
	if err != nil {
		return []web.Field{{Path: "configurable", Rule: "an object"}}
	}
	if m, ok := v.Member("recursionLimit"); ok {
		if n, isInt := m.Int64(); !isInt || n < 1 {
			wrong = append(wrong, web.Field{Path: "configurable.recursionLimit", Rule: "a whole number, 1 or more"})
		}
	}
	m, ok := v.Member("sluice")
	if !ok {
		return wrong
	}
	if budgets, ok := m.Member("budgets"); ok {
		start.Budgets = map[string]int64{}
		for name, b := range budgets.Members() {
			n, isInt := b.Int64()
			if !isInt || n < 1 || !slices.Contains(budgetNames, name) {
				wrong = append(wrong, web.Field{Path: "configurable.sluice.budgets", Rule: "budgets in milliseconds, 1 or more"})
				break
			}
			start.Budgets[name] = n
		}
	}
	return wrong
}

var budgetNames = []string{"compute_ms", "active_ms", "stall_ms", "owner_wait_ms", "total_ms", "prepare_ms", "pause_ms"}

func isObject(raw json.RawMessage) bool {
	_, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	return err == nil
}

// mayStart refuses a principal what is not its to start (A24, A26). What it may
// not know of is like what does not exist.
func (a *API) mayStart(c *fiber.Ctx, workflow string) error {
	p := web.Principal(c)
	if p.Connections == nil && !p.Test {
		return nil
	}
	conn, err := a.workflowConnection(c, workflow)
	switch {
	case err != nil:
		return unknownWorkflow(err)
	case conn == nil && p.Connections != nil: // of no connection that the key is for
		return unknownWorkflow(store.ErrNotFound)
	case conn == nil: // a conformance connector
		return nil
	case !p.SeesConnection(idOf(*conn)):
		return unknownWorkflow(store.ErrNotFound)
	}
	return usable(p, *conn)
}

// unknownWorkflow is 400 on creation (D17): the value is not given back.
func unknownWorkflow(err error) error {
	if p, known := web.ProblemOf(err); known && p.Code == "not_found" {
		return web.Invalid(web.Field{Path: "workflowId", Rule: "the id of a connection, or the name of an installed connector"})
	}
	return err
}

// hideActive takes the run that is in the way out of a refusal, where it is not
// the principal's to know of: a scope id is shared by all connections (A64).
func (a *API) hideActive(c *fiber.Ctx, err error) error {
	var r *host.Refusal
	if !errors.As(err, &r) || r.Details["activeRunId"] == nil || !web.Principal(c).Restricted() {
		return err
	}
	id, _ := r.Details["activeRunId"].(string)
	if row, err := a.Store.Run(web.Context(c), store.RunID(id)); err != nil || a.sees(c, row) != nil {
		delete(r.Details, "activeRunId")
	}
	return r
}

func (a *API) created(c *fiber.Ctx, r store.Run) createdRun {
	base := a.base(c) + "/v1/runs/" + string(r.ID)
	return createdRun{RunID: r.ID, Status: timeline.RowStatus(r), EventsURL: base + "/events", StatusURL: base, TraceID: r.TraceID}
}

// base is how the client reached the host (A62): web has checked Host.
func (a *API) base(c *fiber.Ctx) string {
	if a.PublicURL != "" {
		return a.PublicURL
	}
	scheme := "http://"
	if web.Secure(c) {
		scheme = "https://"
	}
	return scheme + string(c.Request().Host())
}

// traceParent takes a W3C traceparent of version 00, or nothing (A251).
func traceParent(h string) string {
	h = strings.Clone(h)
	if len(h) != 55 || h[:3] != "00-" || h[35] != '-' || h[52] != '-' {
		return ""
	}
	for i, r := range h {
		if i != 2 && i != 35 && i != 52 && !strings.ContainsRune("0123456789abcdef", r) {
			return ""
		}
	}
	return h
}

// run is the run that a path names, if the principal may know of it (A26).
func (a *API) run(c *fiber.Ctx) (store.Run, error) {
	id, err := web.ID(c, "runId")
	if err != nil {
		return store.Run{}, err
	}
	r, err := a.Store.Run(web.Context(c), store.RunID(id))
	if err != nil {
		return r, err
	}
	return r, a.sees(c, r)
}

// sees refuses runs of connections that the principal may not know of, or with a
// test key may not use.
func (a *API) sees(c *fiber.Ctx, r store.Run) error {
	p := web.Principal(c)
	if !p.SeesConnection(r.ConnectionID) {
		return web.NotFound()
	}
	if !p.Test || conformance(r.ConnectionID) {
		return nil
	}
	conn, err := a.Host.Connection(web.Context(c), r.ConnectionID)
	if err != nil {
		return err
	}
	return usable(p, conn)
}

// conformance reports whether a connection was made for one run of a conformance
// connector: no other id begins so (A6, A242).
func conformance(id store.ConnectionID) bool { return strings.HasPrefix(string(id), "conformance-") }

func (a *API) getRun(c *fiber.Ctx) error {
	r, err := a.run(c)
	if err != nil {
		return err
	}
	s, err := a.Streams.Snapshot(web.Context(c), r.ID)
	if err != nil {
		return err
	}
	if web.Principal(c).Allows(access.ApprovalsRespond) {
		if err := a.addToken(c, &s); err != nil {
			return err
		}
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return web.JSON(c, 200, s)
}

// scanned bounds the runs that one page of a filtered list looks at; the page
// may then be short, and yet have a next one.
const scanned = 5000

func (a *API) listRuns(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	filter, err := runFilterOf(c)
	if err != nil {
		return err
	}
	in, err := a.sight(c)
	if err != nil {
		return err
	}
	ctx, before := web.Context(c), store.RunID(page.After)
	var out []timeline.Snapshot
	for looked := 0; looked < scanned; {
		rows, err := a.Store.Runs(ctx, filter.connection, before, 500)
		if err != nil {
			return err
		}
		for _, r := range rows {
			before, looked = r.ID, looked+1
			if !filter.row(r) || !in.has(r.ConnectionID) {
				continue
			}
			s, err := a.Streams.Brief(ctx, r) // no log of a run that is over is read
			if err != nil {
				return err
			}
			if !filter.snapshot(s) {
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

// runFilter is what A71 filters by.
type runFilter struct {
	connection              store.ConnectionID
	connector, trigger, tag string
	outcome                 string
	statuses                []string
	after, before           time.Time
}

// outcomes are how runs come out (R10).
var outcomes = []string{"complete", timeline.Partial, "failed", "cancelled"}

func runFilterOf(c *fiber.Ctx) (runFilter, error) {
	q := web.QueryOf(c)
	f := runFilter{
		connection: store.ConnectionID(q.Text("connectionId", 64)), connector: q.Text("connectorName", 128), tag: q.Text("tag", 1024),
		trigger: q.OneOf("triggerKind", "", triggers...), outcome: q.OneOf("outcome", "", outcomes...), after: q.Time("createdAfter"), before: q.Time("createdBefore"),
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

// row is what the run row alone decides.
func (f runFilter) row(r store.Run) bool {
	ended := timeline.RowStatus(r)
	return (f.trigger == "" || r.TriggerKind == f.trigger) && (f.tag == "" || slices.Contains(r.Request.Tags, f.tag)) &&
		(f.after.IsZero() || r.StartedAt.After(f.after)) && (f.before.IsZero() || r.StartedAt.Before(f.before)) &&
		(len(f.statuses) == 0 || !ended.Terminal() || slices.Contains(f.statuses, string(ended)))
}

func (f runFilter) snapshot(s timeline.Snapshot) bool {
	return (f.outcome == "" || s.Sluice.Outcome == f.outcome) && (f.connector == "" || s.Sluice.ConnectorName == f.connector) && (len(f.statuses) == 0 || slices.Contains(f.statuses, string(s.Status)))
}

func (a *API) cancelRun(c *fiber.Ctx) error {
	r, err := a.run(c)
	if err != nil {
		return err
	}
	var q cancelRun
	if err := web.OpenBody(c, &q); err != nil {
		return err
	}
	status, err := a.Host.CancelRun(web.Context(c), r.ID, abi.Cut(abi.Clean(q.Reason), maxReason))
	if err != nil {
		return err
	}
	return web.JSON(c, 200, runStatus{r.ID, status})
}

func (a *API) pauseRun(c *fiber.Ctx) error {
	r, err := a.run(c)
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
	at, err := a.Host.PauseRun(web.Context(c), r.ID, q.DrainPolicy, abi.Cut(abi.Clean(q.Reason), maxReason))
	if err != nil {
		return err
	}
	return web.JSON(c, 202, pausedRun{r.ID, "paused", store.Time(at)})
}

func (a *API) resumeRun(c *fiber.Ctx) error {
	r, err := a.run(c)
	if err != nil {
		return err
	}
	var q cancelRun
	if err := web.Body(c, &q); err != nil {
		return err
	}
	at, err := a.Host.ResumeRun(web.Context(c), r.ID, abi.Cut(abi.Clean(q.Reason), maxReason))
	if err != nil {
		return err
	}
	return web.JSON(c, 202, resumedRun{r.ID, "running", store.Time(at)})
}
