package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Views let an owner look at the browsers of runs. owner names an owner session; a view works
// for the one that minted it, and looks to any other like one that does not exist. See
// docs/spec/browser.md, "Live view".
type Views interface {
	// MintView makes a view, or repeats the answer of a request with the same Key.
	MintView(ctx context.Context, owner string, q MintView) (View, error)
	// RevokeView ends it and closes its connection: store.ErrNotFound.
	RevokeView(ctx context.Context, owner string, run store.RunID, viewID string) error
	// ConnectView serves one connection until it, or ctx, ends, and closes it. What
	// it is for, its first message says.
	ConnectView(ctx context.Context, owner string, run store.RunID, c ViewConn)
	// ReachFailed records that a page could not reach a view: store.ErrNotFound.
	ReachFailed(ctx context.Context, owner string, run store.RunID, viewID, reason string, httpStatus int) error
}

// A ViewConn carries whole messages. Read and Write are called from one goroutine
// each, Close from any and more than once.
type ViewConn interface {
	Read() (binary bool, message []byte, err error)
	Write(binary bool, message []byte) error
	Close(code int, reason string)
}

// MaxViewMessage is how long a message of a page's may be, in bytes.
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

// Viewport is the size of whoever looks, in CSS pixels.
type Viewport struct {
	Width             float64 `json:"width"`
	Height            float64 `json:"height"`
	DeviceScaleFactor float64 `json:"deviceScaleFactor,omitempty"`
	Mobile            bool    `json:"mobile,omitempty"`
}

// View is a view that was minted. Token is null once it was used.
type View struct {
	ViewID    string    `json:"viewId"`
	Token     *string   `json:"token"`
	Mode      string    `json:"mode"`
	ExpiresAt time.Time `json:"expiresAt"`
	Replayed  bool      `json:"replayed"`
}
