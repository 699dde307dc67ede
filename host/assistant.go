package host

import (
	"context"
	"encoding/json"
	"time"
)

// Assistants are programs of others, most of them language models, that read what was
// collected through /mcp. Each sees what its grant names and nothing else.
type Assistants interface {
	// AddAssistant makes an assistant. Its token is in this answer and nowhere else. The
	// refusal is conflict when the name is that of one which is active.
	AddAssistant(ctx context.Context, q NewAssistant) (Assistant, error)
	Assistants(ctx context.Context) ([]Assistant, error)
	// Assistant is the one of a name: store.ErrNotFound.
	Assistant(ctx context.Context, name string) (Assistant, error)
	// RevokeAssistant ends it at once, also calls that are on their way, and removes what
	// was kept for it. Its calls stay on record.
	RevokeAssistant(ctx context.Context, name string) (Assistant, error)
	// AssistantCalls are the newest calls that came before a number, newest first; those
	// that wait for a yes come first on the first page. before 0 is the newest.
	AssistantCalls(ctx context.Context, name string, before uint64, limit int) ([]AssistantCall, error)
	// DecideCall says yes or no to a call that waits: store.ErrNotFound when none does.
	DecideCall(ctx context.Context, name, call string, yes bool) error
}

// NewAssistant is an assistant as an owner asks for it.
type NewAssistant struct {
	Name string `json:"name"`
	AssistantTerms
}

// AssistantTerms are what an assistant may see and do.
type AssistantTerms struct {
	Connections []AssistantGrant `json:"connections"`
	// Run lets it start runs of these connections and see what waits for their owner.
	Run bool `json:"run,omitempty"`
	// Ask has each of its calls wait until the owner says yes.
	Ask       bool       `json:"ask,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// An AssistantGrant is what an assistant may see of one connection.
type AssistantGrant struct {
	ConnectionID string `json:"connectionId"`
	// Scope is as that of a connector's grant: streams, each with fields, resources and a
	// time range; null is every stream that is declared.
	Scope json.RawMessage `json:"scope,omitempty"`
}

// An Assistant is one that was made.
type Assistant struct {
	Name string `json:"name"`
	AssistantTerms
	Status     string     `json:"status" enum:"active|expired|revoked"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty"`
	Calls      uint64     `json:"calls"`
	Waiting    int        `json:"waiting"` // calls that wait for a yes
	// Token is what it presents. Only AddAssistant answers with it.
	Token string `json:"token,omitempty"`
}

// An AssistantCall is one call of a tool.
type AssistantCall struct {
	CallID string    `json:"callId"`
	Number uint64    `json:"number"` // of the assistant's calls, from 1; 0 while it waits
	At     time.Time `json:"at"`
	Tool   string    `json:"tool"`
	// Arguments are as they came, cut at 1,000 characters. Digest is of all of them.
	Arguments string `json:"arguments"`
	Digest    string `json:"digest"`
	Client    string `json:"client,omitempty"` // what the program calls itself
	Rows      int    `json:"rows"`             // records, or rows of a query, that it got
	Bytes     int    `json:"bytes"`            // of the answer
	Millis    int64  `json:"ms"`
	// Outcome is done, refused (with Code), failed, or waiting for a yes.
	Outcome string `json:"outcome" enum:"done|refused|failed|waiting"`
	Code    string `json:"code,omitempty"`
}
