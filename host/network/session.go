package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

// A Session serves the calls of one guest: request and exchange, and read and close of
// their handles. Calls are serialised; Close may be concurrent with one.
type Session struct {
	exchanger Exchanger
	limits    egress.Limits
	seals     *egress.Seals
	recording recording  // nil without one
	serving   sync.Mutex // held during a call; taken before mu

	mu       sync.Mutex // guards the fields below
	handles  map[uint32]egress.Stream
	reserved int // requests that may still open a handle
	next     uint32
	closed   bool

	inFlight *inFlightRequests
	onWait   func(origin string, until time.Time)
}

// An Exchanger makes the requests of a session: a Client, a Recorder, or a Replayer.
type Exchanger interface {
	Do(context.Context, *egress.Request) (*egress.Response, error)
	Close()
	// Stopped returns why the run cannot go on, or with gone, after the guest's exit, why
	// it does not count; nil for neither.
	Stopped(gone bool) *egress.Error
	Limits() egress.Limits
	Seals() *egress.Seals
}

// A recording is an Exchanger that hides the guest's secrets in what it has on file.
type recording interface {
	AddSecret(field, held, value string, encodings [][]byte)
	AddSpellings(held string, encodings [][]byte)
}

// NewSession returns a session whose requests x makes.
func NewSession(x Exchanger) *Session {
	r, _ := x.(recording)
	return &Session{exchanger: x, limits: x.Limits(), seals: x.Seals(), recording: r, handles: map[uint32]egress.Stream{},
		next: 1, inFlight: newInFlightRequests()}
}

// TakeCookies adds cookies of a host that a browser of the same run received, and returns
// how many it accepted. They are kept and sent like those of answers during the run, and
// never reach the guest. Recorded sessions accept none, because a recording would contain
// them.
func (s *Session) TakeCookies(host string, cookies []*http.Cookie) int {
	c, ok := s.exchanger.(*egress.Client)
	if !ok {
		return 0
	}
	return c.TakeCookies(host, cookies)
}

// Received returns the counter of bytes that the run received, for other components that
// use the network for the run and share its limit (RunBytes); nil for a replay. It is safe
// for concurrent use.
func (s *Session) Received() *atomic.Int64 {
	if c, ok := s.exchanger.(*egress.Client); ok {
		return c.Received()
	}
	return nil
}

// Take transfers the body of a handle from the guest to the caller, who closes it. It must
// not be called during a call.
func (s *Session) Take(handle uint32) (io.ReadCloser, error) {
	b, err := s.body(handle)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.handles, handle)
	s.mu.Unlock()
	return b, nil
}

// TakeStream implements binding.StreamTaker. Reads of the body end with ctx.
func (s *Session) TakeStream(ctx context.Context, handle uint32) (io.ReadCloser, error) {
	s.serving.Lock()
	defer s.serving.Unlock()
	b, err := s.body(handle)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.handles, handle)
	s.mu.Unlock()
	return contextBody{b, context.AfterFunc(ctx, b.Abort)}, nil
}

// A contextBody is aborted with a context until it is closed.
type contextBody struct {
	egress.Stream
	stopAfter func() bool
}

func (g contextBody) Close() error {
	g.stopAfter()
	return g.Stream.Close()
}

// Seal implements binding.Sealer.
func (s *Session) Seal(field, handle, value string, forms [][]byte, to []abi.Destination) {
	s.seals.Add(field, handle, value, forms, to)
	if s.recording != nil {
		s.recording.AddSecret(field, handle, value, forms)
	}
}

// Protect keeps a value that the guest knows in plain text out of a recording and of audit
// entries. forms are its encodings.
func (s *Session) Protect(field, value string, forms [][]byte) {
	s.seals.Protect(forms)
	if s.recording != nil {
		s.recording.AddSecret(field, value, value, forms)
	}
}

// Fault implements binding.Requester: a recording is full, or a replayed run differs from
// its recording.
func (s *Session) Fault(gone bool) (code, message string) {
	if e := s.exchanger.Stopped(gone); e != nil {
		return e.Code, e.Message
	}
	return "", ""
}

// SealCurrent registers a handle whose value from returns for each request. A request that
// the server refuses with 401 is repeated once if from has another value.
func (s *Session) SealCurrent(field, handle string, from egress.ValueSource, to []abi.Destination) {
	s.seals.AddSource(field, handle, from, to)
	if s.recording != nil {
		s.recording.AddSecret(field, handle, handle, nil)
	}
}

// Echo makes answers be searched for encodings of a value, which are replaced by the
// handle. It may be called during Handle.
func (s *Session) Echo(handle string, forms [][]byte) {
	s.seals.Echo(handle, forms)
	if s.recording != nil {
		s.recording.AddSpellings(handle, forms)
	}
}

// Uses implements binding.Keeper.
func (s *Session) Uses(yield func(field, origin, placement string)) { s.seals.Uses(yield) }

// OnRateWait implements binding.Requester. It is called before the first Handle; f is called
// during Handle.
func (s *Session) OnRateWait(f func(origin string, until time.Time)) { s.onWait = f }

// Abort ends current and future requests of exchange. It may be called during Handle.
func (s *Session) Abort() { s.inFlight.cancel() }

// Handle serves one call. The reply of a failure is its error text.
func (s *Session) Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	s.serving.Lock()
	defer s.serving.Unlock()
	reply, err := s.serve(ctx, call, payload)
	if err != nil {
		e := egress.AsError(err)
		return e.Reply()
	}
	return reply, abi.OK
}

func (s *Session) serve(ctx context.Context, call abi.Call, payload []byte) ([]byte, error) {
	switch call {
	case abi.CallNetworkRequest:
		if err := s.reserve(); err != nil {
			return nil, err
		}
		return s.request(ctx, bytes.Clone(payload), s.onWait)
	case abi.CallNetworkExchange:
		return s.exchange(ctx, payload)
	case abi.CallRead:
		return s.read(ctx, payload)
	case abi.CallClose:
		return nil, s.closeHandle(payload)
	}
	return nil, egress.Errorf(abi.ENOTSUP, "unsupported", "this host does not know that call")
}

// request makes a request for which a handle is reserved, and keeps its body under that. It
// owns the frame, which a transport may read even after the answer. onWait is
// Request.Waiting.
func (s *Session) request(ctx context.Context, frame []byte,
	onWait func(origin string, until time.Time)) ([]byte, error) {
	kept := false
	defer func() {
		if !kept {
			s.releaseReserved()
		}
	}()
	q, err := egress.ParseRequest(frame, s.limits)
	if err != nil {
		return nil, err
	}
	q.Waiting = onWait
	r, err := s.exchanger.Do(ctx, q)
	if err != nil {
		return nil, err
	}
	var inline []byte
	if q.Inline > 0 && r.Sent >= 0 && r.Sent <= q.Inline {
		var end bool
		if inline, end = readInline(ctx, r.Body, r.Sent); end {
			return inlineReply(r, 0, inline), r.Body.Close()
		}
	}
	kept = true
	handle, err := s.openHandle(r.Body, r.Sent < 0 || r.Sent >= readAheadMin)
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	if q.Inline > 0 {
		return inlineReply(r, handle, inline), nil
	}
	return appendReply(nil, r, handle), nil
}

// readInline reads a body that fits into a reply; sent is its encoded length. If it does not fit
// or an error occurs, the rest or the error is left for read.
func readInline(ctx context.Context, b egress.Stream, sent int64) (body []byte, end bool) {
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

// reserve reserves a handle, if there is one left.
func (s *Session) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.handles)+s.reserved >= abi.MaxHandles {
		return egress.Errorf(abi.ETOOBIG, "too_many_handles", "at most %d handles may be open; close some", abi.MaxHandles)
	}
	s.reserved++
	return nil
}

func (s *Session) releaseReserved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

// openHandle opens the reserved handle.
func (s *Session) openHandle(b egress.Stream, long bool) (uint32, error) {
	stream := b
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	if s.closed {
		return 0, egress.ErrClosed
	}
	if b, ok := b.(*egress.Body); ok && long && s.readAheadCount() < maxReadAheads {
		stream = newReadAhead(b)
	}
	handle := s.next
	s.next = s.next%(1<<31-1) + 1
	for s.handles[s.next] != nil {
		s.next = s.next%(1<<31-1) + 1
	}
	s.handles[handle] = stream
	return handle, nil
}

// readAheadCount returns the number of bodies that are read ahead. The caller holds mu.
func (s *Session) readAheadCount() (n int) {
	for _, b := range s.handles {
		if _, ok := b.(*readAhead); ok {
			n++
		}
	}
	return n
}

func (s *Session) body(handle uint32) (egress.Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.handles[handle]
	if b == nil {
		return nil, egress.Errorf(abi.ENOENT, "unknown_handle", "there is no such handle")
	}
	return b, nil
}

func (s *Session) read(ctx context.Context, payload []byte) ([]byte, error) {
	handle, most, err := abi.ParseRead(payload)
	if err != nil {
		return nil, egress.Malformed("%v", err)
	}
	b, err := s.body(handle)
	if err != nil || most == 0 {
		return nil, err
	}
	defer context.AfterFunc(ctx, b.Abort)()
	if a, ok := b.(*readAhead); ok { // valid until the guest, which waits, makes another call
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

// readPiece bounds the memory that one read takes in the host.
const readPiece = egress.MaxInline

func (s *Session) closeHandle(payload []byte) error {
	handle, err := abi.ParseClose(payload)
	if err != nil {
		return egress.Malformed("%v", err)
	}
	b, err := s.body(handle)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.handles, handle)
	s.mu.Unlock()
	_ = b.Close() // the rest is discarded
	return nil
}

// Close ends all exchanges.
func (s *Session) Close() error {
	s.exchanger.Close() // ends the call in progress
	s.inFlight.cancel()
	s.serving.Lock()
	defer s.serving.Unlock()
	s.inFlight.wg.Wait()
	s.mu.Lock()
	open := s.handles
	s.handles, s.closed = map[uint32]egress.Stream{}, true
	s.mu.Unlock()
	for _, b := range open {
		_ = b.Close() // as above
	}
	return nil
}

// SealTokens makes values at these places of answers handles. It is called before the first
// Handle.
func (s *Session) SealTokens(places []abi.SessionToken, mint egress.Mint) {
	if len(places) == 0 {
		return
	}
	if p, ok := s.exchanger.(*egress.Replayer); ok {
		p.StandInTokens(places, mint)
		return
	}
	minted := mint
	if s.recording != nil {
		minted = func(field string, n int, value string) (string, [][]byte) {
			handle, forms := mint(field, n, value)
			s.recording.AddSecret(field, handle, value, forms)
			return handle, forms
		}
	}
	s.seals.SealTokens(places, minted)
}
