package host

import (
	"context"
	"encoding/json"
	"time"
)

// Assistants manages programs of third parties, most of them language models, that read
// collected data through /mcp. Each sees what its grant names and nothing else.
type Assistants interface {
	// AddAssistant makes an assistant. Only its result holds the token. The name of an
	// active assistant is refused with conflict.
	AddAssistant(ctx context.Context, q NewAssistant) (Assistant, error)
	Assistants(ctx context.Context) ([]Assistant, error)
	// Assistant returns the assistant with this name, or store.ErrNotFound.
	Assistant(ctx context.Context, name string) (Assistant, error)
	// RevokeAssistant ends an assistant at once, including calls in progress, and removes
	// what was kept for it. The record of its calls stays.
	RevokeAssistant(ctx context.Context, name string) (Assistant, error)
	// AssistantCalls returns calls with numbers below before, newest first; before 0 starts
	// at the newest, and that page begins with the calls that wait for approval.
	AssistantCalls(ctx context.Context, name string, before uint64, limit int) ([]AssistantCall, error)
	// DecideCall approves or denies a waiting call. It returns store.ErrNotFound if none
	// waits.
	DecideCall(ctx context.Context, name, call string, yes bool) error
}

// NewAssistant is an owner's request for an assistant.
type NewAssistant struct {
	Name string `json:"name"`
	AssistantTerms
}

// AssistantTerms are what an assistant may see and do.
type AssistantTerms struct {
	Connections []AssistantGrant `json:"connections"`
	// Run lets it start runs of these connections and see what waits for their owner.
	Run bool `json:"run,omitempty"`
	// Ask makes each of its calls wait until the owner approves it.
	Ask       bool       `json:"ask,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// An AssistantGrant is what an assistant may see of one connection.
type AssistantGrant struct {
	ConnectionID string `json:"connectionId"`
	// Scope has the form of a connector's grant: streams, each with fields, resources and a
	// time range; null is every declared stream.
	Scope json.RawMessage `json:"scope,omitempty"`
}

// An Assistant is an assistant that was added.
type Assistant struct {
	Name string `json:"name"`
	AssistantTerms
	Status     string     `json:"status" enum:"active|expired|revoked"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"`
	Calls      uint64     `json:"calls"`
	Waiting    int        `json:"waiting"` // calls that wait for approval
	// Token is the assistant's credential. Only AddAssistant returns it.
	Token string `json:"token,omitempty"`
}

// An AssistantCall is one call of a tool.
type AssistantCall struct {
	CallID string    `json:"callId"`
	Number uint64    `json:"number"` // counts the assistant's calls from 1; 0 while it waits
	At     time.Time `json:"at"`
	Tool   string    `json:"tool"`
	// Arguments are cut at 1,000 characters. Digest covers all of them.
	Arguments string `json:"arguments"`
	Digest    string `json:"digest"`
	Client    string `json:"client,omitempty"` // the program's name for itself
	Rows      int    `json:"rows"`             // records or query rows returned
	Bytes     int    `json:"bytes"`            // length of the answer
	Millis    int64  `json:"ms"`
	// Outcome is done, refused (with Code), failed, or waiting for approval.
	Outcome string `json:"outcome" enum:"done|refused|failed|waiting"`
	Code    string `json:"code,omitempty"`
}
