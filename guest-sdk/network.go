package guest

import (
	"errors"
	"runtime"
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// Limits on the concurrent requests of a run. The host refuses more bytes.
const (
	requestsAtOnce = 16
	requestBytes   = 16 * abi.MiB
)

// An exchanger makes the requests of all goroutines. One of the waiting goroutines is the
// leader: it makes the calls for all of them, and passes leadership on when it has its own
// answer.
type exchanger struct {
	mu            sync.Mutex // guards the fields below; not held during a call
	hasLeader     bool
	queue         []*pendingRequest          // not sent yet
	inFlight      map[uint32]*pendingRequest // sent and not answered, by id
	inFlightBytes int                        // total length of the frames in flight
	lastID        uint32                     // last id given out
}

// A pendingRequest is a request for which one goroutine waits.
type pendingRequest struct {
	frame []byte
	alone bool      // to be sent without others: the host had no handle left for it
	wake  chan bool // capacity 1; true: become the leader, false: the answer is there
	done  bool
	reply []byte
	err   error
}

// NetworkRequest is the request function of the network binding, for packages that build on
// it. frame is its request frame, and the reply JSON. Connectors use Fetch or package
// guesthttp. While one goroutine waits, requests of other goroutines are made too.
func (r *Run) NetworkRequest(frame []byte) ([]byte, error) {
	x, q := &r.exchanger, &pendingRequest{frame: frame, wake: make(chan bool, 1)}
	if x.enqueue(q) || <-q.wake {
		for !q.done {
			runtime.Gosched() // lets other goroutines add their requests to the same call
			asked := x.dequeue()
			answers, err := r.exchange(asked)
			x.deliver(q, answers, err)
		}
		x.passLeadership()
	}
	return q.reply, q.err
}

// enqueue queues a request and reports whether its goroutine becomes the leader.
func (x *exchanger) enqueue(q *pendingRequest) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue = append(x.queue, q)
	lead := !x.hasLeader
	x.hasLeader = true
	return lead
}

// dequeue moves requests from the queue to inFlight, in order, within the limits.
func (x *exchanger) dequeue() (asked []abi.ExchangeRequest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, q := range x.queue {
		if len(x.inFlight) > 0 &&
			(q.alone || len(x.inFlight) == requestsAtOnce || x.inFlightBytes+len(q.frame) > requestBytes) {
			break
		}
		if x.inFlight == nil {
			x.inFlight = map[uint32]*pendingRequest{}
		}
		x.lastID++
		x.inFlight[x.lastID] = q
		x.inFlightBytes += len(q.frame)
		asked = append(asked, abi.ExchangeRequest{ID: x.lastID, Frame: q.frame})
		if n++; q.alone {
			break
		}
	}
	left := copy(x.queue, x.queue[n:])
	clear(x.queue[left:])
	x.queue = x.queue[:left]
	return asked
}

// deliver delivers answers to the goroutines that wait for them. An error is the answer to
// all requests in flight.
func (x *exchanger) deliver(leader *pendingRequest, answers []answer, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		for id := range x.inFlight {
			x.finish(leader, answer{id: id, err: err})
		}
		return
	}
	for _, a := range answers {
		q := x.inFlight[a.id]
		if q == nil {
			continue
		}
		if e, ok := a.err.(*Error); ok && e.Code == "too_many_handles" && len(x.inFlight) > 1 {
			x.remove(a.id)
			q.alone = true
			x.queue = append(x.queue, q)
			continue
		}
		x.finish(leader, a)
	}
}

// remove removes a request from inFlight. The caller holds mu.
func (x *exchanger) remove(id uint32) *pendingRequest {
	q := x.inFlight[id]
	delete(x.inFlight, id)
	x.inFlightBytes -= len(q.frame)
	return q
}

// finish delivers one answer, and wakes its goroutine unless that is the leader. The caller
// holds mu.
func (x *exchanger) finish(leader *pendingRequest, a answer) {
	q := x.remove(a.id)
	q.reply, q.err, q.done = a.reply, a.err, true
	if q != leader {
		q.wake <- false
	}
}

// passLeadership makes another waiting goroutine the leader.
func (x *exchanger) passLeadership() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.inFlight {
		q.wake <- true
		return
	}
	if len(x.queue) > 0 {
		x.queue[0].wake <- true
		return
	}
	x.hasLeader = false
}

// An answer is the result of one request.
type answer struct {
	id    uint32
	reply []byte
	err   error
}

var errBadAnswers = errors.New("guest: the host's answers cannot be read")

// exchange calls the exchange function: it starts requests, and returns once any request,
// started now or before, has its answer.
func (r *Run) exchange(asked []abi.ExchangeRequest) ([]answer, error) {
	size := 4
	for _, a := range asked {
		size += a.Bytes()
	}
	request := abi.AppendLeast(make([]byte, 0, size), 1)
	for _, a := range asked {
		request = a.Append(request)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	reply, err := r.callLocked(r.port.exchange, request)
	if err != nil {
		return nil, err
	}
	if len(reply) == 0 {
		return nil, errBadAnswers // the host always sends one
	}
	answers := make([]answer, 0, len(asked))
	for len(reply) > 0 {
		a, rest, err := abi.NextAnswer(reply)
		if err != nil {
			return nil, errBadAnswers
		}
		next := answer{id: a.ID, reply: a.Reply}
		if a.Errno != abi.OK {
			next = answer{id: a.ID, err: r.checkFatal(newError(a.Errno, a.Reply))}
		}
		answers, reply = append(answers, next), rest
	}
	return answers, nil
}

// BrowserCall calls the call function of the browser binding.
func (r *Run) BrowserCall(request []byte) ([]byte, error) { return r.call(r.port.browser, request) }

// ReadHandle reads from a stream handle. It returns 0 and no error at the end.
func (r *Run) ReadHandle(handle int32, dst []byte) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.flush(); err != nil {
		return 0, err
	}
	n, err := r.port.read(handle, dst)
	return n, r.checkFatal(err)
}

func (r *Run) CloseHandle(handle int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal != nil {
		return r.fatal
	}
	return r.checkFatal(r.port.close(handle))
}
