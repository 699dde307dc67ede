// Package host is what the dashboard asks of the host, and what it gets:
// commands as small interfaces, native resources as they stand in the API
// (run-api.md section 10). The host implements it; api, ui and tests use it.
//
// Everything here is data and declarations. Whoever implements a command checks
// what it is given; whoever calls it has checked that the principal may (A28).
package host

import "fmt"

// A Principal is who asks, for the audit log and the timeline. It is never
// taken from a request's body (A149).
type Principal struct {
	// ID is key:<keyId>, owner, token, scheduler or host.
	ID string
	// Transport is rest, ui, or "" for a schedule and the host itself (A100).
	Transport string
	RequestID string
	Address   string // remote address, "" for the local socket
}

// A Refusal is why a command was not carried out. Code is one of A43, or of
// runtime.md, which A44 maps; the caller chooses the HTTP status. Message is for
// people and holds no submitted value (A45).
type Refusal struct {
	Code    string
	Message string
	Details map[string]any
}

func (e *Refusal) Error() string { return e.Code + ": " + e.Message }

// Refuse makes a Refusal.
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds a detail.
func (e *Refusal) With(key string, value any) *Refusal {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}
