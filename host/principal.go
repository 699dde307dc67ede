package host

import "context"

// A Principal is who makes a call, as the audit log and the timeline name it. It comes from
// a credential, never from the body of a request.
type Principal struct {
	// ID is key:<keyId>, owner, token, scheduler or host; "" is the owner at the command
	// line.
	ID string
	// Transport is rest, ui, or "" for a schedule and the host itself.
	Transport string
	RequestID string
	Address   string // remote address, "" for the local socket
}

type principalKey struct{}

// As returns a context whose calls are made and logged in the name of who. The HTTP client
// ignores it, because its credential says who calls.
func As(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// Who returns the context's Principal, or the zero Principal.
func Who(ctx context.Context) Principal {
	who, _ := ctx.Value(principalKey{}).(Principal)
	return who
}
