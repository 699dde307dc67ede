package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// Errors that a connector branches on.
var (
	// ErrCancelled is returned when the owner declined a question, or nobody
	// will answer it any more. The run goes on if the connector does.
	ErrCancelled = errors.New("guest: the owner cancelled the question")
	// ErrTimeout is returned when a question was not answered in time.
	ErrTimeout = errors.New("guest: the question was not answered in time")
	// ErrNotInteractive is returned when START offered no interactive binding:
	// nobody can be asked in this run.
	ErrNotInteractive = errors.New("guest: this run has nobody to ask")
	// ErrNotInScope is returned for a stream that START does not grant.
	ErrNotInScope = errors.New("guest: the stream is not in scope")
	// ErrKey is returned for a key that is empty or over its limit.
	ErrKey = errors.New("guest: the key is empty or too long")
	// ErrTooLarge is returned for a record whose data is over its limit.
	ErrTooLarge = errors.New("guest: the record is too large")
	// ErrNotObject is returned for data or a cursor that is no JSON object.
	ErrNotObject = encode.ErrNotObject
)

// An Error is a call that the host refused. It unwraps to its Errno,
// so errors.Is(err, abi.EDENIED) holds; one with ECANCELED is also
// context.Canceled.
type Error struct {
	Errno   abi.Errno
	Code    string // of the error text, such as "sealed_destination_denied"; may be empty
	Message string
	Detail  []byte // JSON, nil when there is none
}

// Error says the number, the code and the host's message.
func (e *Error) Error() string {
	s := "sluice: " + e.Errno.String()
	if e.Code != "" {
		s += " " + e.Code
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the Errno.
func (e *Error) Unwrap() error { return e.Errno }

// Is reports whether a cancelled call is asked for as context.Canceled.
func (e *Error) Is(target error) bool {
	return target == context.Canceled && e.Errno == abi.ECANCELED
}

// newError reads the error text of a failed call. A text that is no error
// object leaves the number alone.
func newError(errno abi.Errno, text []byte) *Error {
	e := &Error{Errno: errno}
	v, err := parseObject(text)
	if err != nil {
		return e
	}
	for name, m := range v.Members() {
		switch name {
		case "code":
			e.Code, _ = m.Text()
		case "message":
			e.Message, _ = m.Text()
		case "detail":
			e.Detail = m.Raw
		}
	}
	return e
}

// What helps after a failure or a skip: the closed list, for Fail and
// for Hint.
const (
	RetryByRuntime          = abi.RetryByRuntime
	RetryOnConnectorUpgrade = abi.RetryOnConnectorUpgrade
	RefreshCredentials      = abi.RefreshCredentials
	ManualActionRequired    = abi.ManualActionRequired
	UpdateSelector          = abi.UpdateSelector
	UpstreamUnblock         = abi.UpstreamUnblock
	NotRetriable            = abi.NotRetriable
	UnknownAction           = abi.UnknownAction
)

// CodeStreamFailed is the code of Fail, and the reason of Skip, for a failure
// that concerns certified streams only.
const CodeStreamFailed = abi.CodeStreamFailed

// maxErrorMessage keeps DONE.error.message below what a host accepts.
const maxErrorMessage = 2000

// failure is what Fail returns.
type reportedFailure struct {
	code      string
	retryable bool
	hint      string
	err       error
}

func (f *reportedFailure) Error() string { return f.err.Error() }
func (f *reportedFailure) Unwrap() error { return f.err }

// Fail returns an error that, returned by Collect, becomes DONE.error: code
// names the cause (^[a-z][a-z0-9_]{0,63}$), hint is one of these actions
// or empty, and the rest is a message as in fmt.Errorf, %w included. It panics
// on a code or hint outside of the vocabulary, which is a bug in the connector
// that the host would answer with a violation.
func Fail(code string, retryable bool, hint string, format string, args ...any) error {
	if !validCode(code) {
		panic("guest.Fail: bad code " + code)
	}
	if hint != "" && !validAction(hint) {
		panic("guest.Fail: unknown hint " + hint)
	}
	return &reportedFailure{code, retryable, hint, fmt.Errorf(format, args...)}
}

func validAction(action string) bool {
	for _, a := range abi.RecoveryActions {
		if a == action {
			return true
		}
	}
	return false
}

func validCode(code string) bool {
	if code == "" || len(code) > 64 || code[0] < 'a' || code[0] > 'z' {
		return false
	}
	for i := range len(code) {
		c := code[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// doneError turns an error of Collect into DONE.error.
func doneError(err error) *abi.DoneError {
	e := &abi.DoneError{Message: abi.Cut(strings.TrimSpace(err.Error()), maxErrorMessage)}
	if e.Message == "" {
		e.Message = "the connector failed without a message"
	}
	if f, ok := errors.AsType[*reportedFailure](err); ok {
		e.Code, e.Retryable = f.code, &f.retryable
		if f.hint != "" {
			e.RecoveryHint = &abi.RecoveryHint{Action: f.hint}
		}
		return e
	}
	switch {
	case errors.Is(err, ErrCancelled):
		e.Code, e.RecoveryHint = "interaction_cancelled", &abi.RecoveryHint{Action: ManualActionRequired}
	case errors.Is(err, ErrTimeout):
		e.Code, e.RecoveryHint = "interaction_timeout", &abi.RecoveryHint{Action: ManualActionRequired}
	case errors.Is(err, ErrNotInteractive):
		e.Code, e.RecoveryHint = "not_interactive", &abi.RecoveryHint{Action: ManualActionRequired}
	}
	return e
}
