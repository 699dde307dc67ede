package app

import (
	"context"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
)

// by adds to an event who caused it: the principal of the context.
func by(ctx context.Context, e audit.Event) audit.Event {
	who := host.Who(ctx)
	e.Actor, e.RequestID, e.Address = who.ID, who.RequestID, who.Address
	return e
}
