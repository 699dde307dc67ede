package access

import (
	"errors"
	"fmt"
	"time"
)

// Errors of credentials. Only the last is for a valid one.
var (
	// ErrUnauthenticated means missing, malformed or unknown.
	ErrUnauthenticated = errors.New("no valid credential")
	// ErrKeyExpired means known but expired.
	ErrKeyExpired = errors.New("key has expired")
	// ErrKeyRevoked means known but revoked.
	ErrKeyRevoked = errors.New("key was revoked")
	// ErrForbidden means valid but without the scope.
	ErrForbidden = errors.New("scope is missing")
)

// Errors of signed interrupt tokens.
var (
	ErrTokenUnknown = errors.New("interrupt token is unknown")
	ErrTokenExpired = errors.New("interrupt token has expired")
)

// Errors of idempotent requests.
var (
	// ErrMismatch means that the key was used with another body.
	ErrMismatch = errors.New("idempotency key was used for another request")
	// ErrInFlight means that the first request with the key is still running.
	ErrInFlight = errors.New("the first request with this idempotency key still runs")
	// ErrKeySyntax means that the key is not 1 to 255 printable ASCII characters.
	ErrKeySyntax = errors.New("idempotency key is not 1 to 255 printable ASCII characters")
)

// A ScopeError lists scopes that a key cannot be given, because its creator lacks them or they do
// not exist.
type ScopeError struct {
	Scopes []Scope
	// Unknown means that the scopes do not exist.
	Unknown bool
}

func (e *ScopeError) Error() string {
	if e.Unknown {
		return "there is no such scope"
	}
	return fmt.Sprintf("%d scopes that the creator does not have", len(e.Scopes))
}

// A FieldError reports an invalid member of a request, without its value.
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
