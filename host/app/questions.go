package app

import (
	"context"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/store"
)

// questions implements host.Questions.
type questions struct {
	*directory
	desk *interaction.Desk
}

var _ host.Questions = (*questions)(nil)

// Answer implements host.Questions. A no_pending_interaction of a run that is over has
// details.outcome: what became of the question (interaction.Outcome).
//
// The audit log names the interaction and who answered. An answer that could not be written
// down is not taken.
func (qs *questions) Answer(ctx context.Context, a host.Answer) error {
	defer func() { // also when the desk never saw it
		for _, v := range a.Data {
			clear(v)
		}
	}()
	e := audit.Event{Action: audit.InteractionAnswered, Target: string(a.RunID) + "/" + a.InteractionID, Outcome: audit.Done}
	return asRefusal(qs.audited(by(ctx, e), func() error {
		a.Status, a.By = strings.Clone(a.Status), host.Who(ctx).ID
		return qs.desk.Answer(ctx, a)
	}))
}

// RawAssistance implements host.Questions.
func (qs *questions) RawAssistance(ctx context.Context, id store.RunID, requestID string) (host.RawAssistance, error) {
	return qs.desk.Raw(ctx, id, requestID)
}
