package main

import (
	"fmt"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// maxReports bounds the messages of one kind.
const maxReports = 50

// A trouble collects what cannot be read, for the end of the run.
type trouble struct {
	reports []report
	count   map[string]int // by reason
}

type report struct{ reason, path, message string }

func newTrouble() *trouble { return &trouble{count: map[string]int{}} }

func (t *trouble) add(reason, path, format string, args ...any) {
	if t.count[reason]++; t.count[reason] <= maxReports {
		t.reports = append(t.reports, report{reason, path, fmt.Sprintf(format, args...)})
	}
}

// event adds that the repetitions of an event cannot be computed.
func (t *trouble) event(e *event, err error) {
	t.add("unsupported_recurrence", e.calendar, "%s: event %.100q: %v", e.calendar, e.uid, err)
}

// send reports everything. What concerns files goes without a stream: none of
// the streams failed.
func (t *trouble) send(run *guest.Run) error {
	for _, r := range t.reports {
		s := guest.Skip{Reason: r.reason, Message: abi.Cut(r.message, 2000)}
		if r.path != "" && len(r.path) <= 200 {
			s.ResourceIDs = []string{r.path}
		}
		if err := run.Skip(s); err != nil {
			return err
		}
	}
	for _, reason := range []string{"malformed_file", "malformed_event", "duplicate_event", "unknown_time_zone",
		"unsupported_recurrence", "attachment_left_out"} {
		if more := t.count[reason] - maxReports; more > 0 {
			err := run.Skip(guest.Skip{Reason: reason, Message: fmt.Sprintf("And %d more.", more)})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
