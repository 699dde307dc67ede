package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Session serves the calls of one guest: request and exchange, and read and
// close of the handles that come of it. Calls come one at a time; Close may
// come while one is served.
type Session struct {
	exchanger exchanger
	limits    Limits
	seals     *Seals
	values    *values    // nil unless there is a recording
	serving   sync.Mutex // held while a call is served; taken before mu

	mu       sync.Mutex // guards what follows
	handles  map[uint32]Stream
	reserved int // requests that may open a handle
	next     uint32
	closed   bool

	flights *flights
	waiting func(origin string, until time.Time)
}

// An exchanger makes requests: a Client, one that is recorded, or a recording.
type exchanger interface {
	Do(context.Context, *Request) (*Response, error)
	Close()
	// stopped is why the run cannot go on, or, once the guest is gone, why it
	// does not count; nil for neither.
	stopped(gone bool) *Error
}

// NewSession returns a session without handles.
func NewSession(c *Client) *Session { return newSession(c, c.o.Limits, c.o.Seals, nil) }

func newSession(x exchanger, l Limits, seals *Seals, v *values) *Session {
	return &Session{exchanger: x, limits: l, seals: seals, values: v, handles: map[uint32]Stream{}, next: 1, flights: newFlights()}
}

// TakeCookies gives the session cookies of a host that a browser of the same run
// got, and returns how many it took. They are kept and sent as
// those of answers are, for as long as the run lasts, and never reach the guest. A
// recording has none: it would be worth as much as they are.
func (s *Session) TakeCookies(host string, cookies []*http.Cookie) int {
	c, ok := s.exchanger.(*Client)
	if !ok {
		return 0
	}
	return c.jar.take(&url.URL{Scheme: "https", Host: host, Path: "/"}, cookies)
}

// Received counts the bytes that the run received, for others that reach the network
// in its name and have the same limit (RunBytes); nil where nothing is received, as
// from a recording. It may be added to from any goroutine.
func (s *Session) Received() *atomic.Int64 {
	if c, ok := s.exchanger.(*Client); ok {
		return &c.received
	}
	return nil
}

// Take gives the body that a handle stands for to the host; the
// guest has it no more. The caller closes it. Like a call, it comes while no other
// is served.
func (s *Session) Take(handle uint32) (io.ReadCloser, error) {
	b, err := s.of(handle)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.handles, handle)
	s.mu.Unlock()
	return b, nil
}

// Give takes the body that a handle stands for from the guest, for the host to read. It ends
// with ctx.
func (s *Session) Give(ctx context.Context, handle uint32) (io.ReadCloser, error) {
	s.serving.Lock()
	defer s.serving.Unlock()
	b, err := s.of(handle)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.handles, handle)
	s.mu.Unlock()
	return given{b, context.AfterFunc(ctx, b.Abort)}, nil
}

// A given body is aborted with a context until it is closed.
type given struct {
	Stream
	stop func() bool
}

func (g given) Close() error {
	g.stop()
	return g.Stream.Close()
}

// Seal lets a handle stand for a value in the requests of the guest.
func (s *Session) Seal(field, handle, value string, forms [][]byte, to []abi.Destination) {
	s.seals.Add(field, handle, value, forms, to)
	if s.values != nil {
		s.values.secret(field, handle, value, forms)
	}
}

// Protect keeps a value that the guest has in plain out of a recording, and out
// of what is told of its requests. forms are its encodings.
func (s *Session) Protect(field, value string, forms [][]byte) {
	s.seals.Protect(forms)
	if s.values != nil {
		s.values.secret(field, value, value, forms)
	}
}

// Fault says why the run cannot go on, or, once the guest is gone, why it does
// not count: its recording is full, or it is not what the recording has. Both
// texts are empty when there is no reason.
func (s *Session) Fault(gone bool) (code, message string) {
	if e := s.exchanger.stopped(gone); e != nil {
		return e.Code, e.Message
	}
	return "", ""
}

// SealCurrent lets a handle stand for what from returns when a request is made.
// A request that the server refuses with 401 is made once more if from has
// another value then.
func (s *Session) SealCurrent(field, handle string, from Current, to []abi.Destination) {
	s.seals.AddCurrent(field, handle, from, to)
	if s.values != nil {
		s.values.secret(field, handle, handle, nil)
	}
}

// Echo has answers searched for encodings of a value, which become the handle.
// It may be called while Handle serves a call.
func (s *Session) Echo(handle string, forms [][]byte) {
	s.seals.Echo(handle, forms)
	if s.values != nil {
		s.values.also(handle, forms)
	}
}

// Uses hands over, once each, where values have been sent since the last call.
func (s *Session) Uses(yield func(field, origin, placement string)) { s.seals.Uses(yield) }

// Waits has f told when a request waits for its turn with an origin, until when,
// and with a zero time that it goes on. It is called before the first
// Handle; f is called while one is served.
func (s *Session) Waits(f func(origin string, until time.Time)) { s.waiting = f }

// Abort ends the requests of exchanges that are on their way, and those that
// follow. It may be called while Handle serves a call.
func (s *Session) Abort() { s.flights.abort() }

// Handle serves one call. The reply of a failure is its error text.
func (s *Session) Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	s.serving.Lock()
	defer s.serving.Unlock()
	reply, err := s.serve(ctx, call, payload)
	if err != nil {
		e := asError(err)
		return e.text(), e.Errno
	}
	return reply, abi.OK
}

func (s *Session) serve(ctx context.Context, call abi.Call, payload []byte) ([]byte, error) {
	switch call {
	case abi.CallNetworkRequest:
		if err := s.reserve(); err != nil {
			return nil, err
		}
		return s.request(ctx, bytes.Clone(payload), s.waiting)
	case abi.CallNetworkExchange:
		return s.exchange(ctx, payload)
	case abi.CallRead:
		return s.read(ctx, payload)
	case abi.CallClose:
		return nil, s.drop(payload)
	}
	return nil, failf(abi.ENOTSUP, "unsupported", "this host does not know that call")
}

// request makes a request, for which a handle is reserved, and keeps its body
// under that. It owns the frame, which a transport may still read after the
// answer. told is Request.Waiting.
func (s *Session) request(ctx context.Context, frame []byte, told func(origin string, until time.Time)) ([]byte, error) {
	kept := false
	defer func() {
		if !kept {
			s.unreserve()
		}
	}()
	q, err := ParseRequest(frame, s.limits)
	if err != nil {
		return nil, err
	}
	q.Waiting = told
	r, err := s.exchanger.Do(ctx, q)
	if err != nil {
		return nil, err
	}
	var inline []byte
	if q.Inline > 0 && r.Sent >= 0 && r.Sent <= q.Inline {
		var end bool
		if inline, end = short(ctx, r.Body, r.Sent); end {
			return r.framed(0, inline), r.Body.Close()
		}
	}
	kept = true
	handle, err := s.keep(r.Body, r.Sent < 0 || r.Sent >= aheadFrom)
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	if q.Inline > 0 {
		return r.framed(handle, inline), nil
	}
	return r.reply(handle), nil
}

// short reads a body that fits into a reply, of which so much was sent. When it
// does not, or something goes wrong, the rest is there for read, and so is the
// error.
func short(ctx context.Context, b Stream, sent int64) (body []byte, end bool) {
	defer context.AfterFunc(ctx, b.Abort)()
	body = make([]byte, 0, min(sent+1, 4*abi.KiB))
	for len(body) < readPiece {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := b.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, true
		case err != nil:
			return body, false
		}
	}
	return body, false
}

// reserve takes the place of a handle, if there is one.
func (s *Session) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.handles)+s.reserved >= abi.MaxHandles {
		return failf(abi.ETOOBIG, "too_many_handles", "at most %d handles may be open; close some", abi.MaxHandles)
	}
	s.reserved++
	return nil
}

func (s *Session) unreserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

var errClosed = failf(abi.ECANCELED, "run_cancelled", "the run is ending")

// keep opens a handle in the place that was reserved.
func (s *Session) keep(b Stream, long bool) (uint32, error) {
	stream := b
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	if s.closed {
		return 0, errClosed
	}
	if b, ok := b.(*Body); ok && long && s.aheads() < aheadMost {
		stream = newAhead(b)
	}
	handle := s.next
	s.next = s.next%(1<<31-1) + 1
	for s.handles[s.next] != nil {
		s.next = s.next%(1<<31-1) + 1
	}
	s.handles[handle] = stream
	return handle, nil
}

// aheads counts the bodies that are read ahead. The caller has the lock.
func (s *Session) aheads() (n int) {
	for _, b := range s.handles {
		if _, ok := b.(*ahead); ok {
			n++
		}
	}
	return n
}

func (s *Session) of(handle uint32) (Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.handles[handle]
	if b == nil {
		return nil, failf(abi.ENOENT, "unknown_handle", "there is no such handle")
	}
	return b, nil
}

func (s *Session) read(ctx context.Context, payload []byte) ([]byte, error) {
	handle, most, err := abi.ParseRead(payload)
	if err != nil {
		return nil, malformed("%v", err)
	}
	b, err := s.of(handle)
	if err != nil || most == 0 {
		return nil, err
	}
	defer context.AfterFunc(ctx, b.Abort)()
	if a, ok := b.(*ahead); ok { // valid until the guest, which waits, asks again
		piece, err := a.next(int(most))
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return piece, err
	}
	buf := make([]byte, min(most, readPiece))
	for n := 0; ; {
		n, err = b.Read(buf)
		switch {
		case n > 0 && (err == nil || errors.Is(err, io.EOF)):
			return buf[:n], nil
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
}

// readPiece bounds what one read holds in the host.
const readPiece = 256 * abi.KiB

func (s *Session) drop(payload []byte) error {
	handle, err := abi.ParseClose(payload)
	if err != nil {
		return malformed("%v", err)
	}
	b, err := s.of(handle)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.handles, handle)
	s.mu.Unlock()
	_ = b.Close() // what is left of it is of no interest
	return nil
}

// Close ends every exchange that is still open.
func (s *Session) Close() error {
	s.exchanger.Close() // ends the call in progress
	s.flights.abort()
	s.serving.Lock()
	defer s.serving.Unlock()
	s.flights.over.Wait()
	s.mu.Lock()
	open := s.handles
	s.handles, s.closed = map[uint32]Stream{}, true
	s.mu.Unlock()
	for _, b := range open {
		_ = b.Close() // as above
	}
	return nil
}
