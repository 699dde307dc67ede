package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sluicehost/sluice/host"
)

// AddAssistant implements host.Assistants.
func (c assistantClient) AddAssistant(ctx context.Context, q host.NewAssistant) (a host.Assistant, err error) {
	err = c.call(ctx, http.MethodPost, at("assistants"), nil, q, &a)
	return a, err
}

// Assistants implements host.Assistants.
func (c assistantClient) Assistants(ctx context.Context) ([]host.Assistant, error) {
	return all[host.Assistant](ctx, c.transport, at("assistants"), nil)
}

// Assistant implements host.Assistants.
func (c assistantClient) Assistant(ctx context.Context, name string) (a host.Assistant, err error) {
	err = c.get(ctx, at("assistants", name), nil, &a)
	return a, err
}

// RevokeAssistant implements host.Assistants.
func (c assistantClient) RevokeAssistant(ctx context.Context, name string) (a host.Assistant, err error) {
	err = c.call(ctx, http.MethodPost, at("assistants", name)+":revoke", nil, nil, &a)
	return a, err
}

// AssistantCalls implements host.Assistants.
func (c assistantClient) AssistantCalls(ctx context.Context, name string, before uint64,
	limit int) ([]host.AssistantCall, error) {
	out := []host.AssistantCall{}
	q := url.Values{"limit": {strconv.Itoa(min(limit, page))}}
	err := each(ctx, c.transport, at("assistants", name, "calls"), q, func(call host.AssistantCall) (bool, error) {
		if before == 0 || call.Number < before { // the host's cursors cannot be made here
			out = append(out, call)
		}
		return len(out) < limit, nil
	})
	return out, err
}

// DecideCall implements host.Assistants.
func (c assistantClient) DecideCall(ctx context.Context, name, call string, yes bool) error {
	return c.call(ctx, http.MethodPost, at("assistants", name, "calls", call)+":decide", nil,
		map[string]bool{"approve": yes}, nil)
}

// MCP sends one message to the MCP endpoint and returns the answer, whatever its status.
// On the local socket, header may name the assistant that the message comes from; elsewhere
// the client's key is the assistant's token.
func (c assistantClient) MCP(ctx context.Context, header http.Header,
	body []byte) (status int, answer []byte, err error) {
	res, err := c.send(ctx, http.MethodPost, "/mcp", nil, header, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return res.StatusCode, answer, err
}
