package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Grants manages what connections may do.
type Grants interface {
	Requested(ctx context.Context, id store.ConnectionID) (Requested, error)
	// GrantConnection replaces the active grant.
	GrantConnection(ctx context.Context, id store.ConnectionID, q GrantTerms) (Grant, error)
	// GrantConnector adds the approvals of q to a connection, creating it if needed.
	GrantConnector(ctx context.Context, q ConnectorGrant) (Connection, error)
	// RevokeGrant revokes a grant, "" being the current one, and ends the active run.
	RevokeGrant(ctx context.Context, id store.ConnectionID, grant string) error
	// ApproveBindings replaces the bindings of a connection.
	ApproveBindings(ctx context.Context, id store.ConnectionID, q Bindings) (Bindings, error)
}

// Requested is what the connector of a connection asks for.
type Requested struct {
	Streams  []RequestedStream           `json:"streams"`
	Bindings map[string]RequestedBinding `json:"bindings"`
	Secrets  []Secret                    `json:"secrets"`
	// Words say it in sentences; Missing are the ones not approved yet.
	Words   []string `json:"words"`
	Missing []string `json:"missing"`
}

// RequestedStream is a stream and what a grant may select of it.
type RequestedStream struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Fields      []string `json:"fields"`
	Views       []string `json:"views"`
	Required    bool     `json:"required"`
	TimeRange   bool     `json:"timeRange"` // records can be selected by consent time
	Resources   bool     `json:"resources"` // records can be selected by resource
}

type GrantTerms struct {
	Scope      json.RawMessage `json:"scope"` // null: everything declared
	AccessMode string          `json:"accessMode" enum:"continuous|single_use"`
	ExpiresAt  *time.Time      `json:"expiresAt,omitempty"`
	// Narrow permits that stored records lose fields that Scope leaves out.
	Narrow bool `json:"narrow,omitempty"`
}

// Grant is what an owner granted.
type Grant struct {
	GrantID    string          `json:"grantId"`
	Scope      json.RawMessage `json:"scope"`
	AccessMode string          `json:"accessMode"`
	Status     string          `json:"status"` // active, consumed, expired, revoked, invalid
	ApprovedBy string          `json:"approvedBy"`
	ApprovedAt time.Time       `json:"approvedAt"`
	ExpiresAt  *time.Time      `json:"expiresAt,omitempty"`
}
