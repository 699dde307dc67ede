package egress

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
	raw          *countedReader
	decoded      io.Reader // raw, or the content of one layer of gzip
	ctx          context.Context
	cancel       context.CancelCauseFunc
	remaining    int64 // decoded bytes still permitted
	decodedBytes int64 // decoded bytes so far
	ratio        int64
	window       time.Duration
	release      func()                         // called once at the end
	onClose      func(raw int64, failed string) // called then: encoded bytes, and the error code of an early end

	waitTime    time.Duration // time waited within the window
	windowStart int64         // bytes received when the window began
	closed      bool
	err         error  // the first error other than io.EOF
	errorCode   string // its code
}

// A countedReader counts the bytes from the server, for the body and for the run, and fails
// beyond either limit.
type countedReader struct {
	io.ReadCloser
	n, limit int64
	runTotal *atomic.Int64
	runLimit int64
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.n += int64(n)
	switch {
	case r.runTotal.Add(int64(n)) > r.runLimit:
		return 0, errReceived(r.runLimit)
	case r.n > r.limit:
		return 0, Errorf(abi.ETOOBIG, "response_too_large", "the body has more than %d bytes as it is sent", r.limit)
	}
	return n, err
}

func errReceived(most int64) *Error {
	return Errorf(abi.ETOOBIG, "receive_limit", "a run may receive %d bytes", most)
}

// encodingOverhead is how much longer than its content an encoded body may be.
const encodingOverhead = 64 << 10

var (
	errSlow    = Errorf(abi.ETIMEOUT, "too_slow", "the server sends less than 1 KiB/s")
	errTimeout = Errorf(abi.ETIMEOUT, "timeout", "the request took longer than its timeout")
)

// newBody takes over the body of a response. It refuses encodings other than gzip, which
// were not requested.
func newBody(ctx context.Context, cancel context.CancelCauseFunc, r *http.Response, most int64, l Limits,
	run *atomic.Int64, done func()) (*Body, error) {
	raw := &countedReader{ReadCloser: r.Body, limit: most + encodingOverhead, runTotal: run, runLimit: l.RunBytes}
	b := &Body{raw: raw, decoded: raw, ctx: ctx, cancel: cancel, remaining: most, ratio: l.Ratio,
		window: l.FloorWindow, release: done,
		onClose: func(int64, string) {}}
	switch coding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ","))); {
	case coding == "" || coding == "identity" || hasNoBody(r):
	case coding == "gzip" || coding == "x-gzip":
		b.decoded = &lazyGzip{src: raw}
	default:
		return nil, Errorf(abi.EUNAVAIL, "unsupported_encoding", "the server answered in a coding that is not gzip")
	}
	return b, nil
}

// hasNoBody reports whether a response has no body, whatever its headers say.
func hasNoBody(r *http.Response) bool {
	return r.Request.Method == http.MethodHead || r.StatusCode == http.StatusNoContent ||
		r.StatusCode == http.StatusNotModified
}

// A lazyGzip reads the gzip header on the first Read, because an answer to HEAD may
// announce gzip without a body.
type lazyGzip struct {
	src io.Reader
	z   *gzip.Reader
}

func (g *lazyGzip) Read(p []byte) (int, error) {
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
		b.err, b.errorCode = err, AsError(err).Code
	}
	return n, err
}

func (b *Body) read(p []byte) (int, error) {
	if b.closed {
		return 0, io.EOF
	}
	stop := time.AfterFunc(b.window, func() { b.cancel(errSlow) })
	began := time.Now()
	n, err := b.decoded.Read(p[:min(int64(len(p)), b.remaining+1)])
	stop.Stop()
	if slow := b.checkRate(time.Since(began)); slow != nil {
		return 0, slow
	}
	b.decodedBytes += int64(n)
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, Errorf(abi.ETOOBIG, "response_too_large", "the body has more than %d bytes; max_bytes raises the limit",
			b.decodedBytes-1)
	}
	if b.decodedBytes > ratioFrom && b.decodedBytes > b.raw.n*b.ratio {
		return 0, Errorf(abi.ETOOBIG, "response_too_large", "the body unpacks to more than %d times its size", b.ratio)
	}
	var limitErr *Error
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.As(err, &limitErr):
		return 0, limitErr
	case context.Cause(b.ctx) != nil:
		return 0, contextError(b.ctx)
	}
	return 0, Errorf(abi.EUNAVAIL, "broken_off", "the body broke off after %d bytes", b.decodedBytes)
}

// checkRate enforces the minimum rate. Only time spent waiting for the server counts.
func (b *Body) checkRate(d time.Duration) error {
	if b.waitTime += d; b.waitTime < b.window {
		return nil
	}
	if b.raw.n-b.windowStart < int64(b.window.Seconds()*floorRate) {
		return errSlow
	}
	b.waitTime, b.windowStart = 0, b.raw.n
	return nil
}

// Abort ends a Read in progress and makes later ones fail. It is safe for concurrent use.
func (b *Body) Abort() { b.cancel(ErrClosed) }

// Close discards the rest of the body.
func (b *Body) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	err := b.raw.Close()
	b.release()
	b.onClose(b.raw.n, b.errorCode)
	return err
}

// contextError returns the reason why ctx ended.
func contextError(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	var e *Error
	switch {
	case errors.As(cause, &e):
		return e
	case errors.Is(cause, context.DeadlineExceeded):
		return errTimeout
	}
	return Errorf(abi.ECANCELED, "run_cancelled", "the run is ending")
}
