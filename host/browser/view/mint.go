package view

import (
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Modes of a view.
const (
	ModeView    = "view"
	ModeControl = "control"
)

// A Mint asks for a view (B208).
type Mint struct {
	Run string
	// Owner is the owner session that asks, as an opaque name: the view works for it
	// alone (B210).
	Owner         string
	Mode          string // ModeView or ModeControl
	InteractionID string // "" for the one that is open
	AssistanceID  string
	Viewport      *page.Viewport // of the viewer, for control
	Key           string         // of idempotency; "" for none (B211)
}

// Minted is the answer.
type Minted struct {
	ViewID    string
	Token     string // "" when the view was redeemed before (B211)
	Mode      string
	ExpiresAt time.Time // of the token
	Replayed  bool
}
