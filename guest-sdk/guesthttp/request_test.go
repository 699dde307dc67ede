//go:build !wasip1

package guesthttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

// A tracked body knows whether it was closed.
type tracked struct {
	io.Reader
	closed bool
}

func (b *tracked) Close() error { b.closed = true; return nil }

// TestHead is the request as the host gets it: names sorted, what net/http does
// not take from the header either left out, the rest left to the host.
func TestHead(t *testing.T) {
	f := &fake{reply: ok}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "https://user:secret@h.example/a%2Fb?q=<&>#part",
		strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "H.example:443"
	req.Header = http.Header{
		"X-B": {"2", "1"}, "X-A": {"é"}, "User-Agent": {"lib/1"}, "Cookie": {"a=b"}, "Expect": {"100-continue"},
		"Host": {"h.example"}, "Content-Length": {"4"}, "content-length": {"4"}, "Transfer-Encoding": {"chunked"},
		"Connection": {"close", "Upgrade"}, "Accept-Encoding": {"gzip", "br"},
	}
	transport := guesthttp.Over(f)
	transport.MaxBytes, transport.Wait = 1<<30, 1500*time.Microsecond
	if _, err := transport.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"method": "POST", "url": "https://h.example/a%2Fb?q=<&>", "redirect": "manual", "inline_bytes": 65536.0,
		"max_bytes": 1.0 * (1 << 30), "wait_ms": 2.0, "headers": []any{
			[]any{"Accept-Encoding", "br"}, []any{"Connection", "Upgrade"}, []any{"Cookie", "a=b"},
			[]any{"Expect", "100-continue"}, []any{"User-Agent", "lib/1"}, []any{"X-A", "é"},
			[]any{"X-B", "2"}, []any{"X-B", "1"},
		},
	}
	if diff := cmp.Diff(want, f.sentHead(t)); diff != "" {
		t.Error(diff)
	}
	if string(f.sent) != "body" {
		t.Errorf("body %q", f.sent)
	}
}

// TestPlainHead is the least there can be.
func TestPlainHead(t *testing.T) {
	f := &fake{reply: ok}
	transport := guesthttp.Over(f)
	transport.MaxBytes, transport.Wait = -1, -time.Second
	if _, err := transport.RoundTrip(&http.Request{URL: &url.URL{Scheme: "https", Host: "h.example"}}); err != nil {
		t.Fatal(err)
	}
	if want := `{"method":"GET","url":"https://h.example","headers":[],"redirect":"manual","inline_bytes":65536}`; f.head != want {
		t.Errorf("head %s", f.head)
	}
}

// TestNotSent: what cannot be right fails before the host is called, and the
// body is closed.
func TestNotSent(t *testing.T) {
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		change func(r *http.Request) *http.Request
		body   io.Reader
		is     error
		text   string
	}{
		"no URL":  {func(r *http.Request) *http.Request { r.URL = nil; return r }, nil, nil, "no URL"},
		"no host": {func(r *http.Request) *http.Request { r.URL.Host = ""; return r }, nil, nil, "no host"},
		"another Host": {func(r *http.Request) *http.Request { r.Host = "evil.example"; return r }, nil, nil,
			`"evil.example" is not that of the URL`},
		"another port": {func(r *http.Request) *http.Request { r.Host = "h.example:8443"; return r }, nil, nil,
			"not that of the URL"},
		"opaque elsewhere": {func(r *http.Request) *http.Request { r.URL.Opaque = "//evil.example/x"; return r },
			nil, nil, "opaque"},
		"opaque longer": {func(r *http.Request) *http.Request { r.URL.Opaque = "//h.example.evil.example/x"; return r },
			nil, nil, "opaque"},
		"opaque user": {func(r *http.Request) *http.Request { r.URL.Opaque = "@evil.example/x"; return r },
			nil, nil, "opaque"},
		"trailer": {func(r *http.Request) *http.Request { r.Trailer = http.Header{"X": nil}; return r },
			nil, nil, "trailers"},
		"Latin-1": {func(r *http.Request) *http.Request { r.Header.Set("X-A", "\xe9"); return r }, nil, nil,
			`header "X-A" is not UTF-8`},
		"Latin-1 query": {func(r *http.Request) *http.Request { r.URL.RawQuery = "\xe9"; return r }, nil, nil, "not UTF-8"},
		"expired": {func(r *http.Request) *http.Request { return r.WithContext(expired) }, nil,
			context.DeadlineExceeded, ""},
		"cancelled": {func(r *http.Request) *http.Request { return r.WithContext(cancelled) }, nil, context.Canceled, ""},
		"too long":  {nil, io.LimitReader(endless{}, 16<<20+1), abi.ETOOBIG, "over 16 MiB"},
		"endless":   {nil, endless{}, abi.ETOOBIG, "over 16 MiB"},
		"says too long": {func(r *http.Request) *http.Request { r.ContentLength = 1 << 62; return r }, nil,
			abi.ETOOBIG, "over 16 MiB"},
		"shorter": {func(r *http.Request) *http.Request { r.ContentLength = 9; return r }, strings.NewReader("four"), nil,
			"ContentLength is 9 and the body has 4"},
		"unreadable": {nil, io.MultiReader(strings.NewReader("x"), broken{}), io.ErrClosedPipe, ""},
	} {
		f := &fake{reply: ok}
		if c.body == nil {
			c.body = strings.NewReader("")
		}
		b := &tracked{Reader: c.body}
		req, err := http.NewRequestWithContext(t.Context(), "POST", "https://h.example/", b)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			req = c.change(req)
		}
		_, err = guesthttp.Over(f).RoundTrip(req)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
		if f.requests != 0 || !b.closed {
			t.Errorf("%s: %d calls, body closed: %v", name, f.requests, b.closed)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestBody: the largest body passes, of known length or not, and is closed.
func TestBody(t *testing.T) {
	want := bytes.Repeat([]byte("x"), 16<<20)
	for _, length := range []int64{0, -1, int64(len(want))} {
		f := &fake{reply: ok}
		b := &tracked{Reader: bytes.NewReader(want)}
		req, err := http.NewRequestWithContext(t.Context(), "PUT", "https://h.example/", b)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		if _, err := guesthttp.Over(f).RoundTrip(req); err != nil || !bytes.Equal(f.sent, want) || !b.closed {
			t.Errorf("length %d: %d bytes sent, closed: %v, %v", length, len(f.sent), b.closed, err)
		}
	}
}

// TestOpaque: a URL with its path in Opaque names what net/http would ask for.
func TestOpaque(t *testing.T) {
	for opaque, want := range map[string]string{
		"/a%2Fb":              "https://h.example/a%2Fb?q=1",
		"//h.example/a%2Fb":   "https://h.example/a%2Fb?q=1",
		"//h.example/h.c/../": "https://h.example/h.c/../?q=1",
	} {
		f := &fake{reply: ok}
		req := &http.Request{URL: &url.URL{Scheme: "https", Host: "h.example", Opaque: opaque, RawQuery: "q=1"}}
		if _, err := guesthttp.Over(f).RoundTrip(req); err != nil || f.sentHead(t)["url"] != want {
			t.Errorf("%s: %s, %v", opaque, f.head, err)
		}
	}
}

// TestDeadline: the host hears how long there is, rounded up.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for d, want := range map[time.Duration]any{1: 1.0, time.Millisecond: 1.0, time.Millisecond + 1: 2.0,
			time.Hour: 3600_000.0, 0: nil} {
			f := &fake{reply: ok}
			c := &http.Client{Transport: guesthttp.Over(f), Timeout: d}
			if res, err := c.Get("https://h.example/"); err != nil || f.sentHead(t)["timeout_ms"] != want {
				t.Errorf("%v: %s, %v", d, f.head, err)
			} else if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestRefusals: errors of the host are what they were inside of a *url.Error.
func TestRefusals(t *testing.T) {
	for _, errno := range []abi.Errno{abi.EPROTO, abi.EINVAL, abi.ETOOBIG, abi.EDENIED, abi.ECANCELED, abi.ETIMEOUT,
		abi.EUNAVAIL, abi.ERATE, abi.EIO} {
		f := refuses(errno, "some_code")
		_, err := get(t, f)
		e, ok := errors.AsType[*guest.Error](err)
		if !errors.Is(err, errno) || !ok || e.Code != "some_code" {
			t.Errorf("%v: %#v", errno, err)
		}
		outer, ok := errors.AsType[*url.Error](err)
		if !ok || outer.Timeout() != (errno == abi.ETIMEOUT) {
			t.Errorf("%v: timeout %v", errno, ok && outer.Timeout())
		}
		if errors.Is(err, context.DeadlineExceeded) != (errno == abi.ETIMEOUT) ||
			errors.Is(err, context.Canceled) != (errno == abi.ECANCELED) {
			t.Errorf("%v is the wrong error of context", errno)
		}
		if f.closes != 0 {
			t.Errorf("%v: a handle was closed", errno)
		}
	}
}
