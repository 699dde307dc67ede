//go:build !wasip1

package guesttest

import (
	"net/http"
	"testing"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Run performs one run of c and returns its result. A violation (see Options.WantViolation)
// or an unanswered question fails the test; invalid options stop it.
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

// exited makes the checks that need the exit code and sets the status of the run.
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

// afterDone compares DONE with the records and the exit code.
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

// Options are what the host offers the connector. Only Manifest is required.
type Options struct {
	// Manifest is the connector's manifest.json, which is validated.
	Manifest []byte
	// Scope is the requested scope, as in a start request:
	// {"streams":[{"name":"notes","fields":["id"]}]}. Empty requests everything that the
	// manifest declares. It is normalised as by a real host.
	Scope string
	// State holds cursors by stream, values that marshal to a JSON object.
	State map[string]any
	// Config is the connection's settings, a value that marshals to a JSON object. It is
	// checked against the manifest.
	Config any
	// Secrets are delivered in plain text, by name.
	Secrets map[string]string
	// Gaps are the pending detail gaps offered to the run.
	Gaps []abi.ServedGap
	// Mode is the collection mode. Empty means incremental if there is a State.
	Mode string

	// Answers are the owner's answers, one per question, in order.
	Answers []Answer
	// Owner answers questions in place of Answers.
	Owner func(q abi.InteractionMessage) Answer
	// NotInteractive leaves the interactive binding out of START.
	NotInteractive bool

	// Files maps mounts of the manifest to directories of this machine.
	Files map[string]string
	// Network answers HTTP requests to hosts that the manifest lists. Nil refuses every
	// request.
	Network http.Handler
	// Browser answers calls of the browser binding. Nil refuses every call.
	Browser func(request []byte) (reply []byte, err error)
	// Pages answers these calls in place of Browser, and supports downloads.
	Pages *Pages

	// Cancel is called before every call but start; true cancels the run there.
	Cancel func(call abi.Call) bool
	// Limits replaces abi.DefaultLimits.
	Limits *abi.Limits
	// WantViolation is the violation that the test expects. The test fails on any other
	// outcome.
	WantViolation abi.Subtype
}
