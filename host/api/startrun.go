package api

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// createRun is the body of a start.
type createRun struct {
	WorkflowID   string          `json:"workflowId"`
	Inputs       json.RawMessage `json:"inputs,omitempty"`
	Configurable json.RawMessage `json:"configurable,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	TenantID     string          `json:"tenantId,omitempty"`
	ScopeID      string          `json:"scopeId,omitempty"`
	CallbackURL  json.RawMessage `json:"callbackUrl,omitempty"`
	Overrides    *host.Overrides `json:"given,omitempty"`
}

// createdRun is the answer to a start.
type createdRun struct {
	RunID     store.RunID     `json:"runId"`
	Status    timeline.Status `json:"status"`
	EventsURL string          `json:"eventsUrl"`
	StatusURL string          `json:"statusUrl"`
	TraceID   store.TraceID   `json:"traceId"`
}

// Bounds of what is stored of a request.
const (
	maxTags     = 100
	maxTag      = 256
	maxMetadata = 50_000
	maxReason   = 500
	tenant      = "default"
)

func (a *runAPI) createRun(c *fiber.Ctx) error {
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
	if err := mayOverride(web.Principal(c), q.Overrides); err != nil {
		return err
	}
	if err := a.mayStart(c, start.WorkflowID); err != nil {
		return err
	}
	var answer []byte
	// the answer is stored in the commit of the start, so the run starts at this host
	if slot := web.SlotOf(c); slot != nil {
		start.With = func(r store.Run) []store.Write {
			body, err := web.Encode(a.created(c, r))
			if err != nil {
				return nil
			}
			answer = body
			return slot.Writes(201, body, "/v1/runs/"+string(r.ID))
		}
	}
	r, err := a.runs.StartRun(web.Context(c), start)
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

// runParts are the parts of a start that brings a module, its signature or a recording; run is the
// JSON.
var runParts = []string{"run", "module", "signature", "replay"}

// readCreateRun reads the body of a start: JSON, or JSON as a part of an upload.
func readCreateRun(c *fiber.Ctx) (*createRun, error) {
	q := &createRun{}
	if web.ContentType(c) != "multipart/form-data" {
		return q, web.Body(c, q)
	}
	parts, err := web.Parts(c, runParts, "module", "replay", "run")
	if err != nil {
		return nil, err
	}
	if err := web.Decode(parts["run"], q); err != nil {
		return nil, err
	}
	if q.Overrides == nil {
		q.Overrides = &host.Overrides{}
	}
	defer web.Wipe(c) // it may contain secrets
	q.Overrides.Module, q.Overrides.Signature, q.Overrides.Replay = parts["module"], parts["signature"], parts["replay"]
	return q, nil
}

// start converts the body to a start, or reports what is wrong with it.
func (q *createRun) start(c *fiber.Ctx) (host.StartRun, error) {
	var wrong []web.Field
	rule := func(path, text string) { wrong = append(wrong, web.Field{Path: path, Rule: text}) }
	if q.WorkflowID == "" && (q.Overrides == nil || q.Overrides.Module == nil) || len(q.WorkflowID) > 128 {
		rule("workflowId", "the id of a connection, or the name of a connector")
	}
	if q.CallbackURL != nil {
		return host.StartRun{}, web.NewProblem(0, "validation_error",
			"callbackUrl is not supported; subscribe a webhook instead.").With("unsupported", []string{"callbackUrl"})
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
	wrong = append(wrong, boundedObject("metadata", q.Metadata)...)
	wrong = append(wrong, boundedObject("configurable", q.Configurable)...)
	start := host.StartRun{WorkflowID: q.WorkflowID, Overrides: q.Overrides, Dedup: dedup == "enforce", Request: store.Request{
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
	return len(tags) <= maxTags &&
		!slices.ContainsFunc(tags, func(t string) bool { return t == "" || len([]rune(t)) > maxTag })
}

// boundedObject checks an object that is stored with the run and shown in every list.
func boundedObject(path string, raw json.RawMessage) []web.Field {
	if raw != nil && (!isObject(raw) || len(raw) > maxMetadata) {
		return []web.Field{{Path: path, Rule: "an object of at most 50 KB"}}
	}
	return nil
}

// options reads the run options among the inputs. The object is also kept as a whole, to overlay
// the settings of a conformance connector.
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
	for _, name := range []string{"trace", "narrow"} {
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

// overlay reads the supported keys of configurable.
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
				wrong = append(wrong, web.Field{Path: "configurable.sluice.budgets",
					Rule: "budgets in milliseconds, 1 or more"})
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

// mayOverride refuses a run with its own settings, secrets or approvals to a principal without the
// scopes to store them with a connection.
func mayOverride(p *access.Principal, g *host.Overrides) error {
	if g == nil {
		return nil
	}
	if p.Restricted() {
		return web.NewProblem(0, "forbidden", "A key for some connections, or for tests, starts runs as they are configured.")
	}
	for _, need := range []access.Scope{access.ConnectorsManage, access.ConnectionsManage, access.GrantsApprove,
		access.SecretsWrite} {
		if !p.Allows(need) {
			return web.NewProblem(0, "forbidden",
				"Only who may install connectors, make connections, approve grants and set secrets starts a run with what is not stored.").With("scopeRequired", need)
		}
	}
	return nil
}

// mayStart refuses workflows that a restricted principal may not start. Those that it may not know
// of count as not found.
func (a *runAPI) mayStart(c *fiber.Ctx, workflow string) error {
	p := web.Principal(c)
	if p.Connections == nil && !p.Test {
		return nil
	}
	conn, err := a.workflows.connection(c, workflow)
	switch {
	case err != nil:
		return unknownWorkflow(err)
	case conn == nil && p.Connections != nil: // the key is limited to some connections
		return unknownWorkflow(store.ErrNotFound)
	case conn == nil: // a conformance connector
		return nil
	case !p.SeesConnection(idOf(*conn)):
		return unknownWorkflow(store.ErrNotFound)
	}
	return usable(p, *conn)
}

// unknownWorkflow translates not_found to 400, since the workflow is not in the path. The message
// does not repeat the value.
func unknownWorkflow(err error) error {
	if p, known := web.ProblemOf(err); known && p.Code == "not_found" {
		return web.Invalid(web.Field{Path: "workflowId",
			Rule: "the id of a connection, or the name of an installed connector"})
	}
	return err
}

// hideActive removes the active run's id from a refusal if the principal may not know of that run:
// a scope id is shared by all connections.
func (a *runAPI) hideActive(c *fiber.Ctx, err error) error {
	var r *host.Refusal
	if !errors.As(err, &r) || r.Details["activeRunId"] == nil || !web.Principal(c).Restricted() {
		return err
	}
	id, _ := r.Details["activeRunId"].(string)
	if row, err := a.find.runs.Run(web.Context(c), store.RunID(id)); err != nil || a.find.checkVisible(c, row) != nil {
		delete(r.Details, "activeRunId")
	}
	return r
}

func (a *runAPI) created(c *fiber.Ctx, r store.Run) createdRun {
	base := a.base.of(c) + "/v1/runs/" + string(r.ID)
	return createdRun{RunID: r.ID, Status: timeline.RowStatus(r), EventsURL: base + "/events", StatusURL: base,
		TraceID: r.TraceID}
}

// traceParent returns a W3C traceparent of version 00, or "".
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
