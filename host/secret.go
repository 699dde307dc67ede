package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Secrets sets and removes secrets. Values are never returned.
type Secrets interface {
	// SetSecret accepts 1 byte to 16 KiB. It owns value and wipes it.
	SetSecret(ctx context.Context, id store.ConnectionID, name string, value []byte) error
	Secrets(ctx context.Context, id store.ConnectionID) ([]Secret, error)
	RemoveSecret(ctx context.Context, id store.ConnectionID, name string) error
}

// Secret describes a secret without its value.
type Secret struct {
	Name         string            `json:"name"`
	Label        string            `json:"label,omitempty"`
	Required     bool              `json:"required"`
	Set          bool              `json:"set"`
	SetAt        *time.Time        `json:"setAt,omitempty"`
	Delivery     string            `json:"delivery"` // sealed or plain
	Destinations []abi.Destination `json:"destinations"`
	OAuth        bool              `json:"oauth,omitempty"` // obtained by an Authorization, not typed
}
