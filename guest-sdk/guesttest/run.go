//go:build !wasip1

package guesttest

import (
	"testing"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Run does one run of c and returns what came out. It fails the test on a
// violation (see Options.WantViolation), on an unanswered question, and stops
// it when the options themselves make no run.
func Run(t testing.TB, c guest.Connector, o Options) *Result {
	t.Helper()
	h, err := open(t, o)
	if err != nil {
		t.Fatalf("guesttest: %v", err)
	}
	h.result.ExitCode = guest.Drive(t.Context(), c, h)
	h.exited()
	h.result.Transcript = h.transcript.String()
	v := h.result.Violation
	switch {
	case v == nil && o.WantViolation != "":
		t.Errorf("guesttest: want violation %s, have none\n%s", o.WantViolation, h.result.Transcript)
	case v != nil && v.Subtype != o.WantViolation:
		t.Errorf("guesttest: violation %s: %v\n%s", v.Subtype, v, h.result.Transcript)
	}
	return h.result
}

// exited is the end of a run (§13.1): the checks that need the exit code, then
// its status.
func (h *host) exited() {
	r := h.result
	h.line("EXIT %d", r.ExitCode)
	if r.Violation == nil && r.Done != nil && !h.cancelled {
		h.afterDone()
	}
	for _, a := range h.protocol.OpenAssistances() {
		h.protocol.CloseAssistance(a.ID)
	}
	switch {
	case h.cancelled:
		r.Status = abi.Cancelled
	case r.Violation != nil || r.Done == nil:
		r.Status = abi.Failed
	default:
		r.Status = r.Done.Status
	}
}

// afterDone is checks 8 to 10 of §9.11.
func (h *host) afterDone() {
	d := h.result.Done
	switch {
	case (h.result.ExitCode == 0) != (d.Status == abi.Succeeded):
		h.violate(&abi.Violation{Subtype: abi.VExitCodeMismatch, MessageType: "DONE"})
	case d.RecordsEmitted == nil:
		h.violate(&abi.Violation{Subtype: abi.VDoneInvalidRecordsEmitted, MessageType: "DONE", Received: d.ReportedRecords})
	case *d.RecordsEmitted != h.protocol.Records():
		h.violate(&abi.Violation{Subtype: abi.VDoneRecordsEmittedMismatch, MessageType: "DONE", Received: d.ReportedRecords})
	}
}
