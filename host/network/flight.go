package network

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// flights are the requests of a guest that are in progress: calls of the exchange function
// start them and take their answers.
//
// Invariant: the frames in progress together are no longer than one may be. Their number is
// bounded by the handles that each may open.
type flights struct {
	ctx   context.Context // of all of them
	abort context.CancelFunc
	over  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	away    map[*flight]bool
	bytes   int64          // total length of the frames in away
	landed  []abi.Answered // answers not taken yet
	changed chan struct{}  // capacity 1
}

// A flight is one request. until is set while it waits for the rate limiter of origin.
type flight struct {
	abi.Asked
	origin string
	until  time.Time
}

func newFlights() *flights {
	ctx, abort := context.WithCancel(context.Background())
	return &flights{ctx: ctx, abort: abort, away: map[*flight]bool{}, changed: make(chan struct{}, 1)}
}

// change wakes the goroutine that waits for answers.
func (f *flights) change() {
	select {
	case f.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// depart starts a request, if there is room.
func (f *flights) depart(a abi.Asked, most int64) (*flight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(len(a.Frame))
	if len(f.away) > 0 && f.bytes+n > most {
		return nil, failf(abi.ETOOBIG, "request_too_large", "requests that are made at once may have %d bytes together", most)
	}
	w := &flight{Asked: abi.Asked{ID: a.ID, Frame: bytes.Clone(a.Frame)}}
	f.away[w] = true
	f.bytes += n
	return w, nil
}

// land ends a request and keeps its answer until it is taken.
func (f *flights) land(w *flight, a abi.Answered) {
	f.mu.Lock()
	delete(f.away, w)
	f.bytes -= int64(len(w.Frame))
	f.landed = append(f.landed, a)
	f.mu.Unlock()
	f.change()
}

// keep keeps the answer of a request that was refused before it started.
func (f *flights) keep(a abi.Answered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.landed = append(f.landed, a)
}

// waits records that a request waits for the rate limiter, or goes on.
func (f *flights) waits(w *flight, origin string, until time.Time) {
	f.mu.Lock()
	w.origin, w.until = origin, until
	f.mu.Unlock()
	f.change()
}

// look reports whether there are enough answers, or nothing to wait for. If not, and all
// requests wait for a rate limiter, it returns the earliest time at which one may go on.
func (f *flights) look(least uint32) (enough bool, origin string, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if uint64(len(f.landed)) >= uint64(least) || len(f.away) == 0 {
		return true, "", time.Time{}
	}
	for w := range f.away {
		if w.until.IsZero() {
			return false, "", time.Time{}
		}
		if until.IsZero() || w.until.Before(until) {
			origin, until = w.origin, w.until
		}
	}
	return false, origin, until
}

// take returns the answers that fit into one reply and keeps the others.
func (f *flights) take() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	size, n := 0, 0
	for _, a := range f.landed {
		if size += a.Bytes(); n > 0 && size > abi.MaxReadChunk {
			break
		}
		n++
	}
	reply := make([]byte, 0, size)
	for _, a := range f.landed[:n] {
		reply = a.Append(reply)
	}
	left := copy(f.landed, f.landed[n:])
	clear(f.landed[left:])
	f.landed = f.landed[:left]
	return reply
}

// exchange serves the exchange function.
func (s *Session) exchange(ctx context.Context, payload []byte) ([]byte, error) {
	least, asked, err := abi.ParseExchange(payload)
	if err != nil {
		return nil, malformed("%v", err)
	}
	for _, a := range asked {
		if err := s.depart(ctx, a); err != nil {
			s.flights.keep(refusal(a.ID, err))
		}
	}
	if err := s.awaitAnswers(ctx, least); err != nil {
		return nil, err
	}
	return s.flights.take(), nil
}

// depart starts a request or, if the order is recorded, makes it at once. Its error is the
// answer.
func (s *Session) depart(ctx context.Context, a abi.Asked) error {
	if err := s.reserve(); err != nil {
		return err
	}
	if s.values != nil {
		s.flights.keep(s.answer(ctx, abi.Asked{ID: a.ID, Frame: bytes.Clone(a.Frame)}, s.waiting))
		return nil
	}
	w, err := s.flights.depart(a, s.limits.RequestBody+abi.WireSlack)
	if err != nil {
		s.unreserve()
		return err
	}
	s.flights.over.Go(func() {
		s.flights.land(w, s.answer(s.flights.ctx, w.Asked, func(origin string, until time.Time) { s.flights.waits(w, origin, until) }))
	})
	return nil
}

// answer makes a request and returns its answer. It owns the frame.
func (s *Session) answer(ctx context.Context, a abi.Asked, told func(origin string, until time.Time)) abi.Answered {
	reply, err := s.request(ctx, a.Frame, told)
	if err != nil {
		return refusal(a.ID, err)
	}
	return abi.Answered{ID: a.ID, Reply: reply}
}

func refusal(id uint32, err error) abi.Answered {
	e := asError(err)
	return abi.Answered{ID: id, Errno: e.Errno, Reply: e.text()}
}

// awaitAnswers returns when there are enough answers. While all requests wait for a rate
// limiter it reports that. If the call is cancelled, all requests end.
func (s *Session) awaitAnswers(ctx context.Context, least uint32) error {
	waiting := false
	tell := func(origin string, until time.Time) {
		if s.waiting != nil && waiting == until.IsZero() {
			waiting = !waiting
			s.waiting(origin, until)
		}
	}
	for {
		enough, origin, until := s.flights.look(least)
		tell(origin, until)
		if enough {
			return nil
		}
		select {
		case <-s.flights.changed:
		case <-ctx.Done():
			s.flights.abort()
			return errClosed
		}
	}
}
