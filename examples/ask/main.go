// Command ask is a connector that asks: every kind of question, every kind of
// assistance, one record for each outcome. It shows how a connector involves its
// owner, and is what questions and the pages are tried with.
package main

import (
	"context"
	"strconv"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

// An asker is one run.
type asker struct {
	run      *guest.Run
	settings settings
}

// collect asks what the settings say, and records what came of it.
func collect(ctx context.Context, run *guest.Run) error {
	s, err := readSettings(run)
	if err != nil {
		return guest.Fail("settings_invalid", false, guest.NotRetriable, "read settings: %w", err)
	}
	a := &asker{run, s}
	for i, q := range s.Ask {
		if err := run.Progress("Asking: "+q.Kind, guest.Count(i), guest.Total(len(s.Ask))); err != nil {
			return err
		}
		o, known, err := a.ask(ctx, q)
		if err != nil {
			return err
		}
		if !known {
			err = run.Skip(guest.Skip{Stream: stream, Reason: "unknown_kind", Message: "No such kind: " + q.Kind})
		} else {
			o.ID, o.Kind = strconv.Itoa(i+1)+"-"+q.Kind, q.Kind
			err = run.Emit(stream, o.ID, &o)
		}
		if err != nil {
			return err
		}
	}
	return run.Checkpoint(stream, map[string]int{"asked": len(s.Ask)})
}

// ask puts one question. known is false for a kind that there is not.
func (a *asker) ask(ctx context.Context, q question) (o outcome, known bool, err error) {
	switch q.Kind {
	case "otp":
		o, err = a.otp(ctx, q)
	case "credentials":
		o, err = a.credentials(ctx, q)
	case "manual_action":
		o, err = a.manualAction(ctx, q)
	case "approval":
		o, err = a.approval(ctx, q)
	case "clarification":
		o, err = a.clarification(ctx, q)
	case "external_approval":
		o, err = a.externalApproval(ctx, q)
	case "back_off":
		o, err = a.backOff(ctx, q)
	default:
		return o, false, nil
	}
	return o, true, err
}
