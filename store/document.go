package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Kind names one sort of document. It is a slug of at most 32 characters.
type Kind string

// The kinds of documents that the host keeps.
const (
	Schedules    Kind = "schedule"    // by connection id
	Ticks        Kind = "tick"        // history of schedules, by connection id and time
	Keys         Kind = "api-key"     // by key id
	Sessions     Kind = "session"     // of the dashboard, by the digest of the cookie
	Logins       Kind = "login"       // one-time login tokens, by their digest
	Replies      Kind = "idempotency" // answers to idempotent requests, by a keyed digest
	Webhooks     Kind = "webhook"     // by webhook id
	Deliveries   Kind = "delivery"    // of webhooks, by webhook id and time
	Installation Kind = "setting"     // of this installation, by name
	Attention    Kind = "attention"   // marks of connections that wait for their owner, by connection id
	Destinations Kind = "destination" // by name
	Delivered    Kind = "delivered"   // how destinations stand, by name
	Commands     Kind = "command"     // between hosts, sealed, by the epoch of who is asked
	Vault        Kind = "vault"       // of the hosts that share a store: its register, and who asks to be admitted
	Secrets      Kind = "secret"      // in that vault, sealed, by connection and name
	SavedQueries Kind = "saved-query" // that owners keep, by name
	Assistants   Kind = "assistant"   // by name
	// AssistantCalls are by the assistant's id and the number of the call.
	AssistantCalls Kind = "assistant-call"
)

// A Document is a small JSON value that belongs to no run: a schedule, an API
// key, a webhook.
type Document struct {
	Kind Kind
	ID   string
	// Revision grows by one with every change, from 1.
	Revision uint64
	Data     json.RawMessage
	// ExpiresAt ends it: from then on it is read as absent. Zero is never.
	ExpiresAt time.Time
}

// A Write changes one document.
type Write struct {
	Kind Kind
	ID   string          // 1 to 512 bytes; documents are listed in its order
	Data json.RawMessage // nil deletes it, which is no error when it is absent
	// If is the revision that the document must have, 0 for one that must be
	// absent; nil writes over whatever is there.
	If        *uint64
	ExpiresAt time.Time
}

// A DocumentQuery selects documents of one kind, in the order of their ids.
type DocumentQuery struct {
	Kind   Kind
	Prefix string // that ids begin with
	// After continues a listing behind that id; "" is the beginning, or with
	// Descending the end.
	After      string
	Descending bool
	Limit      int // 1..1000; 0 means 100
}

// Absent is for Write.If: nothing may be there.
func Absent() *uint64 { return new(uint64) }

// A ConflictError says that a document was not as its Write expected.
type ConflictError struct {
	Kind     Kind
	ID       string
	Revision uint64 // that it has; 0 is absent
}

func (e *ConflictError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("%s is gone", e.Kind)
	}
	return fmt.Sprintf("%s was changed meanwhile: it has revision %d", e.Kind, e.Revision)
}
