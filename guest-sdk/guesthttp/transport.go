package guesthttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A host is what a Transport needs of a *guest.Run.
type host interface {
	NetworkRequest(frame []byte) (reply []byte, err error)
	ReadHandle(handle int32, dst []byte) (int, error)
	CloseHandle(handle int32) error
}

var (
	_ host              = (*guest.Run)(nil)
	_ http.RoundTripper = (*Transport)(nil)
)

// A Transport performs requests through the host. New makes one. Its methods
// may be called from several goroutines; calls to the host happen one at a
// time. The fields are set before the first request.
//
// A call to the host cannot be interrupted: a context that is cancelled
// meanwhile shows when the call returns. A deadline is different, the host
// knows it and keeps to it.
type Transport struct {
	// MaxBytes allows response bodies over the host's default of 32 MiB, up to
	// the operator's maximum. Zero leaves it to the host.
	MaxBytes int64
	// Wait is how long a request may wait for its turn before it fails with
	// ERATE, in whole milliseconds. Zero leaves it to the host.
	Wait time.Duration

	host host
}

// New returns a Transport over the network binding of run.
func New(run *guest.Run) *Transport { return &Transport{host: run} }

// Client returns a client with a Transport of its own. It has no cookie jar:
// the host keeps the cookies.
func Client(run *guest.Run) *http.Client { return &http.Client{Transport: New(run)} }

// Install makes a Transport the http.DefaultTransport and that of
// http.DefaultClient, for libraries that use those. It is called once, before
// any request. A library that insists on DefaultTransport being an
// *http.Transport must be given a Client.
func Install(run *guest.Run) {
	t := New(run)
	http.DefaultTransport = t
	http.DefaultClient.Transport = t // in place: somebody may have kept the pointer
}

// RoundTrip does one request. It follows no redirect, for http.Client does, and
// asks its CheckRedirect each time. The whole request body is read first, at
// most 16 MiB, and closed in any case. Errors of the host are *guest.Error;
// one with ETIMEOUT is also a net.Error whose Timeout is true.
//
// Headers that net/http would not take from req.Header either are left out; any other that
// belongs to the host is for the host to refuse. Cookies are such: they pass only if the
// manifest says that the connector manages its own.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	target, err := targetOf(req)
	if err != nil {
		return nil, err
	}
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	frame, err := t.frame(req, target, body)
	if err != nil {
		return nil, err
	}
	reply, err := t.host.NetworkRequest(frame)
	if err != nil {
		return nil, refusal(err)
	}
	return t.response(req, reply)
}

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
