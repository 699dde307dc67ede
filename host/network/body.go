package network

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Body is the body of a response. It is decoded and counted, and fails below a minimum
// rate. It has one reader at a time.
type Body struct {
	raw     *countedReader
	decoded io.Reader // raw, or the content of one layer of gzip
	ctx     context.Context
	cancel  context.CancelCauseFunc
	left    int64 // decoded bytes still permitted
	got     int64 // decoded bytes so far
	ratio   int64
	window  time.Duration
	done    func()                         // called once at the end
	over    func(raw int64, failed string) // called then: encoded bytes, and the error code of an early end

	waited time.Duration // time waited within the window
	since  int64         // bytes received when the window began
	closed bool
	err    error  // the first error other than io.EOF
	failed string // its code
}

// A countedReader counts the bytes from the server, for the body and for the run, and fails
// beyond either limit.
type countedReader struct {
	io.ReadCloser
	n, most int64
	run     *atomic.Int64
	mostRun int64
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.n += int64(n)
	switch {
	case r.run.Add(int64(n)) > r.mostRun:
		return 0, errReceived(r.mostRun)
	case r.n > r.most:
		return 0, failf(abi.ETOOBIG, "response_too_large", "the body has more than %d bytes as it is sent", r.most)
	}
	return n, err
}

func errReceived(most int64) *Error {
	return failf(abi.ETOOBIG, "receive_limit", "a run may receive %d bytes", most)
}

// packing is how much longer than its content an encoded body may be.
const packing = 64 << 10

var (
	errSlow = failf(abi.ETIMEOUT, "too_slow", "the server sends less than 1 KiB/s")
	errLate = failf(abi.ETIMEOUT, "timeout", "the request took longer than its timeout")
)

// newBody takes over the body of a response. It refuses encodings other than gzip, which
// were not requested.
func newBody(ctx context.Context, cancel context.CancelCauseFunc, r *http.Response, most int64, l Limits, run *atomic.Int64, done func()) (*Body, error) {
	raw := &countedReader{ReadCloser: r.Body, most: most + packing, run: run, mostRun: l.RunBytes}
	b := &Body{raw: raw, decoded: raw, ctx: ctx, cancel: cancel, left: most, ratio: l.Ratio, window: l.FloorWindow, done: done,
		over: func(int64, string) {}}
	switch coding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ","))); {
	case coding == "" || coding == "identity" || bodiless(r):
	case coding == "gzip" || coding == "x-gzip":
		b.decoded = &lateGzip{src: raw}
	default:
		return nil, failf(abi.EUNAVAIL, "unsupported_encoding", "the server answered in a coding that is not gzip")
	}
	return b, nil
}

// bodiless reports whether a response has no body, whatever its headers say.
func bodiless(r *http.Response) bool {
	return r.Request.Method == http.MethodHead || r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified
}

// A lateGzip reads the gzip header on the first Read, because an answer to HEAD may
// announce gzip without a body.
type lateGzip struct {
	src io.Reader
	z   *gzip.Reader
}

func (g *lateGzip) Read(p []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(g.src)
		if err != nil {
			return 0, err
		}
		g.z = z
	}
	return g.z.Read(p)
}

// Read implements io.Reader. The error is an *Error or io.EOF.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err // nothing is returned after an error
	}
	n, err := b.read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err, b.failed = err, asError(err).Code
	}
	return n, err
}

func (b *Body) read(p []byte) (int, error) {
	if b.closed {
		return 0, io.EOF
	}
	stop := time.AfterFunc(b.window, func() { b.cancel(errSlow) })
	began := time.Now()
	n, err := b.decoded.Read(p[:min(int64(len(p)), b.left+1)])
	stop.Stop()
	if slow := b.pace(time.Since(began)); slow != nil {
		return 0, slow
	}
	b.got += int64(n)
	if b.left -= int64(n); b.left < 0 {
		return 0, failf(abi.ETOOBIG, "response_too_large", "the body has more than %d bytes; max_bytes raises the limit", b.got-1)
	}
	if b.got > ratioFrom && b.got > b.raw.n*b.ratio {
		return 0, failf(abi.ETOOBIG, "response_too_large", "the body unpacks to more than %d times its size", b.ratio)
	}
	var over *Error
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.As(err, &over):
		return 0, over
	case context.Cause(b.ctx) != nil:
		return 0, ended(b.ctx)
	}
	return 0, failf(abi.EUNAVAIL, "broken_off", "the body broke off after %d bytes", b.got)
}

// pace enforces the minimum rate. Only time spent waiting for the server counts.
func (b *Body) pace(d time.Duration) error {
	if b.waited += d; b.waited < b.window {
		return nil
	}
	if b.raw.n-b.since < int64(b.window.Seconds()*floorRate) {
		return errSlow
	}
	b.waited, b.since = 0, b.raw.n
	return nil
}

// Abort ends a Read in progress and makes later ones fail. It is safe for concurrent use.
func (b *Body) Abort() { b.cancel(errClosed) }

// Close discards the rest of the body.
func (b *Body) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	err := b.raw.Close()
	b.done()
	b.over(b.raw.n, b.failed)
	return err
}

// ended returns the reason why ctx ended.
func ended(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	var e *Error
	switch {
	case errors.As(cause, &e):
		return e
	case errors.Is(cause, context.DeadlineExceeded):
		return errLate
	}
	return failf(abi.ECANCELED, "run_cancelled", "the run is ending")
}
