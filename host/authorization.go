package host

import (
	"context"
	"time"
)

// Authorizations obtains OAuth 2.0 tokens for the secrets of connections, after the owner
// agreed at the authorization server. Only the principal that began an authorization sees
// it, and it ends when nobody polls it any more. Only its result is stored.
type Authorizations interface {
	// Authorize approves the hosts of q for the connection, creating the connection if
	// needed, and begins. Authorization tells what the owner has to do.
	Authorize(ctx context.Context, q NewAuthorization) (Authorization, error)
	// Authorization waits up to half a minute for the status to differ from after.
	Authorization(ctx context.Context, id, after string) (Authorization, error)
	// CancelAuthorization ends and forgets an authorization. Nothing is stored for it
	// afterwards.
	CancelAuthorization(ctx context.Context, id string) error
}

// NewAuthorization names a secret that an owner is about to authorize.
type NewAuthorization struct {
	Connector string `json:"connector"` // the installed one, unless Overrides has a module
	// Overrides names the connection, the module and its settings. The hosts among its bindings
	// are approved; its other members are ignored.
	Overrides *Overrides `json:"given"`
	Secret    string     `json:"secret"`
	Flow      string     `json:"flow" enum:"device_code|authorization_code"`
}

// The statuses of an authorization.
const (
	AuthorizationStarting = "starting" // the server is asked
	AuthorizationWaiting  = "waiting"  // for the owner
	AuthorizationStored   = "stored"
	AuthorizationFailed   = "failed"
)

// Authorization is the current state of an authorization. Texts that come from the server
// are reduced to one line of visible characters.
type Authorization struct {
	AuthorizationID string `json:"authorizationId"`
	ConnectionID    string `json:"connectionId"`
	Secret          string `json:"secret"`
	ClientID        string `json:"clientId"` // the client that the server sees
	Status          string `json:"status" enum:"starting|waiting|stored|failed"`
	// URL is the page to open while Status is waiting. With device_code it is at Server,
	// where Code is entered until ExpiresAt. With authorization_code it is for a browser on
	// the host's machine.
	URL       string     `json:"url,omitempty"`
	Server    string     `json:"server,omitempty"`
	Code      string     `json:"code,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Error and Message say why it failed.
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}
