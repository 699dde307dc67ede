package client

import (
	"context"
	"net/http"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Webhook is what a list shows of one.
type Webhook struct {
	ID            string    `json:"webhookId"`
	URL           string    `json:"url"`
	Events        []string  `json:"events"`
	Tags          []string  `json:"tags"`
	Status        string    `json:"status"`
	Failures      int       `json:"failures"`
	CreatedAt     time.Time `json:"createdAt"`
	LastError     *Delivery `json:"lastError,omitempty"`
	PreviousUntil string    `json:"previousSecretUntil,omitempty"`
}

// A Delivery is one attempt to deliver.
type Delivery struct {
	ID         string        `json:"deliveryId"`
	MessageID  string        `json:"messageId"`
	Cause      string        `json:"cause"`
	Type       string        `json:"type"`
	RunID      store.RunID   `json:"runId,omitempty"`
	EventID    store.EventID `json:"eventId,omitempty"`
	Sequence   *uint64       `json:"sequence,omitempty"`
	Attempt    int           `json:"attempt"`
	Status     int           `json:"status,omitempty"`
	Error      string        `json:"error,omitempty"`
	DurationMS int64         `json:"durationMs"`
	At         time.Time     `json:"at"`
}

// A Rotation has a new secret, which is in no other answer.
type Rotation struct {
	WebhookID     string    `json:"webhookId"`
	Secret        string    `json:"secret,omitempty"`
	PreviousUntil time.Time `json:"previousSecretUntil"`
}

// Webhooks lists them.
func (c webhookClient) Webhooks(ctx context.Context) ([]Webhook, error) {
	return all[Webhook](ctx, c.transport, at("webhooks"), nil)
}

// Deliveries are the last attempts of a webhook, newest first.
func (c webhookClient) Deliveries(ctx context.Context, id string) ([]Delivery, error) {
	return all[Delivery](ctx, c.transport, at("webhooks", id, "deliveries"), nil)
}

// TestWebhook delivers a test.
func (c webhookClient) TestWebhook(ctx context.Context, id string) (out Delivery, err error) {
	return out, c.call(ctx, http.MethodPost, at("webhooks", id)+":test", nil, nil, &out)
}

// Redeliver makes one attempt more for what an attempt was for.
func (c webhookClient) Redeliver(ctx context.Context, id, delivery string) (out Delivery, err error) {
	return out, c.call(ctx, http.MethodPost, at("webhooks", id, "deliveries", delivery)+":redeliver", nil, nil, &out)
}

// RotateWebhook has the host make a new secret.
func (c webhookClient) RotateWebhook(ctx context.Context, id string) (out Rotation, err error) {
	return out, c.call(ctx, http.MethodPost, at("webhooks", id)+":rotate", nil, nil, &out)
}
