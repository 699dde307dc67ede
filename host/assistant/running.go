package assistant

import (
	"context"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// A shownRun is a run as an assistant sees it. It has no counts, because these include streams that may be invisible.
type shownRun struct {
	RunID      store.RunID `json:"runId"`
	Connection string      `json:"connection"`
	Status     string      `json:"status"`
	StartedAt  string      `json:"startedAt"`
	FinishedAt string      `json:"finishedAt,omitempty"`
	Trigger    string      `json:"trigger,omitempty"`
}

func runOf(r store.Run) shownRun {
	out := shownRun{RunID: r.ID, Connection: string(r.ConnectionID), Status: r.Status,
		StartedAt: r.StartedAt.UTC().Format(time.RFC3339), Trigger: r.TriggerKind}
	if r.FinishedAt != nil {
		out.FinishedAt = r.FinishedAt.UTC().Format(time.RFC3339)
	}
	return out
}

func (s *endpoint) runsCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	q := struct {
		Connection string `json:"connection"`
		Limit      int    `json:"limit"`
	}{Limit: 20}
	if err := read(r, &q); err != nil {
		return nil, 0, err
	}
	if q.Limit < 1 || q.Limit > 100 {
		return nil, 0, refuse("arguments", "limit: want 1 to 100.")
	}
	all, err := s.view.Connections(ctx)
	if err != nil {
		return nil, 0, err
	}
	out := []shownRun{}
	for _, c := range all {
		if q.Connection != "" && string(c.ID) != q.Connection {
			continue
		}
		g := s.view.grants[c.ID]
		runs, err := s.gateway.o.Store.Runs(ctx, c.ID, "", q.Limit)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range runs {
			if !r.StartedAt.Before(g.made) { // skip those of an earlier connection by this name
				out = append(out, runOf(r))
			}
		}
	}
	slices.SortFunc(out, func(x, y shownRun) int { return -compare(x.RunID, y.RunID) })
	out = out[:min(len(out), q.Limit)]
	return map[string]any{"runs": out}, 0, nil
}

func compare(x, y store.RunID) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// runCall starts a run on behalf of the assistant.
func (s *endpoint) runCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	var q struct {
		Connection string `json:"connection"`
	}
	if err := read(r, &q); err != nil {
		return nil, 0, err
	}
	if !s.def.Terms.Run || s.gateway.o.Runs == nil {
		return nil, 0, refuse("forbidden", "You may not run connections.")
	}
	c, err := s.view.Connection(ctx, store.ConnectionID(q.Connection))
	if err != nil {
		return nil, 0, err
	}
	who := host.Principal{ID: "assistant:" + s.def.Name, Transport: access.REST, RequestID: host.Who(ctx).RequestID}
	run, err := s.gateway.o.Runs.StartRun(host.As(ctx, who), host.StartRun{WorkflowID: string(c.ID)})
	if err != nil {
		return nil, 0, err
	}
	return map[string]any{"run": runOf(run)}, 0, nil
}

// A waits is something that the owner has to decide.
type waits struct {
	What       string `json:"what"`
	Connection string `json:"connection,omitempty"`
	RunID      string `json:"runId,omitempty"`
	Since      string `json:"since"`
	Page       string `json:"page"`
}

// waitingCall lists what waits for the owner. It does not include the text of questions, which are between connector
// and owner.
func (s *endpoint) waitingCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	if err := read(r, &struct{}{}); err != nil {
		return nil, 0, err
	}
	out, err := s.waiting(ctx)
	if err != nil {
		return nil, 0, err
	}
	if len(out) > 0 && opensPages(r) && r.Params.InputResponses == nil {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"owner": &mcp.ElicitParams{
			Mode: "url", ElicitationID: access.NewID("eli_", s.gateway.o.Now()), URL: out[0].Page,
			Message: "Something in Sluice waits for you: " + out[0].What + ".",
		}}}, 0, nil
	}
	return map[string]any{"waiting": out}, 0, nil
}

// opensPages reports whether the client can send its user to a page.
func opensPages(r *mcp.CallToolRequest) bool {
	c := r.ClientCapabilities()
	return r.ProtocolVersion() >= "2026-07-28" && c != nil && c.Elicitation != nil && c.Elicitation.URL != nil
}

func (s *endpoint) waiting(ctx context.Context) ([]waits, error) {
	open, err := s.gateway.o.Store.Pending(ctx, "")
	if err != nil {
		return nil, err
	}
	runs := map[store.RunID]string{}
	for id := range s.view.grants {
		if _, err := s.view.connectionView(ctx, id); err != nil {
			continue
		}
		active, err := s.gateway.o.Store.Runs(ctx, id, "", 10)
		if err != nil {
			return nil, err
		}
		for _, r := range active {
			runs[r.ID] = string(id)
		}
	}
	out := []waits{}
	for _, i := range open {
		if id, ok := runs[i.RunID]; ok {
			out = append(out, waits{What: "a run asks its owner (" + i.Kind + ")", Connection: id, RunID: string(i.RunID),
				Since: i.OpenedAt.UTC().Format(time.RFC3339), Page: base(ctx) + "/ui/runs/" + string(i.RunID)})
		}
	}
	calls, err := s.gateway.waitingCalls(ctx, s.def.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		out = append(out, waits{What: "a call of the tool " + c.Tool,
			Since: c.At.UTC().Format(time.RFC3339), Page: s.page(ctx)})
	}
	return out, nil
}
