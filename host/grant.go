package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Grants say what connections may do.
type Grants interface {
	Requested(ctx context.Context, id store.ConnectionID) (Requested, error)
	// GrantConnection replaces the active grant.
	GrantConnection(ctx context.Context, id store.ConnectionID, q GrantTerms) (Grant, error)
	// GrantGiven gives a connection what q says, beside what it has, and makes one that
	// there is not. The connector need not be installed.
	GrantGiven(ctx context.Context, q GivenGrant) (Connection, error)
	// RevokeGrant ends the active run too; "" is the current grant.
	RevokeGrant(ctx context.Context, id store.ConnectionID, grant string) error
	// ApproveBindings replaces what the connection may use.
	ApproveBindings(ctx context.Context, id store.ConnectionID, q Bindings) (Bindings, error)
}

// Requested is what a connection's connector asks for.
type Requested struct {
	Streams  []RequestedStream           `json:"streams"`
	Bindings map[string]RequestedBinding `json:"bindings"`
	Secrets  []Secret                    `json:"secrets"`
	// Words say the same in sentences; Missing are those not yet given.
	Words   []string `json:"words"`
	Missing []string `json:"missing"`
}

// RequestedStream is a stream with what a grant may choose of it.
type RequestedStream struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Fields      []string `json:"fields"`
	Views       []string `json:"views"`
	Required    bool     `json:"required"`
	TimeRange   bool     `json:"timeRange"` // its records have a consent time
	Resources   bool     `json:"resources"` // they can be chosen by resource
}

// GrantTerms are what an owner grants.
type GrantTerms struct {
	Scope      json.RawMessage `json:"scope"` // null: everything declared
	AccessMode string          `json:"accessMode" enum:"continuous|single_use"`
	ExpiresAt  *time.Time      `json:"expiresAt,omitempty"`
	// Narrow says that stored records may lose fields that Scope leaves out.
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
