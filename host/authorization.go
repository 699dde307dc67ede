package host

import (
	"context"
	"time"
)

// Authorizations has servers give out tokens for the secrets of connections (OAuth 2.0), once
// their owner agreed there. An authorization is seen by who began it alone, and ends when nobody
// asks after it any more. Nothing of it is stored but what it ends with.
type Authorizations interface {
	// Authorize approves the hosts of q for the connection, which is made if there is none,
	// and begins. What the owner has to do is for Authorization to say.
	Authorize(ctx context.Context, q NewAuthorization) (Authorization, error)
	// Authorization waits while the status is after, at most half a minute.
	Authorization(ctx context.Context, id, after string) (Authorization, error)
	// CancelAuthorization ends it and forgets it. Nothing is stored for it from then on.
	CancelAuthorization(ctx context.Context, id string) error
}

// NewAuthorization names a secret that an owner is about to authorize.
type NewAuthorization struct {
	Connector string `json:"connector"` // the installed one, unless Given has a module
	// Given names the connection, the module and its settings. Of its bindings the hosts
	// are approved. Nothing else of it is looked at.
	Given  *Given `json:"given"`
	Secret string `json:"secret"`
	Flow   string `json:"flow" enum:"device_code|authorization_code"`
}

// The statuses of an authorization.
const (
	AuthorizationStarting = "starting" // the server is asked
	AuthorizationWaiting  = "waiting"  // for the owner
	AuthorizationStored   = "stored"
	AuthorizationFailed   = "failed"
)

// Authorization is what became of one so far. What comes of the server is one line of visible
// text.
type Authorization struct {
	AuthorizationID string `json:"authorizationId"`
	ConnectionID    string `json:"connectionId"`
	Secret          string `json:"secret"`
	ClientID        string `json:"clientId"` // who the server is told that asks
	Status          string `json:"status" enum:"starting|waiting|stored|failed"`
	// URL is the page to open while Status is waiting. With device_code it is of Server, and
	// Code is entered there until ExpiresAt. With authorization_code it is for a browser on
	// the machine of the host.
	URL       string     `json:"url,omitempty"`
	Server    string     `json:"server,omitempty"`
	Code      string     `json:"code,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Error and Message say why it failed.
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}
