package api

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// assistance is one request. Raw is only for those who may answer it.
type assistance struct {
	timeline.Item
	Raw *host.RawAssistance `json:"raw,omitempty"`
}

// interactionAnswer is the body of an answer to a question.
type interactionAnswer struct {
	InteractionID json.RawMessage `json:"interactionId"`
	Status        json.RawMessage `json:"status" doc:"success or cancelled"`
	Data          json.RawMessage `json:"data,omitempty"`
}

type interactionStatus struct {
	RunID         store.RunID `json:"runId"`
	InteractionID string      `json:"interactionId"`
	Status        string      `json:"status"`
}

// itemStatuses lists the statuses of a request.
var itemStatuses = []string{timeline.ItemOpen, timeline.ItemResolved, timeline.ItemCancelled, timeline.ItemTimedOut,
	timeline.ItemEscalated, timeline.ItemAbandoned}

// assistanceAPI has the routes of requests that wait for the owner, and of answers to them.
type assistanceAPI struct {
	find      lookup
	questions host.Questions
	streams   *stream.Hub
	leases    store.Leases
}

func (a *assistanceAPI) routes() []route {
	return documented("api.md#native-answering", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/assistance", Scope: access.ApprovalsRespond,
			Handle: a.listAssistance},
			summary: "What waits for its owner", answer: web.List[timeline.Item]{}, query: append([]parameter{
				{name: "status", typ: "string", text: "open by default.", words: itemStatuses},
				{name: "runId", typ: "string", text: "Only of a run; needed for another status than open."},
				{name: "connectionId", typ: "string", text: "Only of a connection."},
			}, paging...)},
		{Route: web.Route{Method: "GET", Path: "/v1/assistance/:assistanceId", Scope: access.ApprovalsRespond,
			Handle: a.getAssistance},
			summary: "One request, with the connector's own words while it is open", answer: assistance{}},
		{Route: web.Route{Method: "POST", Path: "/v1/runs/:runId/interaction", Scope: access.ApprovalsRespond,
			Keyed: true, Handle: a.answerInteraction},
			summary: "Answer a question, or cancel it", body: interactionAnswer{}, answer: interactionStatus{},
			status: 202,
			codes:  []string{"no_pending_interaction", "interaction_id_mismatch", "conflict"}},
	})
}

func (a *assistanceAPI) listAssistance(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	status, run := q.OneOf("status", timeline.ItemOpen, itemStatuses...), store.RunID(q.Text("runId", 128))
	connection := store.ConnectionID(q.Text("connectionId", 64))
	if err := q.Err(); err != nil {
		return err
	}
	if status != timeline.ItemOpen && run == "" {
		return web.Invalid(web.Field{Path: "query.runId", Rule: "given with a status other than open"})
	}
	rows, err := a.waitingRuns(c, run)
	if err != nil {
		return err
	}
	var items []timeline.Item
	for _, r := range rows {
		if connection != "" && r.ConnectionID != connection {
			continue
		}
		err := a.streams.Fold(web.Context(c), r.ID, func(_ store.Run, f *timeline.Fold) {
			for _, i := range f.Assistance(status == timeline.ItemOpen) {
				if i.Status == status {
					items = append(items, i)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(items, func(x, y timeline.Item) int {
		return strings.Compare(x.CreatedAt+x.AssistanceID, y.CreatedAt+y.AssistanceID)
	})
	return listed(c, page, items, func(i timeline.Item) string { return i.CreatedAt + i.AssistanceID })
}

// waitingRuns returns the runs visible to the principal that may have open requests, or the one with the
// given id.
func (a *assistanceAPI) waitingRuns(c *fiber.Ctx, id store.RunID) ([]store.Run, error) {
	ctx := web.Context(c)
	if id != "" {
		r, err := a.find.runs.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		return []store.Run{r}, a.find.checkVisible(c, r) // a hidden run counts as not found
	}
	visible, err := a.find.visible(c)
	if err != nil {
		return nil, err
	}
	leases, err := a.leases.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var out []store.Run
	for _, l := range leases {
		if !visible.has(l.ConnectionID) {
			continue
		}
		r, err := a.find.runs.Run(ctx, l.RunID)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// getAssistance finds a request among active runs. Those of finished runs are in their snapshots
// and logs.
func (a *assistanceAPI) getAssistance(c *fiber.Ctx) error {
	id, err := web.ID(c, "assistanceId")
	if err != nil {
		return err
	}
	rows, err := a.waitingRuns(c, "")
	if err != nil {
		return err
	}
	for _, r := range rows {
		out, found := assistance{}, false
		err := a.streams.Fold(web.Context(c), r.ID,
			func(_ store.Run, f *timeline.Fold) { out.Item, found = f.AssistanceByID(id) })
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if out.Status == timeline.ItemOpen {
			raw, err := a.questions.RawAssistance(web.Context(c), r.ID, out.RequestID)
			if err == nil {
				out.Raw = &raw
			} else if p, known := web.ProblemOf(err); !known || p.Code != "not_found" {
				return err
			}
		}
		return web.JSON(c, 200, out)
	}
	return web.NotFound()
}

// answerInteraction answers or cancels a question. The order of its checks is fixed: see
// docs/spec/protocol.md, "Answering".
func (a *assistanceAPI) answerInteraction(c *fiber.Ctx) error {
	defer web.Wipe(c)
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	var q interactionAnswer
	if err := web.Body(c, &q); err != nil {
		return err
	}
	answer, err := q.answer(r.ID)
	if err != nil {
		return err
	}
	if err := a.questions.Answer(web.Context(c), answer); err != nil {
		return err
	}
	return web.JSON(c, 202, interactionStatus{r.ID, answer.InteractionID, answer.Status})
}

func (q *interactionAnswer) answer(run store.RunID) (host.Answer, error) {
	bad := func(code, path, rule string) error {
		return web.Invalid(web.Field{Path: path, Rule: rule}).With("code", code)
	}
	out := host.Answer{RunID: run}
	id, isText := text(q.InteractionID)
	if !isText || strings.TrimSpace(id) == "" || len(id) > 512 {
		return out, bad("invalid_request", "interactionId", "a text that is not blank")
	}
	if len(q.Data) > 0 {
		v, err := strictjson.Parse(q.Data, strictjson.ParseOptions{AnyKind: true})
		if err != nil || !v.Is(strictjson.KindObject) {
			return out, bad("invalid_request", "data", "absent, or an object")
		}
		if out.Data, err = answerObject(v); err != nil {
			return out, bad("invalid_request", "data", "an object of at most 32 members")
		}
	}
	status, isText := text(q.Status)
	if !isText || status != abi.AnswerSuccess && status != abi.AnswerCancelled && status != abi.AnswerTimeout {
		return out, bad("invalid_status", "status", "success or cancelled")
	}
	out.InteractionID, out.Status = id, status
	return out, nil
}

func text(raw json.RawMessage) (string, bool) {
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{AnyKind: true})
	if len(raw) == 0 || err != nil {
		return "", false
	}
	return v.Text()
}
