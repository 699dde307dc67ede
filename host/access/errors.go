package access

import (
	"errors"
	"fmt"
	"time"
)

// Why a credential is not taken. Only the last is for a valid one.
var (
	// ErrUnauthenticated: missing, malformed or unknown.
	ErrUnauthenticated = errors.New("no valid credential")
	// ErrKeyExpired: known, but past its date.
	ErrKeyExpired = errors.New("key has expired")
	// ErrKeyRevoked: known, but revoked.
	ErrKeyRevoked = errors.New("key was revoked")
	// ErrForbidden: valid, without the scope.
	ErrForbidden = errors.New("scope is missing")
)

// Why a signed interrupt token is not taken.
var (
	ErrTokenUnknown = errors.New("interrupt token is unknown")
	ErrTokenExpired = errors.New("interrupt token has expired")
)

// Why an idempotent request does not run.
var (
	// ErrMismatch: the key was used with another body.
	ErrMismatch = errors.New("idempotency key was used for another request")
	// ErrInFlight: the first request with the key still runs.
	ErrInFlight = errors.New("the first request with this idempotency key still runs")
	// ErrKeySyntax: not 1 to 255 printable ASCII characters.
	ErrKeySyntax = errors.New("idempotency key is not 1 to 255 printable ASCII characters")
)

// A ScopeError says which scopes a key may not give, because its creator has
// not all of them, or because there are no such scopes.
type ScopeError struct {
	Scopes []Scope
	// Unknown: there is no such scope, as opposed to one that the creator lacks.
	Unknown bool
}

func (e *ScopeError) Error() string {
	if e.Unknown {
		return "there is no such scope"
	}
	return fmt.Sprintf("%d scopes that the creator does not have", len(e.Scopes))
}

// A FieldError is a member that a request has wrong. It holds no value.
type FieldError struct {
	Path string
	Rule string
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Rule }

// A RateError says how long to wait.
type RateError struct {
	RetryAfter time.Duration
	Scope      string // tenant, route, global or key
	Limit      int    // requests per Per
	Per        time.Duration
}

func (e *RateError) Error() string {
	return fmt.Sprintf("more than %d requests per %s", e.Limit, e.Per)
}
