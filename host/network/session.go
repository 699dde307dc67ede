package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Session serves the calls of one guest: request, and read and close of the
// handles that come of it (G10). Calls come one at a time; Close may come while
// one is served.
type Session struct {
	client  *Client
	serving sync.Mutex // held while a call is served; taken before mu

	mu      sync.Mutex // guards what follows
	handles map[uint32]*Body
	next    uint32
	closed  bool
	waiting func(origin string, until time.Time)
}

// NewSession returns a session without handles.
func NewSession(c *Client) *Session {
	return &Session{client: c, handles: map[uint32]*Body{}, next: 1}
}

// Seal lets a handle stand for a value in the requests of the guest (§18).
func (s *Session) Seal(field, handle, value string, forms [][]byte, to []abi.Destination) {
	s.client.o.Seals.Add(field, handle, value, forms, to)
}

// SealCurrent lets a handle stand for what from returns when a request is made.
// A request that the server refuses with 401 is made once more if from has
// another value then.
func (s *Session) SealCurrent(field, handle string, from Current, to []abi.Destination) {
	s.client.o.Seals.AddCurrent(field, handle, from, to)
}

// Echo has answers searched for encodings of a value, which become the handle
// (R163). It may be called while Handle serves a call.
func (s *Session) Echo(handle string, forms [][]byte) { s.client.o.Seals.Echo(handle, forms) }

// Uses hands over, once each, where values have been sent since the last call
// (R164).
func (s *Session) Uses(yield func(field, origin, placement string)) { s.client.o.Seals.Uses(yield) }

// Waits has f told when a request waits for its turn with an origin, until when,
// and with a zero time that it goes on (S77). It is called before the first
// Handle; f is called while one is served.
func (s *Session) Waits(f func(origin string, until time.Time)) { s.waiting = f }

// Handle serves one call. The reply of a failure is its error text (G7).
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
		return s.request(ctx, payload)
	case abi.CallRead:
		return s.read(ctx, payload)
	case abi.CallClose:
		return nil, s.drop(payload)
	}
	return nil, failf(abi.ENOTSUP, "unsupported", "this host does not know that call")
}

// request makes a request and keeps its body under a handle.
func (s *Session) request(ctx context.Context, frame []byte) ([]byte, error) {
	q, err := ParseRequest(frame, s.client.o.Limits)
	if err != nil {
		return nil, err
	}
	if s.full() {
		return nil, failf(abi.ETOOBIG, "too_many_handles", "at most %d handles may be open; close some", abi.MaxHandles)
	}
	q.Waiting = s.waiting
	q.Body = bytes.Clone(q.Body) // a transport may still read it after the answer
	r, err := s.client.Do(ctx, q)
	if err != nil {
		return nil, err
	}
	handle, err := s.keep(r.Body)
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	return r.reply(handle), nil
}

func (s *Session) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.handles) >= abi.MaxHandles
}

var errClosed = failf(abi.ECANCELED, "run_cancelled", "the run is ending")

func (s *Session) keep(b *Body) (uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errClosed
	}
	handle := s.next
	s.next = s.next%(1<<31-1) + 1
	for s.handles[s.next] != nil {
		s.next = s.next%(1<<31-1) + 1
	}
	s.handles[handle] = b
	return handle, nil
}

func (s *Session) of(handle uint32) (*Body, error) {
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
	s.client.Close() // ends the call in progress
	s.serving.Lock()
	defer s.serving.Unlock()
	s.mu.Lock()
	open := s.handles
	s.handles, s.closed = map[uint32]*Body{}, true
	s.mu.Unlock()
	for _, b := range open {
		_ = b.Close() // as above
	}
	return nil
}
