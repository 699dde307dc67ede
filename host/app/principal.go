package app

import (
	"context"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
)

// A principal is who asks, as the audit log knows them.
type principal struct{ Actor, RequestID, Address string }

type principalKey struct{}

// as lets everything that is done with the context be written down as done by
// who.
func as(ctx context.Context, who host.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, principal{who.ID, who.RequestID, who.Address})
}

// whoIs is the zero principal, the owner at the command line, unless as was
// called.
func whoIs(ctx context.Context) principal {
	p, _ := ctx.Value(principalKey{}).(principal)
	return p
}

// by adds to an event who caused it.
func by(ctx context.Context, e audit.Event) audit.Event {
	p := whoIs(ctx)
	e.Actor, e.RequestID, e.Address = p.Actor, p.RequestID, p.Address
	return e
}
