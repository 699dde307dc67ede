package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A NewRun is the request that starts a run.
type NewRun struct {
	WorkflowID string          `json:"workflowId"` // a connection, or a connector name
	Inputs     json.RawMessage `json:"inputs,omitempty"`
	Tags       []string        `json:"tags,omitempty"`
	Overrides  *host.Overrides `json:"given,omitempty"`
}

// A Created run.
type Created struct {
	RunID   store.RunID     `json:"runId"`
	Status  timeline.Status `json:"status"`
	TraceID store.TraceID   `json:"traceId"`
}

// StartRun starts a run and returns once it is durable.
func (c runClient) StartRun(ctx context.Context, q NewRun) (out Created, err error) {
	if q.Overrides == nil {
		return out, c.call(ctx, http.MethodPost, at("runs"), nil, q, &out)
	}
	run, err := json.Marshal(q)
	if err != nil {
		return out, fmt.Errorf("encode request: %w", err)
	}
	_, err = c.upload(ctx, at("runs"), &out, part{"run", run}, part{"module", q.Overrides.Module},
		part{"signature", q.Overrides.Signature}, part{"replay", q.Overrides.Replay})
	return out, err
}

// Recording returns what a run recorded, once.
func (c runClient) Recording(ctx context.Context, id store.RunID) (out host.Recording, err error) {
	return out, c.get(ctx, at("runs", string(id), "recording"), nil, &out)
}

// Run returns the snapshot of a run.
func (c runClient) Run(ctx context.Context, id store.RunID) (out timeline.Snapshot, err error) {
	return out, c.get(ctx, at("runs", string(id)), nil, &out)
}

// Result returns the result of a finished run. Before the end, the error is an *Error
// with the code conflict.
func (c runClient) Result(ctx context.Context, id store.RunID) (out json.RawMessage, err error) {
	return out, c.get(ctx, at("runs", string(id), "result"), nil, &out)
}

// Runs calls do with runs, newest first, of one connection or of all with "",
// until do returns false.
func (c runClient) Runs(ctx context.Context, of store.ConnectionID,
	do func(timeline.Snapshot) (more bool, err error)) error {
	q := url.Values{}
	if of != "" {
		q.Set("connectionId", string(of))
	}
	return each(ctx, c.transport, at("runs"), q, do)
}

// CancelRun cancels a run and returns its status.
func (c runClient) CancelRun(ctx context.Context, id store.RunID, reason string) (string, error) {
	var out struct {
		Status string `json:"status"`
	}
	err := c.call(ctx, http.MethodPost, at("runs", string(id), "cancel"), nil, because(reason), &out)
	return out.Status, err
}

// PauseRun asks for a pause; policy is drain-current-node, immediate or "".
func (c runClient) PauseRun(ctx context.Context, id store.RunID, policy, reason string) error {
	body := because(reason)
	if policy != "" {
		body["drainPolicy"] = policy
	}
	return c.call(ctx, http.MethodPost, at("runs", string(id))+":pause", nil, body, nil)
}

// ResumeRun resumes a paused run.
func (c runClient) ResumeRun(ctx context.Context, id store.RunID, reason string) error {
	return c.call(ctx, http.MethodPost, at("runs", string(id))+":resume", nil, because(reason), nil)
}

// Requests calls do with the requests that a run made or was refused, oldest first,
// until do returns false.
func (c runClient) Requests(ctx context.Context, id store.RunID, do func(host.Request) (more bool, err error)) error {
	return each(ctx, c.transport, at("runs", string(id), "requests"), nil, do)
}

func because(reason string) map[string]string {
	if reason == "" {
		return map[string]string{}
	}
	return map[string]string{"reason": reason}
}
