package egress

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// An Error says why a request was not made or not completed. It never contains an address.
type Error struct {
	Errno      abi.Errno
	Code       string
	Message    string
	Step       string // of a denial: scheme, host, port, address, redirect, method, header
	RetryAfter int64  // milliseconds, of ERATE
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Reply implements binding.Fault: the error text of a failure.
func (e *Error) Reply() (text []byte, errno abi.Errno) {
	b := strictjson.AppendQuote([]byte(`{"code":`), e.Code)
	b = strictjson.AppendQuote(append(b, `,"message":`...), e.Message)
	switch {
	case e.Step != "":
		b = strictjson.AppendQuote(append(b, `,"detail":{"step":`...), e.Step)
		b = append(b, '}')
	case e.Errno == abi.ERATE:
		b = strconv.AppendInt(append(b, `,"detail":{"retry_after_ms":`...), e.RetryAfter, 10)
		b = append(b, '}')
	}
	return append(b, '}'), e.Errno
}

// Errorf returns an Error with the words that a guest gets.
func Errorf(errno abi.Errno, code, format string, args ...any) *Error {
	return &Error{Errno: errno, Code: code, Message: fmt.Sprintf(format, args...)}
}

// denyf returns a denial at a step of a request.
func denyf(step, format string, args ...any) *Error {
	return &Error{Errno: abi.EDENIED, Code: step + "_denied", Step: step, Message: fmt.Sprintf(format, args...)}
}

// AsError returns the Error in err, or an EUNAVAIL that reveals nothing about err.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(abi.EUNAVAIL, "unreachable", "the server could not be reached, or broke off")
}

// ErrClosed is the error of whatever is in progress when the run ends.
var ErrClosed = Errorf(abi.ECANCELED, "run_cancelled", "the run is ending")

// Malformed returns the refusal of a request that is not one.
func Malformed(format string, args ...any) *Error {
	return Errorf(abi.EINVAL, "invalid_request", format, args...)
}
