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

// bufferSize is how much one call fetches for readers of small pieces.
const bufferSize = 256 << 10

// A body reads a response from its handle. It closes the handle as soon as it
// is of no more use: at the end, after an error, or at Close.
type body struct {
	handle handle

	mu     sync.Mutex // guards all below, and is held during a call
	buffer *bufio.Reader
	err    error // of every further Read; the handle is open while nil
	begun  bool  // something of it was read
}

// newBody has a buffer no larger than the body, length bytes if that is known.
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

// Read reads from the buffer, and larger pieces from the host.
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

// WriteTo implements io.WriterTo, so that io.Copy passes on what a call fetched as
// it is, instead of in pieces of its own size. Close may be called meanwhile.
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
		n = min(max(n, 0), len(piece)) // a writer may say anything
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

// fetched is what the buffer has, after a call if it has nothing. took says how much
// of it was used.
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
	if b.buffer != nil { // it was not closed meanwhile
		_, _ = b.buffer.Discard(n) // no more than is there
	}
}

// usable is the error of every Read from now on, nil for none yet. mu is held.
func (b *body) usable() error {
	if b.err == nil {
		b.fail(b.handle.ctx.Err())
	}
	return b.err
}

// fail closes the handle if there is an error.
func (b *body) fail(err error) {
	if err != nil {
		b.err, b.buffer = err, nil
		_ = b.handle.close() // the error is what the reader gets
	}
}

// TakeHandle gives away the handle of a body of which nothing was read: Run.Attach has it
// stored within the host.
func (b *body) TakeHandle() (number int32, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun || b.usable() != nil {
		return 0, false
	}
	b.err, b.buffer = http.ErrBodyReadAfterClose, nil
	return b.handle.number, true
}

// Close closes the handle if it is still open.
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

// A handle is a response's stream in the host.
type handle struct {
	ctx    context.Context // of the request, as net/http has it
	host   host
	number int32
}

// Read is one call.
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
