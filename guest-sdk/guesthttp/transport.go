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

// A host is what a Transport uses of a *guest.Run.
type host interface {
	NetworkRequest(frame []byte) (reply []byte, err error)
	ReadHandle(handle int32, dst []byte) (int, error)
	CloseHandle(handle int32) error
}

var (
	_ host              = (*guest.Run)(nil)
	_ http.RoundTripper = (*Transport)(nil)
)

// A Transport makes requests through the host. New returns one. Its methods are safe for
// concurrent use; calls to the host happen one at a time. Set the fields before the first
// request.
//
// A call to the host cannot be interrupted, so cancelling a context takes effect when the
// call returns. The host knows and observes deadlines.
type Transport struct {
	// MaxBytes raises the limit of response bodies above the host's default of 32 MiB, up
	// to the operator's maximum. Zero uses the default.
	MaxBytes int64
	// Wait bounds how long a request may wait for the rate limiter before it fails with
	// ERATE, in whole milliseconds. Zero uses the host's default.
	Wait time.Duration

	host host
}

// New returns a Transport over the network binding of run.
func New(run *guest.Run) *Transport { return &Transport{host: run} }

// Client returns a client with a new Transport. It has no cookie jar, because the host
// keeps cookies.
func Client(run *guest.Run) *http.Client { return &http.Client{Transport: New(run)} }

// Install makes a Transport the http.DefaultTransport and that of http.DefaultClient, for
// libraries that use those. Call it once, before any request. A library that requires
// DefaultTransport to be an *http.Transport must be given a Client.
func Install(run *guest.Run) {
	t := New(run)
	http.DefaultTransport = t
	http.DefaultClient.Transport = t // in place, for libraries that kept the pointer
}

// RoundTrip makes one request. It follows no redirects; http.Client does, and calls its
// CheckRedirect. It first reads the whole request body, at most 16 MiB, and always closes
// it. Errors of the host are *guest.Error; one with ETIMEOUT is also a net.Error whose
// Timeout is true.
//
// Headers that net/http would ignore in req.Header are left out. The host may refuse
// others, such as cookies, which it sends only if the manifest says that the connector
// manages its own.
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

// refusal converts an error of the host to the form that users of net/http expect.
func refusal(err error) error {
	if errors.Is(err, abi.ETIMEOUT) {
		return timeout{err}
	}
	return err
}

// A timeout is an error with ETIMEOUT. Like timeouts of net and net/http it matches
// context.DeadlineExceeded.
type timeout struct{ err error }

var _ net.Error = timeout{}

func (t timeout) Error() string        { return t.err.Error() }
func (t timeout) Unwrap() error        { return t.err }
func (t timeout) Timeout() bool        { return true }
func (t timeout) Temporary() bool      { return true }
func (t timeout) Is(target error) bool { return target == context.DeadlineExceeded }
