package guesthttp

import (
	"context"
	"errors"
	"net"

	"github.com/sluicehost/sluice/abi"
)

// refusal is an error of the host as users of net/http expect it.
func refusal(err error) error {
	if errors.Is(err, abi.ETIMEOUT) {
		return timeout{err}
	}
	return err
}

// A timeout is a call that failed with ETIMEOUT. Like those of net and net/http
// it is also context.DeadlineExceeded, whosever limit it was.
type timeout struct{ err error }

var _ net.Error = timeout{}

func (t timeout) Error() string        { return t.err.Error() }
func (t timeout) Unwrap() error        { return t.err }
func (t timeout) Timeout() bool        { return true }
func (t timeout) Temporary() bool      { return true }
func (t timeout) Is(target error) bool { return target == context.DeadlineExceeded }
