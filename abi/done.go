package abi

import (
	"math"
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// DoneMessage is a DONE. RecordsEmitted is nil if the member is missing or not a count,
// which is checked only after the guest's exit.
type DoneMessage struct {
	Status         string     `json:"status"`
	RecordsEmitted *int64     `json:"records_emitted"`
	Error          *DoneError `json:"error,omitempty"`
	// ReportedRecords is that member as it was spelled, for the run's result.
	ReportedRecords string `json:"-"`
}

// Type returns DONE.
func (*DoneMessage) Type() string { return doneKind.name }
func (*DoneMessage) message()     {}

var doneKind = kind{
	name: "DONE",
	call: CallDone,
	step: StepDone,
	read: readDone,
	faults: []fault{
		{VDoneErrorOnSuccess, "carries an error although it succeeded"},
		{VDoneInvalidError, "has an error of the wrong shape"},
		{VDoneInvalidErrorCode, "has an error code of the wrong form"},
		{VDoneInvalidErrorMessage, "has an error without a message text"},
		{VDoneInvalidErrorRecoveryHint, "has a recovery hint of the wrong shape"},
		{VDoneInvalidErrorRetryable, "has a retryable that is not true or false"},
		{VDoneInvalidRecordsEmitted, "has a records_emitted that is not a count"},
		{VDoneInvalidStatus, "has an unknown status"},
		{VDoneRecordsEmittedMismatch, "reports another number of records than the host received"},
	},
}

const (
	VDoneErrorOnSuccess           Subtype = "done_error_on_success"
	VDoneInvalidError             Subtype = "done_invalid_error"
	VDoneInvalidErrorCode         Subtype = "done_invalid_error_code"
	VDoneInvalidErrorMessage      Subtype = "done_invalid_error_message"
	VDoneInvalidErrorRecoveryHint Subtype = "done_invalid_error_recovery_hint"
	VDoneInvalidErrorRetryable    Subtype = "done_invalid_error_retryable"
	VDoneInvalidRecordsEmitted    Subtype = "done_invalid_records_emitted"
	VDoneInvalidStatus            Subtype = "done_invalid_status"
	VDoneRecordsEmittedMismatch   Subtype = "done_records_emitted_mismatch"
)

// The statuses of a DONE.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// A DoneError says why a run failed, in the connector's words.
type DoneError struct {
	Message      string        `json:"message"`
	Code         string        `json:"code,omitempty"`
	Retryable    *bool         `json:"retryable,omitempty"`
	RecoveryHint *RecoveryHint `json:"recovery_hint,omitempty"`
}

// CodeStreamFailed is the error code and skip reason of a failure that concerns single
// streams only.
const CodeStreamFailed = "stream_collection_failed"

// readDone checks a DONE. Its record count and the exit code are compared with it after the
// guest's exit.
func readDone(r *reader) Message {
	m := &DoneMessage{}
	m.Status = r.enum("status", VDoneInvalidStatus, Succeeded, Failed, Cancelled)
	e := r.member("error")
	if m.Status == Succeeded && !e.Absent() {
		r.fail(VDoneErrorOnSuccess, "error")
	}
	if !e.Absent() {
		m.Error = r.doneError(e)
	}
	if n := r.member("records_emitted"); n.Kind == strictjson.KindNumber {
		m.ReportedRecords = Cut(string(n.Raw), 40)
		i, ok := n.Int64()
		if f, finite := n.Float64(); !ok && finite && f >= math.MaxInt64 {
			i, ok = math.MaxInt64, true // a count, though no run has so many records
		}
		if ok && i >= 0 {
			m.RecordsEmitted = &i
		}
	}
	return m
}

func (r *reader) doneError(e strictjson.Value) *DoneError {
	if e.Kind != strictjson.KindObject {
		r.fail(VDoneInvalidError, "error")
		return nil
	}
	for name := range e.Members() {
		if !slices.Contains([]string{"message", "code", "retryable", "recovery_hint"}, name) {
			v := r.fail(VDoneInvalidError, "error")
			v.Received, v.Expected = name, []string{"message", "retryable", "code", "recovery_hint"}
			return nil
		}
	}
	d := &DoneError{}
	if code, _ := e.Member("code"); !code.Absent() {
		s, ok := code.Text()
		if !ok || !isErrorCode(s) {
			r.fail(VDoneInvalidErrorCode, "error.code").Expected = []string{"^[a-z][a-z0-9_]{0,63}$"}
		}
		d.Code = s
	}
	msg, _ := e.Member("message")
	d.Message = r.textOf(msg, "error.message", VDoneInvalidErrorMessage, r.p.Limits.TextBytes, true)
	if retry, _ := e.Member("retryable"); !retry.Absent() {
		b, ok := retry.Bool()
		if !ok {
			r.fail(VDoneInvalidErrorRetryable, "error.retryable")
		}
		d.Retryable = &b
	}
	hint, _ := e.Member("recovery_hint")
	d.RecoveryHint = r.hint(hint, "error.recovery_hint", VDoneInvalidErrorRecoveryHint)
	return d
}

func isErrorCode(s string) bool {
	if len(s) == 0 || len(s) > 64 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
