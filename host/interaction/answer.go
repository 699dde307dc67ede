package interaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Answer submits an owner's answer to a question and returns once the end of the question is
// durable. All checks are made here, in the order of docs/spec/protocol.md, "Answering". The broker
// owns Data and wipes it in any case.
//
// A *run.Refusal says why the answer was not accepted: invalid_request with details.field,
// invalid_status, not_found, no_pending_interaction, conflict, unavailable once the broker is closed
// or while the run does not get to ask, or interaction_id_mismatch with
// details.currentInteractionId. Nothing was delivered then, and the pending question stays pending.
// Of any number of answers to a question, one is accepted. If ctx's error is returned, the answer
// may have been accepted.
func (d *Broker) Answer(ctx context.Context, a host.Answer) error {
	defer wipe(a.Data)
	id, interactionID := a.RunID, a.InteractionID
	if err := run.CheckAnswer(a, d.timeOuts(a.RunID)); err != nil {
		return err
	}
	if err := d.checkRun(ctx, id, interactionID); err != nil {
		return err
	}
	for {
		asked, err := d.find(ctx, id, interactionID)
		if err != nil {
			return err
		}
		b, err := sealAnswer(asked, a)
		if err != nil {
			return err
		}
		first, settled := d.submit(asked, b)
		if err := waitSettled(ctx, settled); err != nil {
			return err
		}
		if first && d.wasAccepted(asked) {
			return nil
		}
	} // the question is closed, or asked again by a resumed run
}

func wipe(data map[string]json.RawMessage) {
	for _, v := range data {
		clear(v)
	}
	clear(data)
}

// checkRun makes checks 3 and 4: the run exists and is active. For a finished run details.outcome
// says how the question ended, since some codes depend on it.
func (d *Broker) checkRun(ctx context.Context, id store.RunID, interactionID string) error {
	rec, err := d.store.Run(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &run.Refusal{Code: "not_found", Message: "there is no such run"}
	case err != nil:
		return fmt.Errorf("load run %s: %w", id, err)
	case rec.Status == "active":
		return nil
	}
	o, err := Lookup(ctx, d.store, id, interactionID)
	if err != nil {
		return err
	}
	return &run.Refusal{Code: "no_pending_interaction", Message: "the run has ended",
		Details: map[string]any{"outcome": string(o)}}
}

// find makes checks 5 to 7: the pending question has this id.
func (d *Broker) find(ctx context.Context, id store.RunID, interactionID string) (*question, error) {
	for {
		asked, err := d.pending(id, interactionID)
		if asked != nil || err != nil {
			return asked, err
		}
		if err := d.waitForQuestion(ctx, id, interactionID); err != nil {
			return nil, err
		}
	}
}

// pending looks only at the broker. Both results are nil if the question is not there.
func (d *Broker) pending(id store.RunID, interactionID string) (*question, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.runs[id]
	switch {
	case d.closed:
		return nil, &run.Refusal{Code: "unavailable", Message: "the host stops; answer again once it is back"}
	case s == nil:
		return nil, nil
	case s.has(interactionID):
		return nil, conflict()
	case s.isAsking(interactionID):
		return s.question, nil
	}
	return nil, nil
}

// isAsking reports whether the question with that id is at the broker.
func (s *runState) isAsking(interactionID string) bool {
	return s.question != nil && s.question.InteractionID == interactionID
}

func (s *runState) has(interactionID string) bool {
	_, ok := s.answered[interactionID]
	return ok
}

func conflict() error {
	return &run.Refusal{Code: "conflict", Message: "this question was answered before"}
}

// errNothingPending checks once more, since the question may have been answered while the caller
// waited for it. current is the pending question, or "".
func (d *Broker) errNothingPending(id store.RunID, interactionID, current string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s := d.runs[id]; {
	case s != nil && s.has(interactionID):
		return conflict()
	case current != "":
		return &run.Refusal{Code: "interaction_id_mismatch", Message: "another question is pending",
			Details: map[string]any{"currentInteractionId": current}}
	}
	return &run.Refusal{Code: "no_pending_interaction", Message: "no question is pending"}
}

// arrivalWait bounds how long an answer waits for a question that is in the store but not yet on
// the broker.
const arrivalWait = 10 * time.Second

// waitForQuestion waits for a question that is in the store, where a watcher saw it, but not yet at the broker,
// which may still have the previous one. The error is a refusal if the store has no such question.
func (d *Broker) waitForQuestion(ctx context.Context, id store.RunID, interactionID string) error {
	wake, stop := d.store.Watch(id)
	defer stop()
	arrival, leave := d.expect(id, interactionID)
	defer leave()
	limit := time.NewTimer(arrivalWait)
	defer limit.Stop()
	for {
		select {
		case <-arrival:
			return nil
		default:
		}
		open, err := d.store.Pending(ctx, id)
		if err != nil {
			return fmt.Errorf("list open questions of %s: %w", id, err)
		}
		current := ""
		for _, q := range open {
			if current = q.ID; current == interactionID {
				break
			}
		}
		if current != interactionID {
			return d.errNothingPending(id, interactionID, current)
		}
		select {
		case <-arrival:
			return nil
		case <-wake:
		case <-limit.C:
			return &run.Refusal{Code: "unavailable",
				Message: "the run that asks is being resumed, or its host is too busy; answer again in a moment"}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// expect returns a channel that is closed when the question, or another one, arrives at the broker.
func (d *Broker) expect(id store.RunID, interactionID string) (arrival <-chan struct{}, leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state(id)
	if d.closed || s.isAsking(interactionID) {
		there := make(chan struct{})
		close(there)
		return there, func() {}
	}
	if s.arrival == nil {
		s.arrival = make(chan struct{})
	}
	return s.arrival, func() { d.removeEmpty(id) }
}

// removeEmpty removes the state of a run without questions, which may be over and forgotten.
func (d *Broker) removeEmpty(id store.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.runs[id]; s != nil && s.question == nil && len(s.unsettled) == 0 && len(s.answered) == 0 &&
		len(s.assistances) == 0 && !s.allowTimeOuts {
		if s.arrival != nil {
			close(s.arrival) // waiters check again and make a new state
		}
		delete(d.runs, id)
	}
}

// sealAnswer makes check 8 and seals the box. Outside the box nothing of the answer remains except
// data, which the caller wipes.
func sealAnswer(asked *question, a host.Answer) (sealedAnswer, error) {
	b := sealedAnswer{status: a.Status, by: a.By}
	if a.Status != abi.AnswerSuccess {
		return b, nil
	}
	own, err := asked.Check(a.Data)
	if err != nil {
		return b, err
	}
	b.box, err = seal(asked.public, pack(own), asked.Question)
	return b, err
}

// submit decides which answer is first. Any other gets the channel that is closed when the outcome of
// the first is known.
func (d *Broker) submit(asked *question, b sealedAnswer) (first bool, settled <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asked.settled == nil {
		asked.settled = make(chan struct{})
		if asked.done {
			close(asked.settled)
		}
	}
	if asked.answered || asked.done {
		return false, asked.settled
	}
	asked.answered = true
	asked.answers <- b // has room, since only the first answer gets here
	return true, asked.settled
}

func waitSettled(ctx context.Context, settled <-chan struct{}) error {
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Broker) wasAccepted(asked *question) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return asked.accepted
}

// An Outcome says how a question ended, according to the timeline.
type Outcome string

const (
	NeverAsked Outcome = "never_asked"
	Answered   Outcome = "answered"   // by an owner, with a value or with cancelled
	Closed     Outcome = "closed"     // by its time-out, or by the host
	StillOpen  Outcome = "still_open" // its run has ended and it was not closed before
)

// Lookup reads from the timeline how a question ended. It is for finished runs and runs of another
// start of the host; the broker knows the active ones.
func Lookup(ctx context.Context, st Store, id store.RunID, interactionID string) (Outcome, error) {
	const page = 1000
	outcome := NeverAsked
	for from := uint64(0); ; {
		events, err := st.Events(ctx, id, from, page)
		if err != nil {
			return "", fmt.Errorf("read timeline of %s: %w", id, err)
		}
		for _, e := range events {
			from = e.Sequence + 1
			if e.InteractionID != interactionID {
				continue
			}
			switch e.Type {
			case "run.interaction_required":
				outcome = StillOpen
			case "interrupt.resolved":
				return closedBy(e)
			}
		}
		if len(events) < page {
			return outcome, nil
		}
	}
}

// closedBy distinguishes an owner's answer from any other end.
func closedBy(e store.Event) (Outcome, error) {
	var d struct {
		Status string `json:"status"`
		By     string `json:"resolvedBy"`
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return "", fmt.Errorf("event %d: %w", e.Sequence, err)
	}
	if d.Status == abi.AnswerTimeout || d.By == "host" {
		return Closed, nil
	}
	return Answered, nil
}
