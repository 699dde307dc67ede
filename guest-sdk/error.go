package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// Errors that a connector may test for.
var (
	// ErrCancelled is returned if the owner declined a question, or the host withdrew it.
	// The run goes on.
	ErrCancelled = errors.New("guest: the owner cancelled the question")
	// ErrTimeout is returned if a question was not answered in time.
	ErrTimeout = errors.New("guest: the question was not answered in time")
	// ErrNotInteractive is returned if START offers no interactive binding, so that nobody
	// can be asked.
	ErrNotInteractive = errors.New("guest: this run has nobody to ask")
	// ErrNotInScope is returned for a stream that START does not grant.
	ErrNotInScope = errors.New("guest: the stream is not in scope")
	// ErrKey is returned for a key that is empty or over its limit.
	ErrKey = errors.New("guest: the key is empty or too long")
	// ErrTooLarge is returned for a record whose data is over its limit.
	ErrTooLarge = errors.New("guest: the record is too large")
	// ErrNotObject is returned for data or a cursor that is not a JSON object.
	ErrNotObject = encode.ErrNotObject
)

// An Error is the host's refusal of a call. It unwraps to its Errno, so errors.Is(err,
// abi.EDENIED) works. An Error with ECANCELED also matches context.Canceled.
type Error struct {
	Errno   abi.Errno
	Code    string // such as "sealed_destination_denied"; may be empty
	Message string
	Detail  []byte // JSON, or nil
}

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

// Is makes ECANCELED match context.Canceled.
func (e *Error) Is(target error) bool {
	return target == context.Canceled && e.Errno == abi.ECANCELED
}

// newError reads the error text of a failed call. If the text is not an error object, only
// the errno is set.
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

// The recovery actions for Fail and Hint; the list is closed.
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

// CodeStreamFailed is the code for Fail, and the reason for Skip, of a failure that
// concerns single streams only.
const CodeStreamFailed = abi.CodeStreamFailed

// maxErrorMessage keeps DONE.error.message below the host's limit.
const maxErrorMessage = 2000

// A reportedFailure is the error that Fail returns.
type reportedFailure struct {
	code      string
	retryable bool
	hint      string
	err       error
}

func (f *reportedFailure) Error() string { return f.err.Error() }
func (f *reportedFailure) Unwrap() error { return f.err }

// Fail returns an error that becomes DONE.error when Collect returns it. code names the
// cause (^[a-z][a-z0-9_]{0,63}$), hint is a recovery action or empty, and the rest formats
// the message as fmt.Errorf does, %w included. Fail panics on an invalid code or hint, to
// which the host would respond with a violation.
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

// doneError converts an error of Collect to DONE.error.
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
