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
	mu    sync.Mutex // guards the fields below; not held during a call
	led   bool
	queue []*pending          // not sent yet
	away  map[uint32]*pending // sent and not answered, by id
	bytes int                 // total length of the frames that are away
	last  uint32              // last id given out
}

// A pending is a request for which one goroutine waits.
type pending struct {
	frame []byte
	alone bool      // to be sent without others: the host had no handle left for it
	wake  chan bool // capacity 1; true: become the leader, false: the answer is there
	over  bool
	reply []byte
	err   error
}

// NetworkRequest is the request function of the network binding, for packages that build on
// it. frame is its request frame, and the reply JSON. Connectors use Fetch or package
// guesthttp. While one goroutine waits, requests of other goroutines are made too.
func (r *Run) NetworkRequest(frame []byte) ([]byte, error) {
	x, q := &r.exchanger, &pending{frame: frame, wake: make(chan bool, 1)}
	if x.join(q) || <-q.wake {
		for !q.over {
			runtime.Gosched() // lets other goroutines add their requests to the same call
			asked := x.take()
			answers, err := r.exchange(asked)
			x.answered(q, answers, err)
		}
		x.pass()
	}
	return q.reply, q.err
}

// join queues a request and reports whether its goroutine becomes the leader.
func (x *exchanger) join(q *pending) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue = append(x.queue, q)
	lead := !x.led
	x.led = true
	return lead
}

// take moves requests from the queue to away, in order, within the limits.
func (x *exchanger) take() (asked []abi.Asked) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, q := range x.queue {
		if len(x.away) > 0 && (q.alone || len(x.away) == requestsAtOnce || x.bytes+len(q.frame) > requestBytes) {
			break
		}
		if x.away == nil {
			x.away = map[uint32]*pending{}
		}
		x.last++
		x.away[x.last] = q
		x.bytes += len(q.frame)
		asked = append(asked, abi.Asked{ID: x.last, Frame: q.frame})
		if n++; q.alone {
			break
		}
	}
	left := copy(x.queue, x.queue[n:])
	clear(x.queue[left:])
	x.queue = x.queue[:left]
	return asked
}

// answered delivers answers to the goroutines that wait for them. An error is the answer to
// all requests that are away.
func (x *exchanger) answered(leader *pending, answers []answer, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		for id := range x.away {
			x.end(leader, answer{id: id, err: err})
		}
		return
	}
	for _, a := range answers {
		q := x.away[a.id]
		if q == nil {
			continue
		}
		if e, ok := a.err.(*Error); ok && e.Code == "too_many_handles" && len(x.away) > 1 {
			x.back(a.id)
			q.alone = true
			x.queue = append(x.queue, q)
			continue
		}
		x.end(leader, a)
	}
}

// back removes a request from away. The caller holds mu.
func (x *exchanger) back(id uint32) *pending {
	q := x.away[id]
	delete(x.away, id)
	x.bytes -= len(q.frame)
	return q
}

// end delivers one answer, and wakes its goroutine unless that is the leader. The caller
// holds mu.
func (x *exchanger) end(leader *pending, a answer) {
	q := x.back(a.id)
	q.reply, q.err, q.over = a.reply, a.err, true
	if q != leader {
		q.wake <- false
	}
}

// pass makes another waiting goroutine the leader.
func (x *exchanger) pass() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.away {
		q.wake <- true
		return
	}
	if len(x.queue) > 0 {
		x.queue[0].wake <- true
		return
	}
	x.led = false
}

// An answer is the result of one request.
type answer struct {
	id    uint32
	reply []byte
	err   error
}

var errAnswers = errors.New("guest: the host's answers cannot be read")

// exchange calls the exchange function: it starts requests, and returns once any request,
// started now or before, has its answer.
func (r *Run) exchange(asked []abi.Asked) ([]answer, error) {
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
	reply, err := r.locked(r.port.exchange, request)
	if err != nil {
		return nil, err
	}
	if len(reply) == 0 {
		return nil, errAnswers // the host always sends one
	}
	answers := make([]answer, 0, len(asked))
	for len(reply) > 0 {
		a, rest, err := abi.NextAnswer(reply)
		if err != nil {
			return nil, errAnswers
		}
		next := answer{id: a.ID, reply: a.Reply}
		if a.Errno != abi.OK {
			next = answer{id: a.ID, err: r.noticed(newError(a.Errno, a.Reply))}
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
	return n, r.noticed(err)
}

func (r *Run) CloseHandle(handle int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return r.ended
	}
	return r.noticed(r.port.close(handle))
}
