package network

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

// inFlightRequests are the requests of a guest that are in progress: calls of the exchange function
// start them and take their answers.
//
// Invariant: the frames in progress together are no longer than one may be. Their number is
// bounded by the handles that each may open.
type inFlightRequests struct {
	ctx    context.Context // of all of them
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	requests  map[*inFlightRequest]bool
	bytes     int64                  // total length of their frames
	completed []abi.ExchangeResponse // answers not returned yet
	changed   chan struct{}          // capacity 1
}

// An inFlightRequest is one request. until is set while it waits for the rate limiter of origin.
type inFlightRequest struct {
	abi.ExchangeRequest
	origin string
	until  time.Time
}

func newInFlightRequests() *inFlightRequests {
	ctx, abort := context.WithCancel(context.Background())
	return &inFlightRequests{ctx: ctx, cancel: abort, requests: map[*inFlightRequest]bool{},
		changed: make(chan struct{}, 1)}
}

// signal wakes the goroutine that waits for answers.
func (f *inFlightRequests) signal() {
	select {
	case f.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// start starts a request, if there is room.
func (f *inFlightRequests) start(a abi.ExchangeRequest, most int64) (*inFlightRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(len(a.Frame))
	if len(f.requests) > 0 && f.bytes+n > most {
		return nil, egress.Errorf(abi.ETOOBIG, "request_too_large",
			"requests that are made at once may have %d bytes together", most)
	}
	w := &inFlightRequest{ExchangeRequest: abi.ExchangeRequest{ID: a.ID, Frame: bytes.Clone(a.Frame)}}
	f.requests[w] = true
	f.bytes += n
	return w, nil
}

// complete ends a request and keeps its answer until takeCompleted.
func (f *inFlightRequests) complete(w *inFlightRequest, a abi.ExchangeResponse) {
	f.mu.Lock()
	delete(f.requests, w)
	f.bytes -= int64(len(w.Frame))
	f.completed = append(f.completed, a)
	f.mu.Unlock()
	f.signal()
}

// addCompleted keeps the answer of a request that was refused before it started.
func (f *inFlightRequests) addCompleted(a abi.ExchangeResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.completed = append(f.completed, a)
}

// setWaiting records that a request waits for the rate limiter, or goes on.
func (f *inFlightRequests) setWaiting(w *inFlightRequest, origin string, until time.Time) {
	f.mu.Lock()
	w.origin, w.until = origin, until
	f.mu.Unlock()
	f.signal()
}

// progress reports whether there are enough answers, or nothing to wait for. If not, and all
// requests wait for a rate limiter, it returns the earliest time at which one may go on.
func (f *inFlightRequests) progress(least uint32) (enough bool, origin string, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if uint64(len(f.completed)) >= uint64(least) || len(f.requests) == 0 {
		return true, "", time.Time{}
	}
	for w := range f.requests {
		if w.until.IsZero() {
			return false, "", time.Time{}
		}
		if until.IsZero() || w.until.Before(until) {
			origin, until = w.origin, w.until
		}
	}
	return false, origin, until
}

// takeCompleted returns the answers that fit into one reply and keeps the others.
func (f *inFlightRequests) takeCompleted() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	size, n := 0, 0
	for _, a := range f.completed {
		if size += a.Bytes(); n > 0 && size > abi.MaxReadChunk {
			break
		}
		n++
	}
	reply := make([]byte, 0, size)
	for _, a := range f.completed[:n] {
		reply = a.Append(reply)
	}
	left := copy(f.completed, f.completed[n:])
	clear(f.completed[left:])
	f.completed = f.completed[:left]
	return reply
}

// exchange serves the exchange function.
func (s *Session) exchange(ctx context.Context, payload []byte) ([]byte, error) {
	least, asked, err := abi.ParseExchange(payload)
	if err != nil {
		return nil, egress.Malformed("%v", err)
	}
	for _, a := range asked {
		if err := s.startRequest(ctx, a); err != nil {
			s.inFlight.addCompleted(errorAnswer(a.ID, err))
		}
	}
	if err := s.awaitAnswers(ctx, least); err != nil {
		return nil, err
	}
	return s.inFlight.takeCompleted(), nil
}

// startRequest starts a request or, if the order is recorded, makes it at once. Its error is the
// answer.
func (s *Session) startRequest(ctx context.Context, a abi.ExchangeRequest) error {
	if err := s.reserve(); err != nil {
		return err
	}
	if s.recording != nil {
		s.inFlight.addCompleted(s.perform(ctx, abi.ExchangeRequest{ID: a.ID, Frame: bytes.Clone(a.Frame)}, s.onWait))
		return nil
	}
	w, err := s.inFlight.start(a, s.limits.RequestBody+abi.WireSlack)
	if err != nil {
		s.releaseReserved()
		return err
	}
	s.inFlight.wg.Go(func() {
		s.inFlight.complete(w, s.perform(s.inFlight.ctx, w.ExchangeRequest,
			func(origin string, until time.Time) { s.inFlight.setWaiting(w, origin, until) }))
	})
	return nil
}

// perform makes a request and returns its answer. It owns the frame.
func (s *Session) perform(ctx context.Context, a abi.ExchangeRequest,
	onWait func(origin string, until time.Time)) abi.ExchangeResponse {
	reply, err := s.request(ctx, a.Frame, onWait)
	if err != nil {
		return errorAnswer(a.ID, err)
	}
	return abi.ExchangeResponse{ID: a.ID, Reply: reply}
}

func errorAnswer(id uint32, err error) abi.ExchangeResponse {
	text, errno := egress.AsError(err).Reply()
	return abi.ExchangeResponse{ID: id, Errno: errno, Reply: text}
}

// awaitAnswers returns when there are enough answers. While all requests wait for a rate
// limiter it reports that. If the call is cancelled, all requests end.
func (s *Session) awaitAnswers(ctx context.Context, least uint32) error {
	waiting := false
	report := func(origin string, until time.Time) {
		if s.onWait != nil && waiting == until.IsZero() {
			waiting = !waiting
			s.onWait(origin, until)
		}
	}
	for {
		enough, origin, until := s.inFlight.progress(least)
		report(origin, until)
		if enough {
			return nil
		}
		select {
		case <-s.inFlight.changed:
		case <-ctx.Done():
			s.inFlight.cancel()
			return egress.ErrClosed
		}
	}
}
