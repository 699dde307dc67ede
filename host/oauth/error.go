package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/oauth2"
)

// Codes of an Error.
const (
	CodeExpired     = "authorization_expired"     // the owner has to authorize again
	CodeRefused     = "authorization_refused"     // the server rejects this client or request
	CodeUnavailable = "authorization_unavailable" // it may work at another time
	CodeLimit       = "authorization_limit"       // too many tokens in one run
)

// An Error says why there is no token. Err is the transport's, or nil if the server answered.
type Error struct {
	Code    string
	Message string
	Err     error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

func errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// named lists the errors of RFC 6749 and RFC 8628, which may be repeated. Other errors are
// arbitrary text of a server.
var named = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
	"unsupported_grant_type", "invalid_scope", "invalid_target",
	"access_denied", "unsupported_response_type", "server_error", "temporarily_unavailable", "authorization_pending",
	"slow_down", "expired_token"}

// explain translates the error of a request to host.
func explain(ctx context.Context, host string, err error) error {
	var own *Error
	var answered *oauth2.RetrieveError
	var transport *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &answered):
		return refusedBy(host, answered)
	case errors.As(err, &transport):
		e := errorf(CodeUnavailable, "%s could not be asked for a token: %v", host, transport.Err)
		e.Err = transport.Err
		return e
	case ctx.Err() != nil:
		return errorf(CodeUnavailable, "%s did not give a token in time", host)
	}
	return errorf(CodeUnavailable, "%s answered with what is no token", host)
}

func refusedBy(host string, r *oauth2.RetrieveError) *Error {
	status := r.Response.StatusCode
	switch code := r.ErrorCode; {
	case code == "invalid_grant":
		return errorf(CodeExpired, "%s does not accept the authorization any more (invalid_grant)", host)
	case code == "access_denied":
		return errorf(CodeRefused, "access was denied at %s", host)
	case code == "expired_token":
		return errorf(CodeExpired, "the code of %s expired before it was entered", host)
	case code == "server_error" || code == "temporarily_unavailable" || code == "slow_down" || status >= 500 ||
		status == http.StatusTooManyRequests:
		return errorf(CodeUnavailable, "%s gives no token now (status %d)", host, status)
	case slices.Contains(named, code):
		return errorf(CodeRefused, "%s refuses to give a token (%s)", host, code)
	case code != "":
		return errorf(CodeRefused, "%s refuses to give a token, for a reason of its own", host)
	}
	return errorf(CodeUnavailable, "%s answered with status %d instead of a token", host, status)
}
