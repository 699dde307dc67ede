//go:build !wasip1

package guesthttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

func roundTrip(ctx context.Context, t *testing.T, f *fake) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", "https://h.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := guesthttp.Over(f).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestSmallReads: a reader of small pieces pays one call for 64 KiB.
func TestSmallReads(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	f := &fake{reply: ok, body: want}
	res := roundTrip(t.Context(), t, f)
	var got []byte
	for piece := make([]byte, 100); ; {
		n, err := res.Body.Read(piece)
		got = append(got, piece[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("the body came changed")
	}
	if f.reads != len(want)/(256<<10)+1 || f.closes != 1 {
		t.Errorf("%d reads, %d closes for %d bytes", f.reads, f.closes, len(want))
	}
}

// TestReader: the body keeps the contract of io.Reader, whatever the pieces.
func TestReader(t *testing.T) {
	want := []byte(strings.Repeat("large and small ", 10_000))
	for _, reply := range []string{ok, strings.Replace(ok, `"url"`, `"bytes":160000,"url"`, 1),
		strings.Replace(ok, `"url"`, `"bytes":3,"url"`, 1)} {
		for _, piece := range []int{0, 1000, 70_000} {
			f := &fake{reply: reply, body: want, piece: piece}
			if err := iotest.TestReader(roundTrip(t.Context(), t, f).Body, want); err != nil {
				t.Errorf("%s in pieces of %d: %v", reply, piece, err)
			}
		}
	}
}

// TestCopy: io.Copy gets what a call fetched as it is, and what a writer did not take
// is there still.
func TestCopy(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for _, reply := range []string{ok, strings.Replace(ok, `"url"`, `"bytes":1048576,"url"`, 1)} {
		f := &fake{reply: reply, body: want}
		res := roundTrip(t.Context(), t, f)
		got, largest := bytes.Buffer{}, 0
		full := errors.New("the disk is full")
		n, err := io.Copy(writer(func(p []byte) (int, error) { got.Write(p[:1000]); return 1000, full }), res.Body)
		if n != 1000 || !errors.Is(err, full) {
			t.Errorf("%d bytes, %v", n, err)
		}
		n, err = io.Copy(writer(func(p []byte) (int, error) { largest = max(largest, len(p)); return got.Write(p) }),
			res.Body)
		if n != int64(len(want))-1000 || err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if f.reads > len(want)/(256<<10)+1 || f.closes != 1 || largest != 256<<10 {
			t.Errorf("%d reads, %d closes, pieces of at most %d", f.reads, f.closes, largest)
		}
		if n, err := io.Copy(io.Discard, res.Body); n != 0 || err != nil {
			t.Errorf("after the end: %d, %v", n, err)
		}
	}
	f := &fake{reply: ok, body: want}
	res := roundTrip(t.Context(), t, f)
	n, err := io.Copy(writer(func(p []byte) (int, error) { return len(p), res.Body.Close() }), res.Body)
	if n != 256<<10 || !errors.Is(err, http.ErrBodyReadAfterClose) || f.closes != 1 {
		t.Errorf("closed meanwhile: %d bytes, %v, %d closes", n, err, f.closes)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestEarlyClose: Close before the end closes the handle, once.
func TestEarlyClose(t *testing.T) {
	f := &fake{reply: ok, body: []byte("never read to its end")}
	res := roundTrip(t.Context(), t, f)
	if _, err := res.Body.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if f.closes != 1 || f.closed != 7 {
		t.Errorf("closed %d times, handle %d", f.closes, f.closed)
	}
	if n, err := res.Body.Read(make([]byte, 5)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("read after Close: %d, %v", n, err)
	}
}

// TestCloseWhileReading: one goroutine may close what another reads.
func TestCloseWhileReading(t *testing.T) {
	f := &fake{reply: ok, body: make([]byte, 1<<20), piece: 10}
	res := roundTrip(t.Context(), t, f)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := io.Copy(io.Discard, res.Body); err != nil && !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if f.closes != 1 {
		t.Errorf("%d closes", f.closes)
	}
}

// TestBrokenBody: an error of the host ends the body and closes the handle; it
// stays what it was.
func TestBrokenBody(t *testing.T) {
	f := &fake{reply: ok, body: []byte("half"), broken: guest.NewError(abi.ETIMEOUT, "timeout", "too slow")}
	res := roundTrip(t.Context(), t, f)
	b, err := io.ReadAll(res.Body)
	var timeout net.Error
	if string(b) != "half" || !errors.Is(err, abi.ETIMEOUT) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%q, %v", b, err)
	}
	if _, again := res.Body.Read(make([]byte, 1)); !errors.Is(again, abi.ETIMEOUT) || f.closes != 1 {
		t.Errorf("again: %v, %d closes", again, f.closes)
	}
}

// TestHostThatMiscounts: a length that cannot be is an error, not a panic.
func TestHostThatMiscounts(t *testing.T) {
	for _, excess := range []int{-1000, 1 << 20} {
		f := &fake{reply: ok, body: []byte("x"), excess: excess}
		b, err := io.ReadAll(roundTrip(t.Context(), t, f).Body)
		if err == nil || len(b) != 0 {
			t.Errorf("%d too many: %q, %v", excess, b, err)
		}
	}
}

// TestCancelWhileReading: the next Read says so, even if bytes are left in the
// buffer, and the handle is closed.
func TestCancelWhileReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{reply: ok, body: []byte("two pieces")}
	res := roundTrip(ctx, t, f)
	if _, err := res.Body.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if n, err := res.Body.Read(make([]byte, 3)); n != 0 || !errors.Is(err, context.Canceled) || f.closes != 1 {
		t.Errorf("%d, %v, %d closes", n, err, f.closes)
	}
}

// TestDeadlineWhileReading is the same for a deadline.
func TestDeadlineWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f := &fake{reply: ok, body: []byte("x"), piece: 1}
		res := roundTrip(ctx, t, f)
		<-ctx.Done()
		if _, err := res.Body.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) || f.reads != 0 {
			t.Errorf("%v, %d reads", err, f.reads)
		}
	})
}
