package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Connections lists them.
func (c connectionClient) Connections(ctx context.Context) ([]host.Connection, error) {
	return all[host.Connection](ctx, c.transport, at("connections"), nil)
}

// Connection returns one of them.
func (c connectionClient) Connection(ctx context.Context, id store.ConnectionID) (out host.Connection, err error) {
	return out, c.get(ctx, at("connections", string(id)), nil, &out)
}

// CreateConnection makes a connection of an installed connector.
func (c connectionClient) CreateConnection(ctx context.Context, q host.NewConnection) (out host.Connection, err error) {
	return out, c.call(ctx, http.MethodPost, at("connections"), nil, q, &out)
}

// ChangeConnection changes a connection from its next run on.
func (c connectionClient) ChangeConnection(ctx context.Context, id store.ConnectionID, q host.ChangeConnection,
	revision *uint64) (out host.Connection, err error) {
	_, err = c.put(ctx, http.MethodPatch, at("connections", string(id)), revision, q, &out)
	return out, err
}

// DeleteConnection deletes a connection, and with erase its collected data.
func (c connectionClient) DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error {
	q := url.Values{}
	if erase {
		q.Set("data", "erase")
	}
	return c.call(ctx, http.MethodDelete, at("connections", string(id)), q, nil, nil)
}

// Requested returns what a connection's connector asks for.
func (c grantClient) Requested(ctx context.Context, id store.ConnectionID) (host.Requested, error) {
	var out struct {
		Requested host.Requested `json:"requested"`
	}
	err := c.get(ctx, at("connections", string(id), "grants"), nil, &out)
	return out.Requested, err
}

// GrantConnection replaces the grant of a connection.
func (c grantClient) GrantConnection(ctx context.Context, id store.ConnectionID,
	q host.GrantTerms) (out host.Grant, err error) {
	return out, c.call(ctx, http.MethodPost, at("connections", string(id), "grants"), nil, q, &out)
}

// GrantConnector grants what q says to a connection whose connector may be uninstalled.
func (c grantClient) GrantConnector(ctx context.Context, q host.ConnectorGrant) (out host.Connection, err error) {
	grant, err := json.Marshal(q)
	if err != nil {
		return out, fmt.Errorf("encode request: %w", err)
	}
	_, err = c.upload(ctx, at("connections")+":grant", &out, part{"grant", grant}, part{"module", q.Overrides.Module},
		part{"signature", q.Overrides.Signature})
	return out, err
}

// ownGrant is the API's name for a connection's grant without limits.
const ownGrant = "gra_own"

// RevokeGrant revokes a grant, the current one if grant is "", and ends the run under it.
func (c grantClient) RevokeGrant(ctx context.Context, id store.ConnectionID, grant string) error {
	if grant == "" {
		conn, err := connectionClient(c).Connection(ctx, id)
		if err != nil {
			return err
		}
		if grant = ownGrant; conn.Grant != nil {
			grant = conn.Grant.GrantID
		}
	}
	return c.call(ctx, http.MethodDelete, at("connections", string(id), "grants", grant), nil, nil, nil)
}

// ApproveBindings replaces what a connection may use.
func (c grantClient) ApproveBindings(ctx context.Context, id store.ConnectionID,
	q host.Bindings) (out host.Bindings, err error) {
	return out, c.call(ctx, http.MethodPut, at("connections", string(id), "bindings"), nil, q, &out)
}

// Secrets returns what may be known of a connection's secrets.
func (c secretClient) Secrets(ctx context.Context, id store.ConnectionID) ([]host.Secret, error) {
	var out struct {
		Data []host.Secret `json:"data"`
	}
	err := c.get(ctx, at("connections", string(id), "secrets"), nil, &out)
	return out.Data, err
}

// SetSecret implements host.Secrets.
func (c secretClient) SetSecret(ctx context.Context, id store.ConnectionID, name string, value []byte) error {
	defer clear(value)
	body := map[string]string{"value": string(value)}
	return c.call(ctx, http.MethodPut, at("connections", string(id), "secrets", name), nil, body, nil)
}

// RemoveSecret removes a secret.
func (c secretClient) RemoveSecret(ctx context.Context, id store.ConnectionID, name string) error {
	return c.call(ctx, http.MethodDelete, at("connections", string(id), "secrets", name), nil, nil, nil)
}

// States returns the cursors of a connection in the global namespace, by stream.
func (c stateClient) States(ctx context.Context, id store.ConnectionID) (out []store.State, err error) {
	var got struct {
		Streams map[store.Stream]struct {
			Cursor      json.RawMessage `json:"cursor"`
			CommittedAt time.Time       `json:"committedAt"`
			RunID       store.RunID     `json:"runId"`
		} `json:"streams"`
	}
	err = c.get(ctx, at("connections", string(id), "state"), nil, &got)
	for _, name := range slices.Sorted(maps.Keys(got.Streams)) {
		s := got.Streams[name]
		out = append(out, store.State{Stream: name, Cursor: s.Cursor, CommittedAt: s.CommittedAt, RunID: s.RunID})
	}
	return out, err
}

// ResetState forgets the cursor of one stream, or all with "".
func (c stateClient) ResetState(ctx context.Context, id store.ConnectionID, grant store.GrantID,
	stream store.Stream) error {
	q := url.Values{}
	if stream != "" {
		q.Set("stream", string(stream))
	}
	if grant != "" {
		q.Set("grantId", string(grant))
	}
	return c.call(ctx, http.MethodDelete, at("connections", string(id), "state"), q, nil, nil)
}
