package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Views are the owner's windows on the browsers of runs (run-api.md section 10.9,
// browser.md section 7). owner names an owner session; a view works for the one
// that minted it. A view of another looks like one that does not exist.
type Views interface {
	// MintView makes a view, or repeats the answer of a request with the same Key
	// (B211). Refusals are those of A231.
	MintView(ctx context.Context, owner string, q MintView) (View, error)
	// RevokeView ends it and closes its connection: store.ErrNotFound.
	RevokeView(ctx context.Context, owner string, run store.RunID, viewID string) error
	// ConnectView serves one connection until it, or ctx, ends, and closes it. What
	// it is for, its first message says.
	ConnectView(ctx context.Context, owner string, run store.RunID, c ViewConn)
	// ReachFailed records that a page could not reach a view (B214): store.ErrNotFound.
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

// MintView is the body of A231.
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

// View is the answer of A231. Token is null once the view was used.
type View struct {
	ViewID    string    `json:"viewId"`
	Token     *string   `json:"token"`
	Mode      string    `json:"mode"`
	ExpiresAt time.Time `json:"expiresAt"`
	Replayed  bool      `json:"replayed"`
}
