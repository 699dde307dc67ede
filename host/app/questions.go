package app

import (
	"context"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// Answer implements host.Questions. A no_pending_interaction of a run that is
// over has details.outcome: what became of the question (interaction.Outcome).
//
// The audit log names the interaction and who answered (A166). An answer that
// could not be written down is not taken.
func (s *Service) Answer(ctx context.Context, a host.Answer) error {
	defer func() { // also when the desk never saw it
		for _, v := range a.Data {
			clear(v)
		}
	}()
	e := audit.Event{Action: audit.InteractionAnswered, Target: string(a.RunID) + "/" + a.InteractionID, Outcome: audit.Done}
	return asked(s.host.audited(by(ctx, e), func() error {
		a.Status, a.By = strings.Clone(a.Status), host.Who(ctx).ID
		return s.desk.Answer(ctx, a)
	}))
}

// RawAssistance implements host.Questions.
func (s *Service) RawAssistance(ctx context.Context, id store.RunID, requestID string) (host.RawAssistance, error) {
	return s.desk.Raw(ctx, id, requestID)
}
