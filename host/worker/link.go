package worker

import (
	"fmt"

	"github.com/sluicehost/sluice/abi"
)

// inputBytes is the read-ahead of a link: headers, credits, small replies.
const inputBytes = 16 << 10

// A link is the worker's end of the socket. It is used by one goroutine at a time, because
// a guest has one thread.
type link struct {
	fd     int
	limits abi.WireLimits
	head   [abi.WireHeaderBytes]byte
	in     []byte // read ahead and not yet consumed
	space  [inputBytes]byte
}

func newLink(fd int) *link {
	return &link{fd: fd, limits: abi.DefaultWireLimits()}
}

// send writes one message. payload may be guest memory; it is not kept.
func (l *link) send(h abi.WireHeader, payload []byte) error {
	h.Length = uint32(len(payload))
	return writeBoth(l.fd, h.Append(l.head[:0]), payload)
}

// next reads a header and checks that the host may send such a message of that size, before
// anything is allocated for it.
func (l *link) next() (abi.WireHeader, error) {
	var b [abi.WireHeaderBytes]byte
	if err := l.read(b[:]); err != nil {
		return abi.WireHeader{}, err
	}
	h, err := abi.ParseWireHeader(b[:])
	if err != nil {
		return h, err
	}
	most, ok := l.limits.FromHost(h.Call)
	if h.Errno != abi.OK {
		most = max(most, abi.MaxErrorText)
	}
	if !ok || h.Length > most {
		return h, fmt.Errorf("%w: call %d with %d bytes from the host", abi.ErrWire, h.Call, h.Length)
	}
	return h, nil
}

// read fills b, first with bytes that were read ahead.
func (l *link) read(b []byte) error {
	n := copy(b, l.in)
	l.in, b = l.in[n:], b[n:]
	for len(b) > 0 {
		if len(b) >= len(l.space) {
			n, err := readSome(l.fd, b)
			if err != nil {
				return err
			}
			b = b[n:]
			continue
		}
		n, err := readSome(l.fd, l.space[:])
		if err != nil {
			return err
		}
		c := copy(b, l.space[:n])
		l.in, b = l.space[c:n], b[c:]
	}
	return nil
}

// A caller makes a call to the host and waits for the reply, which is valid until the next
// call. With an errno the reply is an error text or, for file calls, a FileDetail.
type caller interface {
	call(c abi.Call, request []byte) (reply []byte, errno abi.Errno)
}

var _ caller = (*relay)(nil)

// A relay makes the guest's calls: one at a time, except emit, which is limited by credit.
// Only the guest's goroutine uses it.
type relay struct {
	link   *link
	onLost func(error)     // ends the worker if the host is gone or breaks the protocol; does not return
	onTime func(ms uint64) // receives the host's time; nil if it sends none
	id     uint32
	ended  abi.Errno // if EPROTO, every call fails and nothing is sent

	frames, bytes uint32    // credit left
	emitErrno     abi.Errno // reason why emitting has ended, if it has

	reply     []byte    // the last one
	buffer    []byte    // holds the last reply, unless that is in guest memory
	dst       []byte    // guest memory for the awaited reply; nil for none
	pending   []byte    // what sluice_v1.reply has not fetched yet
	lastErrno abi.Errno // of the last call since it was cleared; see wasi.go
}

func newRelay(l *link, lost func(error)) *relay {
	return &relay{link: l, onLost: lost, frames: abi.CreditFrames, bytes: abi.CreditBytes}
}

// call sends request and returns the host's reply. request may be guest memory.
func (r *relay) call(c abi.Call, request []byte) ([]byte, abi.Errno) {
	if r.ended != abi.OK {
		r.lastErrno = r.ended
		return nil, r.ended
	}
	r.send(c, request)
	for {
		h := r.receive()
		if h.Call == abi.CallCredit || h.Call == abi.CallClock {
			continue
		}
		if h.Call != c || h.ID != r.id {
			r.onLost(fmt.Errorf("%w: reply %d to call %d, want %d to %d", abi.ErrWire, h.ID, h.Call, r.id, c))
		}
		if h.Errno == abi.EPROTO {
			r.ended = abi.EPROTO
		}
		r.lastErrno = h.Errno
		return r.reply, h.Errno
	}
}

// callInto is like call, but stores the reply in dst if it is not an error and fits.
func (r *relay) callInto(c abi.Call, request, dst []byte) ([]byte, abi.Errno) {
	r.dst = dst
	defer func() { r.dst = nil }()
	return r.call(c, request)
}

// emit sends a frame as soon as there is credit for it.
func (r *relay) emit(frame []byte) abi.Errno {
	for r.ended == abi.OK && r.emitErrno == abi.OK && (r.frames == 0 || uint64(r.bytes) < uint64(len(frame))) {
		if h := r.receive(); h.Call != abi.CallCredit { // the host sends its time only before a reply
			r.onLost(fmt.Errorf("%w: reply to call %d while waiting for credit", abi.ErrWire, h.Call))
		}
	}
	if r.ended != abi.OK {
		return r.ended
	}
	if r.emitErrno != abi.OK {
		return r.emitErrno
	}
	r.frames--
	r.bytes -= uint32(len(frame))
	r.send(abi.CallEmit, frame)
	return abi.OK
}

func (r *relay) send(c abi.Call, payload []byte) {
	r.id++
	if err := r.link.send(abi.WireHeader{ID: r.id, Call: c}, payload); err != nil {
		r.onLost(fmt.Errorf("write to host: %w", err))
	}
}

// receive reads one message and handles credits and the host's time. It sets r.reply to the payload of any other.
func (r *relay) receive() abi.WireHeader {
	h, err := r.link.next()
	if err != nil {
		r.onLost(fmt.Errorf("read from host: %w", err))
	}
	if h.Call == abi.CallCredit {
		var b [8]byte
		if err := r.link.read(b[:h.Length]); err != nil {
			r.onLost(fmt.Errorf("read from host: %w", err))
		}
		r.storeReply(h, b[:h.Length])
		return h
	}
	if h.Call == abi.CallClock {
		r.clock(h)
		return h
	}
	if h.Errno == abi.OK && r.dst != nil && int(h.Length) <= len(r.dst) {
		r.reply = r.dst[:h.Length]
	} else {
		if cap(r.buffer) < int(h.Length) {
			r.buffer = make([]byte, h.Length)
		}
		r.reply = r.buffer[:h.Length]
	}
	if err := r.link.read(r.reply); err != nil {
		r.onLost(fmt.Errorf("read from host: %w", err))
	}
	return h
}

// clock passes on the host's time.
func (r *relay) clock(h abi.WireHeader) {
	var b [8]byte
	if err := r.link.read(b[:h.Length]); err != nil {
		r.onLost(fmt.Errorf("read from host: %w", err))
	}
	ms, err := abi.ParseClock(b[:h.Length])
	if err != nil || r.onTime == nil {
		r.onLost(fmt.Errorf("%w: a time that was not asked for", abi.ErrWire))
		return
	}
	r.onTime(ms)
}

func (r *relay) storeReply(h abi.WireHeader, payload []byte) {
	c, err := abi.ParseCredit(payload)
	if err != nil {
		r.onLost(err)
	}
	r.frames = min(r.frames+c.Frames, abi.CreditFrames)
	r.bytes = min(r.bytes+c.Bytes, abi.CreditBytes)
	switch h.Errno {
	case abi.OK:
	case abi.EPROTO:
		r.ended = abi.EPROTO
	default:
		r.emitErrno = h.Errno
	}
}
