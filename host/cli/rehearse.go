package cli

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// rehearsedWithin is how long a check stops a connector at ever more places.
const rehearsedWithin = 2 * time.Minute

// rehearse reports whether a connector does the same again when it is stopped and resumed from its journal.
func (c checkCommands) rehearse(ctx context.Context, h *app.Host, to *client.Client, report *checkReport,
	q app.RunRequest, recorded store.RunID, answers *savedAnswers) error {
	r, err := to.Recording(ctx, recorded)
	if errors.Is(err, store.ErrNotFound) {
		report.add("replay", "warning", "not tried: a run of it is too large to be recorded")
		return nil
	}
	if err != nil {
		return err
	}
	var given map[string]host.Answer
	if answers != nil {
		given = answers.all
	}
	out, err := h.Rehearse(ctx, q.Connector, []byte(r.Text), given, rehearsedWithin)
	if err != nil {
		return err
	}
	places := countOf(out.Tried, out.At)
	if out.Tried < out.Places {
		places = count(out.Tried) + " of " + countOf(out.Places, out.At)
	}
	switch {
	case out.Differs != "":
		c.code = exitConnector
		report.add("replay", "failed", "%s", out.Differs)
	case out.Bound != "":
		report.add("replay", "ok", "stopped at %s and resumed: the same records; no run of it outlives its host %s", places,
			out.Bound)
	case out.Untried != "":
		report.add("replay", "warning", "stopped at %s and resumed; %s", places, out.Untried)
	case out.Places == 0:
		report.add("replay", "ok", "nothing to try: it asked nothing")
	default:
		report.add("replay", "ok", "stopped at %s and resumed: the same records each time", places)
	}
	return nil
}

// savedAnswers are the answers to the questions of a run, by interaction.
type savedAnswers struct {
	mu  sync.Mutex
	all map[string]host.Answer
}

// wrap returns an owner whose answers are kept.
func (g *savedAnswers) wrap(owner run.Owner) run.Owner {
	if g == nil {
		return owner
	}
	return savingOwner{owner, g}
}

type savingOwner struct {
	run.Owner
	answers *savedAnswers
}

// Ask implements run.Owner.
func (o savingOwner) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	a, err := o.Owner.Ask(ctx, q)
	if err != nil {
		return a, err
	}
	kept := a.Clone()
	if a.Status == abi.AnswerSuccess {
		if own, err := q.Check(kept.Data); err == nil { // else the host refuses it too
			kept.Data = maps.Clone(own)
		}
	}
	o.answers.mu.Lock()
	defer o.answers.mu.Unlock()
	o.answers.all[q.InteractionID] = kept
	return a, nil
}
