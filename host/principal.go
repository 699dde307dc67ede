package host

import "context"

// A Principal is who asks, for the audit log and the timeline. It comes from a
// credential, never from a request's body.
type Principal struct {
	// ID is key:<keyId>, owner, token, scheduler or host; "" is the owner at the
	// command line.
	ID string
	// Transport is rest, ui, or "" for a schedule and the host itself.
	Transport string
	RequestID string
	Address   string // remote address, "" for the local socket
}

type principalKey struct{}

// As returns a context whose calls are made, and written down, in the name of who.
// Over a client the credential says who asks, and this has no effect.
func As(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// Who is the principal of a context, the zero Principal if none was set.
func Who(ctx context.Context) Principal {
	who, _ := ctx.Value(principalKey{}).(Principal)
	return who
}
