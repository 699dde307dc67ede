package network

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
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

// Reply implements binding.Fault.
func (e *Error) Reply() ([]byte, abi.Errno) { return e.text(), e.Errno }

func failf(errno abi.Errno, code, format string, args ...any) *Error {
	return &Error{Errno: errno, Code: code, Message: fmt.Sprintf(format, args...)}
}

// denyf returns a denial at a step of a request.
func denyf(step, format string, args ...any) *Error {
	return &Error{Errno: abi.EDENIED, Code: step + "_denied", Step: step, Message: fmt.Sprintf(format, args...)}
}

// asError returns the Error in err, or an EUNAVAIL that reveals nothing about err.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return failf(abi.EUNAVAIL, "unreachable", "the server could not be reached, or broke off")
}
