//go:build !wasip1

package guesttest

import (
	"net/http"
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

// exited is the end of a run: the checks that need the exit code, then
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

// afterDone checks what a DONE said against the records and the exit.
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

// Options say what the host offers the connector. Only Manifest is needed.
type Options struct {
	// Manifest is the connector's manifest.json. It is validated.
	Manifest []byte
	// Scope is the scope asked for, as in a start request:
	// {"streams":[{"name":"notes","fields":["id"]}]}. Empty asks for all that the
	// manifest declares. It is normalised as by a real host.
	Scope string
	// State holds cursors by stream: anything that marshals to a JSON object.
	State map[string]any
	// Config is the connection's settings, anything that marshals to a JSON
	// object. It is checked against the manifest.
	Config any
	// Secrets are delivered plain, by name.
	Secrets map[string]string
	// Gaps are pending detail gaps offered to the run.
	Gaps []abi.ServedGap
	// Mode is the collection mode. Empty: incremental when there is a state.
	Mode string

	// Answers are what the owner says, one per question, in order.
	Answers []Answer
	// Owner answers instead of Answers.
	Owner func(q abi.InteractionMessage) Answer
	// NotInteractive leaves the interactive binding out of START.
	NotInteractive bool

	// Files are directories of the host by the name of a mount of the manifest.
	Files map[string]string
	// Network answers requests of the network binding that go to the hosts the
	// manifest lists. Nil: every request is refused.
	Network http.Handler
	// Browser answers calls of the browser binding. Nil: every call is refused.
	Browser func(request []byte) (reply []byte, err error)
	// Pages answer them instead. What they offer for download has a handle.
	Pages *Pages

	// Cancel is asked before every call but start; true cancels the run there,
	// as its owner could.
	Cancel func(call abi.Call) bool
	// Limits replace the defaults.
	Limits *abi.Limits
	// WantViolation is the violation that the test is about. Without one any
	// violation fails the test, and with one its absence does.
	WantViolation abi.Subtype
}
