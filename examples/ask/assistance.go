package main

import (
	"context"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Assistance does not wait for an answer: the connector says what it
// waits for and finds out by itself when that is over.

// externalApproval waits for something that the owner does in another app. The
// other app is a counter here. When the approval never comes, the connector says
// so and asks.
func (a *asker) externalApproval(ctx context.Context, q question) (outcome, error) {
	id, err := a.run.Assist(guest.Assistance{
		Posture: guest.PostureRunning, Action: guest.ActionActElsewhere, Message: q.Message, Stream: stream,
	})
	if err != nil {
		return outcome{}, err
	}
	if err := a.poll(ctx, q.Polls, "Not approved yet"); err != nil {
		return outcome{}, err
	}
	if !q.Never {
		err := a.run.AssistStatus(id, guest.Resolved, "Approved in the other app")
		return outcome{Outcome: "approved", Polls: q.Polls}, err
	}
	if err := a.run.AssistStatus(id, guest.TimedOut, "Nothing came"); err != nil {
		return outcome{}, err
	}
	q.Message = "No approval came from the other app. Go on without it?"
	o, err := a.approval(ctx, q)
	o.Polls = q.Polls
	return o, err
}

// backOff waits out a limit of the service: the owner has nothing to do.
func (a *asker) backOff(ctx context.Context, q question) (outcome, error) {
	id, err := a.run.Assist(guest.Assistance{
		Posture: guest.PostureWaitingRetry, Action: guest.ActionNone, Message: q.Message, Stream: stream,
	})
	if err != nil {
		return outcome{}, err
	}
	if err := a.poll(ctx, q.Polls, "Trying again"); err != nil {
		return outcome{}, err
	}
	err = a.run.AssistStatus(id, guest.Resolved, "")
	return outcome{Outcome: "over", Polls: q.Polls}, err
}

// poll looks n times, with a pause before each look. Looking is a call: it finds
// out when the run is cancelled.
func (a *asker) poll(ctx context.Context, n int, message string) error {
	for i := range n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(a.settings.pause()):
		}
		if err := a.run.Progress(message, guest.OnStream(stream), guest.Count(i+1), guest.Total(n)); err != nil {
			return err
		}
	}
	return nil
}
