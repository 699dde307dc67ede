package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Kind is a kind of document, a slug of at most 32 characters.
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
	Delivered    Kind = "delivered"   // progress of destinations, by name
	Commands     Kind = "command"     // between hosts, sealed, by the epoch of the recipient
	Vault        Kind = "vault"       // of the hosts that share a store: its register, and requests for admission
	Secrets      Kind = "secret"      // in that vault, sealed, by connection and name
	SavedQueries Kind = "saved-query" // saved by owners, by name
	Assistants   Kind = "assistant"   // by name
	// AssistantCalls are by the assistant's id and the number of the call.
	AssistantCalls Kind = "assistant-call"
	AssistantAsks  Kind = "assistant-ask" // calls that wait for the owner at one of several hosts, by assistant and call
	Correlations   Kind = "correlation"   // runs of a scope id, by its digest
	AuditEntries   Kind = "audit-entry"   // of the hosts that share a store, by time, host, log and sequence
	AuditLogs      Kind = "audit-log"     // how much of each is in AuditEntries, by host and log
)

// Withdrawals is a kind without documents, for Members.Changed: another host changed the Withdrawals of a connection.
const Withdrawals Kind = "withdrawal"

// A Document is a small JSON value that belongs to no run: a schedule, an API
// key, a webhook.
type Document struct {
	Kind Kind
	ID   string
	// Revision grows by one with every change, from 1.
	Revision uint64
	Data     json.RawMessage
	// ExpiresAt is when the document becomes absent. Zero means never.
	ExpiresAt time.Time
}

// A Write changes one document.
type Write struct {
	Kind Kind
	ID   string          // 1 to 512 bytes; documents are listed in its order
	Data json.RawMessage // nil deletes the document, if it exists
	// If is the revision that the document must have, 0 if it must be absent; nil
	// overwrites any.
	If        *uint64
	ExpiresAt time.Time
}

// A DocumentQuery selects documents of one kind, in the order of their ids.
type DocumentQuery struct {
	Kind   Kind
	Prefix string // that ids begin with
	// After continues a listing after that id; "" starts at the beginning, or at the end if
	// Descending.
	After      string
	Descending bool
	Limit      int // 1..1000; 0 means 100
}

// Absent is a value for Write.If that requires that the document is absent.
func Absent() *uint64 { return new(uint64) }

// A ConflictError says that a document does not have the revision that a Write requires.
type ConflictError struct {
	Kind     Kind
	ID       string
	Revision uint64 // the actual one; 0 means absent
}

func (e *ConflictError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("%s is gone", e.Kind)
	}
	return fmt.Sprintf("%s was changed meanwhile: it has revision %d", e.Kind, e.Revision)
}
