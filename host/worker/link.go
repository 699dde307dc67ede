package worker

import (
	"fmt"

	"github.com/sluicehost/sluice/abi"
)

// inputBytes is what a link reads ahead: headers, credits, small replies.
const inputBytes = 16 << 10

// A link is the worker's end of the socket. It is used by one goroutine at a
// time: a guest has one thread, and the worker speaks only for it.
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

// send writes one message. payload may be guest memory: it is not kept.
func (l *link) send(h abi.WireHeader, payload []byte) error {
	h.Length = uint32(len(payload))
	return writeBoth(l.fd, h.Append(l.head[:0]), payload)
}

// next reads a header and checks that the host may send such a message of that
// size. Nothing is allocated for it yet.
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

// read fills b, first with what was read ahead.
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
