package abi

import (
	"math"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// readDone is checks 1 to 7 of §9.11; 8 to 10 need the guest's exit.
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
		if !contains([]string{"message", "code", "retryable", "recovery_hint"}, name) {
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
