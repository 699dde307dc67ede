package guesthttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// bufferSize is how much one call fetches, in bytes, for readers of small pieces.
const bufferSize = 256 << 10

// A body reads a response from its handle. It closes the handle at the end, after an error,
// or at Close, whichever is first.
type body struct {
	handle handle

	mu     sync.Mutex // guards the fields below; held during calls
	buffer *bufio.Reader
	err    error // result of all further Reads; nil while the handle is open
	begun  bool  // something was read
}

// newBody returns a body with a buffer no larger than length, or of bufferSize if length is
// negative.
func newBody(ctx context.Context, h host, number int32, length int64, begun []byte) *body {
	size := int64(bufferSize)
	if length >= 0 {
		size = min(size, length)
	}
	b := &body{handle: handle{ctx, h, number}}
	b.begun = len(begun) > 0
	b.buffer = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(begun), b.handle), int(size))
	return b
}

// Read reads small pieces from the buffer and larger ones from the host.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return 0, err
	}
	b.begun = true
	n, err := b.buffer.Read(p)
	b.fail(err)
	return n, err
}

// WriteTo implements io.WriterTo, so that io.Copy writes what each call fetched instead of
// copying it in smaller pieces. Close may be called concurrently.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	for all := int64(0); ; {
		piece, err := b.fetched()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		n, err := w.Write(piece)
		n = min(max(n, 0), len(piece)) // a writer may return anything
		all += int64(n)
		b.took(n)
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return all, err
		}
	}
}

// fetched returns the buffered bytes, after a call if there are none. The caller reports
// with took how many it used.
func (b *body) fetched() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return nil, err
	}
	b.begun = true
	if _, err := b.buffer.Peek(1); err != nil {
		b.fail(err)
		return nil, err
	}
	return b.buffer.Peek(b.buffer.Buffered())
}

func (b *body) took(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buffer != nil { // not closed in the meantime
		_, _ = b.buffer.Discard(n) // no more than is there
	}
}

// usable returns the error of all further Reads, or nil. The caller holds mu.
func (b *body) usable() error {
	if b.err == nil {
		b.fail(b.handle.ctx.Err())
	}
	return b.err
}

// fail closes the handle if err is not nil.
func (b *body) fail(err error) {
	if err != nil {
		b.err, b.buffer = err, nil
		_ = b.handle.close() // the reader gets err
	}
}

// TakeHandle gives up the handle of a body of which nothing was read, so that Run.Attach
// can have it stored within the host.
func (b *body) TakeHandle() (number int32, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun || b.usable() != nil {
		return 0, false
	}
	b.err, b.buffer = http.ErrBodyReadAfterClose, nil
	return b.handle.number, true
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	open := b.err == nil
	b.err, b.buffer = http.ErrBodyReadAfterClose, nil
	if !open {
		return nil
	}
	return refusal(b.handle.close())
}

// A handle is the stream of a response in the host.
type handle struct {
	ctx    context.Context // of the request, as in net/http
	host   host
	number int32
}

// Read makes one call.
func (h handle) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := expired(h.ctx); err != nil {
		return 0, err
	}
	n, err := h.host.ReadHandle(h.number, p)
	switch {
	case n < 0 || n > len(p):
		return 0, errors.New("guesthttp: the host read more than it was asked for")
	case err != nil:
		return n, refusal(err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (h handle) close() error { return h.host.CloseHandle(h.number) }
