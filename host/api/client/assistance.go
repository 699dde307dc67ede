package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// An Assistance is a request for the owner's help, with the connector's own text
// while it is open.
type Assistance struct {
	timeline.Item
	Raw *host.RawAssistance `json:"raw"`
}

// Waiting lists the open requests for the owner of one run, or of all runs if run is "".
func (c assistanceClient) Waiting(ctx context.Context, run store.RunID) ([]timeline.Item, error) {
	q := url.Values{}
	if run != "" {
		q.Set("runId", string(run))
	}
	return all[timeline.Item](ctx, c.transport, at("assistance"), q)
}

// Assistance returns one request.
func (c assistanceClient) Assistance(ctx context.Context, id string) (out Assistance, err error) {
	return out, c.get(ctx, at("assistance", id), nil, &out)
}

// Answer ends a question; status is success or cancelled. It returns once the answer
// is durable.
func (c assistanceClient) Answer(ctx context.Context, run store.RunID, interaction, status string,
	data map[string]json.RawMessage) error {
	body := map[string]any{"interactionId": interaction, "status": status}
	if data != nil {
		body["data"] = data
	}
	return c.call(ctx, http.MethodPost, at("runs", string(run), "interaction"), nil, body, nil)
}
