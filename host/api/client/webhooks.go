package client

import (
	"context"
	"net/http"

	"github.com/sluicehost/sluice/host/webhook"
)

// Webhooks lists them.
func (c webhookClient) Webhooks(ctx context.Context) ([]webhook.Webhook, error) {
	return all[webhook.Webhook](ctx, c.transport, at("webhooks"), nil)
}

// Deliveries returns the last attempts of a webhook, newest first.
func (c webhookClient) Deliveries(ctx context.Context, id string) ([]webhook.Attempt, error) {
	return all[webhook.Attempt](ctx, c.transport, at("webhooks", id, "deliveries"), nil)
}

// TestWebhook delivers a test.
func (c webhookClient) TestWebhook(ctx context.Context, id string) (out webhook.Attempt, err error) {
	return out, c.call(ctx, http.MethodPost, at("webhooks", id)+":test", nil, nil, &out)
}

// Redeliver attempts the delivery of an earlier attempt once more.
func (c webhookClient) Redeliver(ctx context.Context, id, delivery string) (out webhook.Attempt, err error) {
	return out, c.call(ctx, http.MethodPost, at("webhooks", id, "deliveries", delivery)+":redeliver", nil, nil, &out)
}

// RotateWebhook has the host make a new secret.
func (c webhookClient) RotateWebhook(ctx context.Context, id string) (out webhook.Rotation, err error) {
	return out, c.call(ctx, http.MethodPost, at("webhooks", id)+":rotate", nil, nil, &out)
}
