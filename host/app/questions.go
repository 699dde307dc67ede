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
	broker *interaction.Broker
	hosts  *hosts
}

var _ host.Questions = (*questions)(nil)

// Answer implements host.Questions. For a run that is over, no_pending_interaction has details.outcome, the
// outcome of the question (interaction.Outcome).
//
// The audit log names the interaction and who answered. An answer that cannot be logged is not accepted.
func (qs *questions) Answer(ctx context.Context, a host.Answer) error {
	defer func() { // also if the broker never gets it
		for _, v := range a.Data {
			clear(v)
		}
	}()
	_, err := atHolder(ctx, qs.hosts.peers, a.RunID, "answer", a, qs.answer)
	return err
}

func (qs *questions) answer(ctx context.Context, a host.Answer) (struct{}, error) {
	e := audit.Event{Action: audit.InteractionAnswered, Target: string(a.RunID) + "/" + a.InteractionID,
		Outcome: audit.Done}
	return struct{}{}, asRefusal(qs.audited(by(ctx, e), func() error {
		a.Status, a.By = strings.Clone(a.Status), host.Who(ctx).ID
		return qs.broker.Answer(ctx, a)
	}))
}

// RawAssistance implements host.Questions.
func (qs *questions) RawAssistance(ctx context.Context, id store.RunID, requestID string) (host.RawAssistance, error) {
	w, err := atHolder(ctx, qs.hosts.peers, id, "question", wording{Run: id, Request: requestID}, qs.raw)
	w.Raw.Fields, w.Raw.Page = w.Fields, w.Page
	return w.Raw, err
}

// wording is both the request for the texts of a question and its response. Fields and Page are not part of an
// API document and are sent apart.
type wording struct {
	Run     store.RunID
	Request string
	Raw     host.RawAssistance
	Fields  map[string]string
	Page    *host.OpenPage
}

func (qs *questions) raw(ctx context.Context, w wording) (wording, error) {
	var err error
	w.Raw, err = qs.broker.Raw(ctx, w.Run, w.Request)
	w.Fields, w.Page = w.Raw.Fields, w.Raw.Page
	return w, err
}
