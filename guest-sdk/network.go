package guest

import (
	"errors"
	"runtime"
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// What the requests of a run may be at once. More bytes the host refuses.
const (
	requestsAtOnce = 16
	requestBytes   = 16 * abi.MiB
)

// A line carries the requests of all goroutines. One of those that wait for an
// answer leads: it makes the calls for all, and passes that on when it has its
// own answer.
type line struct {
	mu    sync.Mutex // guards all below; not held during a call
	led   bool
	queue []*asking          // not handed over yet
	away  map[uint32]*asking // handed over, by id
	bytes int                // of frames that are away
	last  uint32             // id
}

// An asking is what one goroutine waits for.
type asking struct {
	frame []byte
	alone bool      // the host had no handle for it while others were away
	wake  chan bool // true: lead, false: the answer is there; of capacity 1
	over  bool
	reply []byte
	err   error
}

// NetworkRequest is the request function of the network binding,
// for packages that build on it: request is its frame, the reply its JSON.
// Connectors use package guesthttp. While one goroutine waits, requests of others
// are made too.
func (r *Run) NetworkRequest(frame []byte) ([]byte, error) {
	l, q := &r.line, &asking{frame: frame, wake: make(chan bool, 1)}
	if l.join(q) || <-q.wake {
		for !q.over {
			runtime.Gosched() // whoever can go on asks in the same call
			asked := l.take()
			answers, err := r.exchange(asked)
			l.answered(q, answers, err)
		}
		l.pass()
	}
	return q.reply, q.err
}

// join queues a request and reports whether it leads.
func (l *line) join(q *asking) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, q)
	lead := !l.led
	l.led = true
	return lead
}

// take moves requests from the queue away, in order, as many as may be.
func (l *line) take() (asked []abi.Asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, q := range l.queue {
		if len(l.away) > 0 && (q.alone || len(l.away) == requestsAtOnce || l.bytes+len(q.frame) > requestBytes) {
			break
		}
		if l.away == nil {
			l.away = map[uint32]*asking{}
		}
		l.last++
		l.away[l.last] = q
		l.bytes += len(q.frame)
		asked = append(asked, abi.Asked{ID: l.last, Frame: q.frame})
		if n++; q.alone {
			break
		}
	}
	left := copy(l.queue, l.queue[n:])
	clear(l.queue[left:])
	l.queue = l.queue[:left]
	return asked
}

// answered gives answers to those that wait for them, other than the leader. An
// error is the answer to all.
func (l *line) answered(leader *asking, answers []answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		for id := range l.away {
			l.end(leader, answer{id: id, err: err})
		}
		return
	}
	for _, a := range answers {
		q := l.away[a.id]
		if q == nil {
			continue
		}
		if e, ok := a.err.(*Error); ok && e.Code == "too_many_handles" && len(l.away) > 1 {
			l.back(a.id)
			q.alone = true
			l.queue = append(l.queue, q)
			continue
		}
		l.end(leader, a)
	}
}

// back takes a request from those that are away. The caller holds mu.
func (l *line) back(id uint32) *asking {
	q := l.away[id]
	delete(l.away, id)
	l.bytes -= len(q.frame)
	return q
}

// end is the answer to one. The caller holds mu.
func (l *line) end(leader *asking, a answer) {
	q := l.back(a.id)
	q.reply, q.err, q.over = a.reply, a.err, true
	if q != leader {
		q.wake <- false
	}
}

// pass makes another lead, if one waits.
func (l *line) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.away {
		q.wake <- true
		return
	}
	if len(l.queue) > 0 {
		l.queue[0].wake <- true
		return
	}
	l.led = false
}

// An answer is the end of one request.
type answer struct {
	id    uint32
	reply []byte
	err   error
}

var errAnswers = errors.New("guest: the host's answers cannot be read")

// exchange is the exchange function: it starts requests, and returns once one of
// those that were started, now or before, has its answer.
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
		return nil, errAnswers // there is always one
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

// BrowserCall is the call function of the browser binding (section 5.1).
func (r *Run) BrowserCall(request []byte) ([]byte, error) { return r.call(r.port.browser, request) }

// ReadHandle reads from a handle that a reply named: 0 bytes without an
// error is its end.
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

// CloseHandle closes a handle.
func (r *Run) CloseHandle(handle int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return r.ended
	}
	return r.noticed(r.port.close(handle))
}
