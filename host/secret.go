package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Secrets sets and removes secrets. No value is ever read back.
type Secrets interface {
	// SetSecret takes 1 byte to 16 KiB. The value belongs to the callee, which wipes
	// it.
	SetSecret(ctx context.Context, id store.ConnectionID, name string, value []byte) error
	Secrets(ctx context.Context, id store.ConnectionID) ([]Secret, error)
	RemoveSecret(ctx context.Context, id store.ConnectionID, name string) error
}

// Secret is what may be known of a secret.
type Secret struct {
	Name         string            `json:"name"`
	Label        string            `json:"label,omitempty"`
	Required     bool              `json:"required"`
	Set          bool              `json:"set"`
	SetAt        *time.Time        `json:"setAt,omitempty"`
	Delivery     string            `json:"delivery"` // sealed or plain
	Destinations []abi.Destination `json:"destinations"`
	OAuth        bool              `json:"oauth,omitempty"` // authorized, not typed
}
