package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

// writeDeadline is how long a worker may leave its socket unread.
const writeDeadline = 5 * time.Second

// inputBytes is the size of the read-ahead buffer, for headers and small requests.
const inputBytes = 4 << 10

// A channel is the host's end of a worker's socket. Only one goroutine may read; any may write.
type channel struct {
	socket *os.File
	reader io.Reader // the socket
	limits abi.WireLimits
	lastID uint32 // of the worker's messages; each is one more than the one before

	in    []byte // read ahead and not yet consumed
	space [inputBytes]byte

	mu            sync.Mutex // guards the fields below, and the order of writes
	out           []byte
	pendingCredit abi.Credit // sent before the next message
}

// maxPendingCredit is how much credit may wait for the next message. Invariant: less than
// CreditBytes without the largest frame, so that a guest can always emit.
const maxPendingCredit = 64 << 10

// addCredit adds credit for the next message. It returns all of it if it must be sent now.
func (c *channel) addCredit(more abi.Credit) (all abi.Credit, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all = abi.Credit{Frames: c.pendingCredit.Frames + more.Frames, Bytes: c.pendingCredit.Bytes + more.Bytes}
	if all.Frames >= abi.CreditFrames/2 || all.Bytes > maxPendingCredit {
		c.pendingCredit = abi.Credit{}
		return all, true
	}
	c.pendingCredit = all
	return all, false
}

func newChannel(socket *os.File, limits abi.WireLimits) *channel {
	return &channel{socket: socket, reader: socket, limits: limits}
}

// next reads one message; the caller gives its payload buffer back. io.EOF is a clean end;
// an error that wraps abi.ErrWire is a fault of the worker.
func (c *channel) next() (abi.WireHeader, *buffer, error) {
	var b [abi.WireHeaderBytes]byte
	if err := c.read(b[:], true); err != nil {
		return abi.WireHeader{}, nil, err
	}
	h, err := abi.ParseWireHeader(b[:])
	if err != nil {
		return h, nil, err
	}
	if err := c.check(h); err != nil {
		return h, nil, err
	}
	buf := takeBuffer(int(h.Length))
	if err := c.read(buf.b[:h.Length], false); err != nil {
		giveBuffer(buf)
		return h, nil, err
	}
	return h, buf, nil
}

// check refuses a header before anything is allocated for it.
func (c *channel) check(h abi.WireHeader) error {
	most, ok := c.limits.FromWorker(h.Call)
	switch {
	case !ok:
		return fmt.Errorf("%w: call %d from a worker", abi.ErrWire, h.Call)
	case h.Length > most:
		return fmt.Errorf("%w: call %d with %d bytes, at most %d", abi.ErrWire, h.Call, h.Length, most)
	case h.Errno != abi.OK:
		return fmt.Errorf("%w: call %d with an errno", abi.ErrWire, h.Call)
	case h.ID != c.lastID+1:
		return fmt.Errorf("%w: id %d after %d", abi.ErrWire, h.ID, c.lastID)
	}
	c.lastID++
	return nil
}

// read fills b. An end inside a message is a fault of the worker.
func (c *channel) read(b []byte, mayEnd bool) error {
	whole := len(b)
	n := copy(b, c.in)
	c.in, b = c.in[n:], b[n:]
	for len(b) > 0 {
		into := c.space[:]
		if len(b) >= len(into) {
			into = b
		}
		n, err := c.reader.Read(into)
		if n == 0 && err != nil {
			return c.readError(err, mayEnd && len(b) == whole)
		}
		if len(b) >= len(c.space) {
			b = b[n:]
			continue
		}
		used := copy(b, c.space[:n])
		c.in, b = c.space[used:n], b[used:]
	}
	return nil
}

func (c *channel) readError(err error, clean bool) error {
	if errors.Is(err, io.EOF) && !clean {
		return fmt.Errorf("%w: it ends in the middle", abi.ErrWire)
	}
	return err
}

// send writes one message within the deadline, after the owed credit and, unless it is 0,
// the time. payload is not kept.
func (c *channel) send(h abi.WireHeader, payload []byte, at uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Length = uint32(len(payload))
	c.out = c.out[:0]
	if c.pendingCredit != (abi.Credit{}) {
		given := c.pendingCredit.Append(nil)
		c.out = append(abi.WireHeader{Length: uint32(len(given)), Call: abi.CallCredit}.Append(c.out), given...)
		c.pendingCredit = abi.Credit{}
	}
	if at != 0 {
		told := abi.AppendClock(nil, at)
		c.out = append(abi.WireHeader{Length: uint32(len(told)), Call: abi.CallClock}.Append(c.out), told...)
	}
	c.out = h.Append(c.out)
	if err := c.socket.SetWriteDeadline(time.Now().Add(writeDeadline)); err != nil {
		return fmt.Errorf("write to worker: %w", err)
	}
	if len(payload) <= frameBuffer { // one system call, one wake-up
		c.out = append(c.out, payload...)
		payload = nil
	}
	if _, err := c.socket.Write(c.out); err != nil {
		return fmt.Errorf("write to worker: %w", err)
	}
	if len(payload) == 0 {
		return nil
	}
	if _, err := c.socket.Write(payload); err != nil {
		return fmt.Errorf("write to worker: %w", err)
	}
	return nil
}

// load sends the load message with its descriptors.
func (c *channel) load(l abi.Load, files ...*os.File) error {
	payload := l.Append(nil)
	h := abi.WireHeader{Length: uint32(len(payload)), Call: abi.CallLoad}
	if len(payload) > abi.MaxLoadBytes {
		return fmt.Errorf("load message of %d bytes, at most %d", len(payload), abi.MaxLoadBytes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.socket.SetWriteDeadline(time.Now().Add(writeDeadline)); err != nil {
		return fmt.Errorf("write to worker: %w", err)
	}
	return jail.SendFDs(c.socket, append(h.Append(nil), payload...), files...)
}

// Payloads are read into pooled buffers, so that a run of a million records allocates no
// more than one of a thousand. Small and large messages have separate pools, so that a
// waiting call does not hold the memory of a frame.
const (
	smallBuffer = 4 << 10
	frameBuffer = 80 << 10   // the SDK's frames are 64 KiB and the last record
	largeBuffer = 1280 << 10 // anything up to the default frame limit
)

type buffer struct{ b []byte }

var buffers = [...]struct {
	size int
	pool *sync.Pool
}{
	{smallBuffer, newBuffers(smallBuffer)},
	{frameBuffer, newBuffers(frameBuffer)},
	{largeBuffer, newBuffers(largeBuffer)},
}

func newBuffers(size int) *sync.Pool {
	return &sync.Pool{New: func() any { return &buffer{b: make([]byte, size)} }}
}

// takeBuffer returns a buffer of at least n bytes. n was checked by the caller.
func takeBuffer(n int) *buffer {
	for _, class := range buffers {
		if n <= class.size {
			if b, ok := class.pool.Get().(*buffer); ok {
				return b
			}
		}
	}
	return &buffer{b: make([]byte, n)}
}

// giveBuffer returns b to its pool. The caller must not use its content afterwards.
func giveBuffer(b *buffer) {
	for _, class := range buffers {
		if len(b.b) == class.size {
			class.pool.Put(b)
			return
		}
	}
}
