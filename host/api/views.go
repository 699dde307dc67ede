package api

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// mintView is the body of a request for a live view.
type mintView struct {
	Mode          string         `json:"mode" enum:"view|control"`
	InteractionID string         `json:"interactionId,omitempty"`
	AssistanceID  string         `json:"assistanceId,omitempty"`
	Viewport      *host.Viewport `json:"viewport,omitempty"`
}

// reachFailed is a page's report that it could not reach a view.
type reachFailed struct {
	Reason     string `json:"reason" doc:"invalid_token, session_consumed, session_expired, companion_unavailable, unreachable_origin or unknown"`
	HTTPStatus int    `json:"httpStatus,omitempty"`
}

// viewAPI has the routes of live views. All need an owner session, which has the scopes
// surfaces:view and surfaces:control; a key cannot mint a view. host.Views keeps the
// Idempotency-Key of a mint itself, since an answer with a token is never stored.
type viewAPI struct {
	find  lookup
	views host.Views
}

func (a *viewAPI) routes() []route {
	views := "/v1/runs/:runId/browser/views"
	return documented("api.md#live-view-routes", []route{
		{Route: web.Route{Method: "POST", Path: views, Owner: true, Handle: a.mintView},
			summary: "Open a live view of a run's browser; the token works once, within a minute",
			headers: []string{"Idempotency-Key"},
			body:    mintView{}, answer: host.View{}, status: 201,
			codes: []string{"no_pending_interaction", "interaction_id_mismatch", "stream_not_supported_for_kind",
				"browser_surface_unavailable"}},
		{Route: web.Route{Method: "DELETE", Path: views + "/:viewId", Owner: true, Keyed: true, Handle: a.revokeView},
			summary: "End a live view and close its connection"},
		{Route: web.Route{Method: "GET", Path: "/v1/runs/:runId/browser/view", Owner: true, Stream: true,
			Handle: a.connectView},
			summary: "Connect a live view: a WebSocket whose first message shows the token", status: 101},
		{Route: web.Route{Method: "POST", Path: views + "/:viewId/reach-failed", Owner: true, Keyed: true,
			Handle: a.reachFailed},
			summary: "Record that a page could not reach a live view", body: reachFailed{}},
	})
}

// viewer returns the run and the owner session of a request.
func (a *viewAPI) viewer(c *fiber.Ctx) (store.Run, string, error) {
	owner := web.Principal(c).SessionName()
	if owner == "" {
		return store.Run{}, "", web.NewProblem(0, "forbidden", "Only a page with an owner session may do this.")
	}
	r, err := a.find.run(c)
	return r, owner, err
}

func (a *viewAPI) mintView(c *fiber.Ctx) error {
	r, owner, err := a.viewer(c)
	if err != nil {
		return err
	}
	var q mintView
	if err := web.Body(c, &q); err != nil {
		return err
	}
	key, err := web.IdempotencyKey(c)
	if err != nil {
		return err
	}
	if q.Mode != "view" && q.Mode != "control" {
		return web.Invalid(web.Field{Path: "mode", Rule: "view or control"})
	}
	v, err := a.views.MintView(web.Context(c), owner, host.MintView{
		RunID: r.ID, Mode: q.Mode, InteractionID: q.InteractionID, AssistanceID: q.AssistanceID,
		Viewport: q.Viewport, Key: key,
	})
	if err != nil {
		return err
	}
	return web.JSON(c, 201, v)
}

func (a *viewAPI) revokeView(c *fiber.Ctx) error {
	r, owner, err := a.viewer(c)
	if err != nil {
		return err
	}
	id, err := web.ID(c, "viewId")
	if err != nil {
		return err
	}
	return web.Done(c, a.views.RevokeView(web.Context(c), owner, r.ID, id))
}

func (a *viewAPI) connectView(c *fiber.Ctx) error {
	r, owner, err := a.viewer(c)
	if err != nil {
		return err
	}
	return web.Upgrade(c, host.MaxViewMessage, func(ctx context.Context, s *web.Socket) {
		a.views.ConnectView(ctx, owner, r.ID, s)
	})
}

func (a *viewAPI) reachFailed(c *fiber.Ctx) error {
	r, owner, err := a.viewer(c)
	if err != nil {
		return err
	}
	var q reachFailed
	if err := web.Body(c, &q); err != nil {
		return err
	}
	id, err := web.ID(c, "viewId")
	if err != nil {
		return err
	}
	return web.Done(c, a.views.ReachFailed(web.Context(c), owner, r.ID, id, q.Reason, q.HTTPStatus))
}
