package interaction

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// An Outcome is what became of a question, as the timeline tells it.
type Outcome string

const (
	NeverAsked Outcome = "never_asked"
	Answered   Outcome = "answered"   // by an owner, with a value or with cancelled
	Closed     Outcome = "closed"     // by its time-out, or by the host
	StillOpen  Outcome = "still_open" // of a run that is over: it ended with the run
)

// Lookup reads from the timeline what became of a question. It answers for runs
// that are over, and for those of another start of the host; the desk itself
// knows the active ones.
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

// closedBy tells an owner's answer from any other end.
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
