package web_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

func words(all ...string) func(context.Context, *bufio.Writer, net.Conn) {
	return func(_ context.Context, w *bufio.Writer, conn net.Conn) {
		for _, word := range all {
			_, _ = w.WriteString("data: " + word + "\n\n")
			if web.Flush(w, conn) != nil {
				return
			}
		}
	}
}

// TestStream: headers, body, the end of the connection, and no HEAD.
func TestStream(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/events", Stream: true, Handle: func(c *fiber.Ctx) error {
		return web.Stream(c, web.EventStream, words("one", "two"))
	}}, web.Route{Method: "GET", Path: "/v1/panic", Stream: true, Handle: func(c *fiber.Ctx) error {
		return web.Stream(c, web.EventStream, func(context.Context, *bufio.Writer, net.Conn) { panic("in a writer") })
	}}, web.Route{Method: "GET", Path: "/v1/x", Handle: ok})
	next := s.request("GET", "/v1/x", "", s.bearer())
	all := s.raw(s.request("GET", "/v1/events", "", s.bearer(), "Accept-Encoding: gzip") + next)
	if len(all) != 1 || all[0].Status != 200 || all[0].Body != "data: one\n\ndata: two\n\n" {
		t.Fatalf("%+v", all)
	}
	h := all[0].Header
	if h.Get("Content-Type") != "text/event-stream; charset=utf-8" ||
		h.Get("Cache-Control") != "no-cache, no-store, no-transform" ||
		h.Get("X-Accel-Buffering") != "no" || h.Get("Content-Encoding") != "" || h.Get("Etag") != "" {
		t.Errorf("headers %v", h)
	}
	// HEAD leaves the connection usable: the next answer is whole.
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for _, step := range []struct {
		request, method string
		status          int
	}{{s.request("HEAD", "/v1/events", "", s.bearer()), "HEAD", 405}, {next, "GET", 200}} {
		if _, err := io.WriteString(c, step.request); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, &http.Request{Method: step.method})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		if res.StatusCode != step.status || step.method == "HEAD" && (res.Header.Get("Allow") != "GET" || len(b) != 0) {
			t.Errorf("%s: %d, Allow %q, %q", step.method, res.StatusCode, res.Header.Get("Allow"), b)
		}
	}
	// A writer that panics ends its own stream only.
	if all := s.raw(s.request("GET", "/v1/panic", "", s.bearer())); len(all) != 1 || all[0].Body != "" {
		t.Errorf("%+v", all)
	}
	s.do("GET", "/v1/x", "", s.bearer()).is(t, "after a panic", 200, "")
	if !strings.Contains(s.log.String(), "in a writer") {
		t.Error("the panic is not in the log")
	}
}

// open begins a stream and returns its connection once the first bytes are there.
func (s *site) open(path string, headers ...string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, s.request("GET", path, "", headers...)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestStreamGone: a writer learns within a second that its client has gone, also
// when it writes nothing, and no request behind it is read.
func TestStreamGone(t *testing.T) {
	ended := make(chan struct{}, 1)
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/events", Stream: true, Handle: func(c *fiber.Ctx) error {
		return web.Stream(c, web.EventStream, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
			words("hello")(ctx, w, conn)
			<-ctx.Done()
			ended <- struct{}{}
		})
	}})
	for what, leave := range map[string]func(net.Conn){
		"closes": func(c net.Conn) { _ = c.Close() },
		"resets": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
		"writes": func(c net.Conn) { _, _ = c.Write([]byte("x")) },
	} {
		c := s.open("/v1/events", s.bearer())
		leave(c)
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: not noticed", what)
		}
	}
}

// TestStreamOfOld: a client of HTTP/1.0 gets the body without chunks.
func TestStreamOfOld(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/events", Stream: true, Handle: func(c *fiber.Ctx) error {
		return web.Stream(c, web.EventStream, words("one", "two"))
	}})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c,
		strings.Replace(s.request("GET", "/v1/events", "", s.bearer()), "HTTP/1.1", "HTTP/1.0", 1)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if head, body, _ := strings.Cut(string(all), "\r\n\r\n"); err != nil || body != "data: one\n\ndata: two\n\n" ||
		strings.Contains(head, "chunked") {
		t.Errorf("%q %v", all, err)
	}
}

// TestStreamLost: a stream whose connection breaks before it is taken over ends
// like any other, and holds up nobody.
func TestStreamLost(t *testing.T) {
	ended := make(chan struct{}, 1)
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/events", Stream: true, Handle: func(c *fiber.Ctx) error {
		_ = c.Context().Conn().Close()
		return web.Follow(c, web.EventStream, func(w *bufio.Writer, conn net.Conn) {
			if _, _ = w.WriteString("data: one\n\n"); web.Flush(w, conn) == nil {
				t.Error("a closed connection took a frame")
			}
			ended <- struct{}{}
		})
	}})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, s.request("GET", "/v1/events", "", s.bearer())); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the stream was never served")
	}
	s.app.EndStreams(time.Hour) // a stream that is counted as open outlives this test's deadline
}

// TestStreamMemory: a client that waits holds nothing of its request, so that
// 5,000 of them fit in 250 MB with all that stands above them.
func TestStreamMemory(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/events", Stream: true, Handle: func(c *fiber.Ctx) error {
		return web.Stream(c, web.EventStream, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
			words("hello")(ctx, w, conn)
			<-ctx.Done()
		})
	}})
	used := func() uint64 {
		runtime.GC()
		runtime.GC() // the first leaves what pools hold to the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	const clients = 150
	s.open("/v1/events", s.bearer())
	before := used()
	for range clients {
		s.open("/v1/events", s.bearer())
	}
	if each := (used() - before) / clients; each > 24<<10 {
		t.Errorf("a client that waits costs %d bytes", each)
	}
}

// TestStreamEnd: at the end new streams are refused, and those that there are end
// before the server does.
func TestStreamEnd(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/events", Stream: true, Handle: func(c *fiber.Ctx) error {
		return web.Stream(c, web.EventStream, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
			words("hello")(ctx, w, conn)
			<-ctx.Done()
			_, _ = w.WriteString("data: bye\n\n")
		})
	}}, web.Route{Method: "GET", Path: "/v1/x", Handle: ok})
	c := s.open("/v1/events", s.bearer())
	s.app.EndStreams(time.Minute)
	rest, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(rest), "data: bye") || !strings.HasSuffix(string(rest), "\r\n0\r\n\r\n") {
		t.Errorf("%q %v", rest, err)
	}
	s.do("GET", "/v1/events", "", s.bearer()).is(t, "a new stream", 503, "unavailable")
	s.do("GET", "/v1/x", "", s.bearer()).is(t, "another route", 200, "")
}

// TestRecheck: what a stream asks at every heartbeat knows of revoked keys, closed
// sessions, and lost scopes.
func TestRecheck(t *testing.T) {
	checks := make(chan func(context.Context) error, 1)
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/events", Scope: access.RunsRead, Stream: true,
		Handle: func(c *fiber.Ctx) error {
			checks <- web.Recheck(c)
			return ok(c)
		}})
	ctx := context.Background()
	s.do("GET", "/v1/events", "", "Authorization: Bearer "+s.reader).is(t, "key", 200, "")
	key := <-checks
	s.do("GET", "/v1/events", "", s.cookie(), "Sec-Fetch-Site: same-origin").is(t, "session", 200, "")
	session := <-checks
	if err := key(ctx); err != nil {
		t.Error(err)
	}
	if err := session(ctx); err != nil {
		t.Error(err)
	}
	keys, err := s.access.Keys.List(ctx, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if err := s.access.Keys.Revoke(ctx, k.KeyID); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.access.Sessions.Close(ctx, s.login.Cookie); err != nil {
		t.Fatal(err)
	}
	if err := key(ctx); err != access.ErrKeyRevoked {
		t.Errorf("revoked: %v", err)
	}
	if err := session(ctx); err != access.ErrUnauthenticated {
		t.Errorf("closed: %v", err)
	}
}
