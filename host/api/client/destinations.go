package client

import (
	"context"
	"net/http"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// AddDestination implements host.Destinations.
func (c destinationClient) AddDestination(ctx context.Context, q host.NewDestination) (d host.Destination, err error) {
	err = c.call(ctx, http.MethodPost, at("destinations"), nil, q, &d)
	return d, err
}

// Destinations implements host.Destinations.
func (c destinationClient) Destinations(ctx context.Context) ([]host.Destination, error) {
	return all[host.Destination](ctx, c.transport, at("destinations"), nil)
}

// Destination implements host.Destinations.
func (c destinationClient) Destination(ctx context.Context, name string) (d host.Destination, err error) {
	err = c.get(ctx, at("destinations", name), nil, &d)
	return d, err
}

// SyncDestination implements host.Destinations. It waits as long as ctx lasts.
func (c destinationClient) SyncDestination(ctx context.Context, name string) (host.Destination, error) {
	return c.ask(ctx, name, "sync", nil)
}

// PauseDestination implements host.Destinations.
func (c destinationClient) PauseDestination(ctx context.Context, name string, paused bool) (host.Destination, error) {
	if paused {
		return c.ask(ctx, name, "pause", nil)
	}
	return c.ask(ctx, name, "resume", nil)
}

// RotateDestination implements host.Destinations.
func (c destinationClient) RotateDestination(ctx context.Context, name, secret string) (host.Destination, error) {
	return c.ask(ctx, name, "rotate", map[string]string{"secret": secret})
}

// RebuildDestination implements host.Destinations. It waits as long as ctx lasts.
func (c destinationClient) RebuildDestination(ctx context.Context, name string, connection store.ConnectionID,
	stream store.Stream) (host.Destination, error) {
	body := map[string]string{}
	if stream != "" {
		body["connectionId"], body["stream"] = string(connection), string(stream)
	}
	return c.ask(ctx, name, "rebuild", body)
}

// RemoveDestination implements host.Destinations.
func (c destinationClient) RemoveDestination(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, at("destinations", name), nil, nil, nil)
}

func (c destinationClient) ask(ctx context.Context, name, verb string, body any) (d host.Destination, err error) {
	header, in, err := encode(body)
	if err != nil {
		return d, err
	}
	err = c.await(ctx, http.MethodPost, at("destinations", name)+":"+verb, nil, header, in, &d)
	return d, err
}
