package api

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// An AssistantGateway answers MCP requests of assistants. base is the address by which the client reaches the
// host.
type AssistantGateway interface {
	Serve(w http.ResponseWriter, r *http.Request, assistant, base string)
}

// assistantAPI has the routes of assistants. Those under /v1 are the owner's; /mcp is the only one
// for assistants.
type assistantAPI struct {
	assistants host.Assistants
	gateway    AssistantGateway
	base       baseURL
}

// decided is the owner's decision on a waiting call.
type decided struct {
	Approve bool `json:"approve"`
}

func (a *assistantAPI) routes() []route {
	one := "/v1/assistants/:name"
	return documented("api.md#assistants", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/assistants", Owner: true,
			Handle: list(a.assistants.Assistants, func(x host.Assistant) string { return x.Name })},
			summary: "List assistants and what each may see", query: paging, answer: web.List[host.Assistant]{}},
		{Route: web.Route{Method: "POST", Path: "/v1/assistants", Owner: true, Handle: a.add},
			summary: "Make an assistant; its token is shown once", body: host.NewAssistant{},
			answer: host.Assistant{}, status: 201, codes: []string{"conflict"}},
		{Route: web.Route{Method: "GET", Path: one, Owner: true, Handle: answer(slugIn, a.assistants.Assistant)},
			summary: "One assistant", answer: host.Assistant{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "revoke", Owner: true, Keyed: true,
			Handle: answer(slugIn, a.assistants.RevokeAssistant)},
			summary: "End an assistant at once", answer: host.Assistant{}},
		{Route: web.Route{Method: "GET", Path: one + "/calls", Owner: true, Handle: a.calls},
			summary: "What an assistant called, newest first; those that wait for a yes before all", query: paging,
			answer: web.List[host.AssistantCall]{}},
		{Route: web.Route{Method: "POST", Path: one + "/calls/:callId", Verb: "decide", Owner: true, Handle: a.decide},
			summary: "Say yes or no to a call that waits", body: decided{}},
		{Route: web.Route{Method: "POST", Path: "/mcp", Assistant: true, Handle: a.serve},
			summary: "One message of an assistant by MCP, with its own token", body: map[string]any{},
			answer: map[string]any{}, also: []int{202}},
	})
}

func (a *assistantAPI) add(c *fiber.Ctx) error {
	var q host.NewAssistant
	if err := web.Body(c, &q); err != nil {
		return err
	}
	made, err := a.assistants.AddAssistant(web.Context(c), q)
	if err != nil {
		return err
	}
	return web.Created(c, "/v1/assistants/"+made.Name, made)
}

func (a *assistantAPI) calls(c *fiber.Ctx) error {
	name, err := slugIn(c)
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	before := uint64(0)
	if page.After != "" {
		if before, err = strconv.ParseUint(page.After, 10, 64); err != nil {
			return web.NewProblem(0, "invalid_cursor", "The cursor is not one of this list. Read from the beginning.")
		}
	}
	calls, err := a.assistants.AssistantCalls(web.Context(c), name, before, page.Limit)
	if err != nil {
		return err
	}
	next := ""
	if n := len(calls); n >= page.Limit && calls[n-1].Number > 1 {
		next = strconv.FormatUint(calls[n-1].Number, 10)
	}
	return web.Listed(c, calls, next)
}

func (a *assistantAPI) decide(c *fiber.Ctx) error {
	name, err := slugIn(c)
	if err != nil {
		return err
	}
	call, err := web.ID(c, "callId")
	if err != nil {
		return err
	}
	var q decided
	if err := web.Body(c, &q); err != nil {
		return err
	}
	return web.Done(c, a.assistants.DecideCall(web.Context(c), name, call, q.Approve))
}

// A responseBuffer buffers an answer written through net/http. MCP answers are one JSON object here, never a
// stream.
type responseBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *responseBuffer) Header() http.Header { return r.header }

func (r *responseBuffer) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *responseBuffer) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// passed lists the request headers that belong to the protocol.
var passed = []string{"Content-Type", "Accept", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"}

// serve passes a request to the gateway: only its body and the headers of the protocol, no credentials
// and no cookies.
func (a *assistantAPI) serve(c *fiber.Ctx) error {
	body, err := web.RawBody(c)
	if err != nil {
		return err
	}
	ctx, done := web.ClientContext(c)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp", bytes.NewReader(bytes.Clone(body)))
	if err != nil {
		return err
	}
	for _, name := range passed {
		if v := string(c.Request().Header.Peek(name)); v != "" {
			r.Header.Set(name, v)
		}
	}
	name, _ := cutAssistant(web.Principal(c).ID)
	w := &responseBuffer{header: http.Header{}}
	a.gateway.Serve(w, r, name, a.base.of(c))
	for _, h := range []string{"Content-Type", "Allow"} {
		if v := w.header.Get(h); v != "" {
			c.Set(h, v)
		}
	}
	c.Status(max(w.status, http.StatusOK))
	return c.Send(w.body.Bytes())
}

func cutAssistant(id string) (name string, ok bool) {
	if len(id) <= len(access.AssistantPrefix) {
		return "", false
	}
	return id[len(access.AssistantPrefix):], true
}
