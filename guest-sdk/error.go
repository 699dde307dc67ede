package guest

import (
	"context"
	"errors"

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
