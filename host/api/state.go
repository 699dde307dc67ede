package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// state is the cursors of one namespace.
type state struct {
	ConnectionID string                 `json:"connectionId"`
	GrantID      string                 `json:"grantId"`
	Streams      map[string]streamState `json:"streams"`
}

type streamState struct {
	Cursor      json.RawMessage `json:"cursor"`
	SHA256      string          `json:"sha256"`
	CommittedAt time.Time       `json:"committedAt"`
	RunID       string          `json:"runId"`
}

// stateAPI has the routes of cursors.
type stateAPI struct {
	find    lookup
	state   host.State
	cursors store.States
}

func (a *stateAPI) routes() []route {
	path := "/v1/connections/:connectionId/state"
	namespace := parameter{name: "grantId", typ: "string", text: "The namespace; the global one by default."}
	return documented("api.md#state-and-blobs", []route{
		{Route: web.Route{Method: "GET", Path: path, Scope: access.StateRead, Handle: a.getState},
			summary: "The committed cursors of a connection", query: []parameter{namespace}, answer: state{}},
		{Route: web.Route{Method: "DELETE", Path: path, Scope: access.StateManage, Keyed: true, Handle: a.resetState},
			summary: "Forget cursors; the next run collects afresh, records stay",
			query:   []parameter{namespace, {name: "stream", typ: "string", text: "Only this stream."}},
			codes:   []string{"run_already_active"}},
	})
}

func (a *stateAPI) getState(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	grant := q.Text("grantId", 128)
	if err := q.Err(); err != nil {
		return err
	}
	states, err := a.cursors.States(web.Context(c), id, store.GrantID(grant))
	if err != nil {
		return err
	}
	out := state{ConnectionID: string(id), GrantID: grant, Streams: map[string]streamState{}}
	for _, s := range states {
		sum := sha256.Sum256(s.Cursor)
		out.Streams[string(s.Stream)] = streamState{s.Cursor, hex.EncodeToString(sum[:]), s.CommittedAt, string(s.RunID)}
	}
	return web.JSON(c, 200, out)
}

func (a *stateAPI) resetState(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	stream, grant := q.Text("stream", 128), q.Text("grantId", 128)
	if err := q.Err(); err != nil {
		return err
	}
	return web.Done(c, a.state.ResetState(web.Context(c), id, store.GrantID(grant), store.Stream(stream)))
}
