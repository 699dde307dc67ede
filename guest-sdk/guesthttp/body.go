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
}

// newBody has a buffer no larger than the body, length bytes if that is known.
func newBody(ctx context.Context, h host, number int32, length int64, begun []byte) *body {
	size := int64(bufferSize)
	if length >= 0 {
		size = min(size, length)
	}
	b := &body{handle: handle{ctx, h, number}}
	b.buffer = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(begun), b.handle), int(size))
	return b
}

// Read reads from the buffer, and larger pieces from the host.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.fail(b.handle.ctx.Err())
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.buffer.Read(p)
	b.fail(err)
	return n, err
}

// fail closes the handle if there is an error.
func (b *body) fail(err error) {
	if err != nil {
		b.err, b.buffer = err, nil
		_ = b.handle.close() // the error is what the reader gets
	}
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

// A handle is a response's stream in the host (G10).
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
