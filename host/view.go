package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Views lets an owner watch the browsers of runs. owner names an owner session. A view
// works only for the session that minted it; to others it does not exist. See
// docs/spec/browser.md, "Live view".
type Views interface {
	// MintView makes a view, or repeats the answer of an earlier request with the same Key.
	MintView(ctx context.Context, owner string, q MintView) (View, error)
	// RevokeView ends a view and closes its connection, or returns store.ErrNotFound.
	RevokeView(ctx context.Context, owner string, run store.RunID, viewID string) error
	// ConnectView serves one connection until it or ctx ends, and closes it. The first
	// message says which view it is for.
	ConnectView(ctx context.Context, owner string, run store.RunID, c ViewConn)
	// ReachFailed records that a page could not reach a view, or returns store.ErrNotFound.
	ReachFailed(ctx context.Context, owner string, run store.RunID, viewID, reason string, httpStatus int) error
}

// A ViewConn carries whole messages. Read and Write are each called from one goroutine,
// Close from any number and repeatedly.
type ViewConn interface {
	Read() (binary bool, message []byte, err error)
	Write(binary bool, message []byte) error
	Close(code int, reason string)
}

// MaxViewMessage limits a message from a page, in bytes.
const MaxViewMessage = 256 << 10

// MintView asks for a view.
type MintView struct {
	RunID         store.RunID
	Mode          string // view or control
	InteractionID string
	AssistanceID  string
	Viewport      *Viewport
	Key           string // the Idempotency-Key, "" for none
}

// Viewport is the size of the viewer's window, in CSS pixels.
type Viewport struct {
	Width             float64 `json:"width"`
	Height            float64 `json:"height"`
	DeviceScaleFactor float64 `json:"deviceScaleFactor,omitempty"`
	Mobile            bool    `json:"mobile,omitempty"`
}

// View is a minted view. Token is null once it has been used.
type View struct {
	ViewID    string    `json:"viewId"`
	Token     *string   `json:"token"`
	Mode      string    `json:"mode"`
	ExpiresAt time.Time `json:"expiresAt"`
	Replayed  bool      `json:"replayed"`
}
