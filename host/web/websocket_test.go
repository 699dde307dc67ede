package web_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

// echo says what it hears, and "ended" to a channel when it has ended.
func echo(ended chan string) web.Route {
	return web.Route{Method: "GET", Path: "/v1/socket", Owner: true, Stream: true, Handle: func(c *fiber.Ctx) error {
		return web.Upgrade(c, 1<<10, func(ctx context.Context, s *web.Socket) {
			stop := context.AfterFunc(ctx, func() { s.Close(1001, "stopping") })
			defer stop()
			defer func() { ended <- "ended" }()
			for {
				binary, m, err := s.Read()
				switch {
				case err != nil:
					return
				case string(m) == "bye":
					s.Close(4410, "as asked")
				case string(m) == "panic":
					panic("in a socket")
				default:
					_ = s.Write(binary, m)
				}
			}
		})
	}}
}

// dial opens a socket with headers "Name: value".
func (s *site) dial(headers ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{}
	for _, x := range headers {
		name, value, _ := strings.Cut(x, ": ")
		h.Add(name, value)
	}
	d := websocket.Dialer{HandshakeTimeout: 2 * time.Minute}
	return d.Dial("ws://"+s.addr+"/v1/socket", h)
}

// A socket opens for a page of our own with an owner session, and for nobody
// else.
func TestSocketOrigin(t *testing.T) {
	ended := make(chan string, 100)
	s := serve(t, nil, echo(ended))
	own := "Origin: http://" + s.addr
	for _, c := range []struct {
		what    string
		headers []string
		status  int
		code    string
	}{
		{"a page of ours", []string{own, s.cookie()}, 101, ""},
		{"and says so twice", []string{own, s.cookie(), "Sec-Fetch-Site: same-origin"}, 101, ""},
		{"no origin", []string{s.cookie()}, 403, "origin_not_allowed"},
		{"no origin, a site", []string{s.cookie(), "Sec-Fetch-Site: same-origin"}, 403, "origin_not_allowed"},
		{"another origin", []string{"Origin: http://evil.example", s.cookie()}, 403, "origin_not_allowed"},
		{"another port", []string{"Origin: http://127.0.0.1:1", s.cookie()}, 403, "origin_not_allowed"},
		{"another scheme", []string{"Origin: https://" + s.addr, s.cookie()}, 403, "origin_not_allowed"},
		{"no page at all", []string{"Origin: null", s.cookie()}, 403, "origin_not_allowed"},
		{"another site", []string{own, s.cookie(), "Sec-Fetch-Site: same-site"}, 403, "origin_not_allowed"},
		{"another name", []string{own, s.cookie(), "Host: evil.example"}, 421, "host_not_allowed"},
		{"no session", []string{own}, 401, "unauthenticated"},
		{"a key", []string{own, s.bearer()}, 403, "forbidden"},
	} {
		conn, res, err := s.dial(c.headers...)
		if res == nil || res.StatusCode != c.status {
			t.Errorf("%s: %v %v", c.what, res, err)
			continue
		}
		if c.status != 101 {
			if b, _ := io.ReadAll(res.Body); !strings.Contains(string(b), `"`+c.code+`"`) {
				t.Errorf("%s: %s", c.what, b)
			}
			continue
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Sec-Websocket-Extensions") != "" {
			t.Errorf("%v", res.Header)
		}
		_ = conn.WriteMessage(websocket.BinaryMessage, []byte{1, 2, 3})
		if kind, m, err := conn.ReadMessage(); kind != websocket.BinaryMessage || string(m) != "\x01\x02\x03" {
			t.Errorf("%s: %d %x %v", c.what, kind, m, err)
		}
		conn.Close()
		<-ended
	}
	// What is no handshake is refused in the envelope of everything else.
	s.do("GET", "/v1/socket", "", s.cookie(), own).is(t, "no upgrade", 400, "validation_error")
	s.do("GET", "/v1/socket", "", s.cookie(), own, "Connection: Upgrade", "Upgrade: websocket").is(t, "no version",
		400, "validation_error")
	s.do("GET", "/v1/socket", "", s.cookie(), own, "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13").is(t, "no key", 400, "validation_error")
}

func closed(t *testing.T, conn *websocket.Conn, code int, reason string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for {
		_, _, err := conn.ReadMessage()
		if err == nil {
			continue
		}
		var c *websocket.CloseError
		if !errors.As(err, &c) || c.Code != code || c.Text != reason {
			t.Errorf("%v, want %d %s", err, code, reason)
		}
		return
	}
}

// How a socket ends: with a code of the server's, with one that is too long,
// with a panic, when the host stops; and a client that does not read is left.
func TestSocketEnds(t *testing.T) {
	ended := make(chan string, 100)
	s := serve(t, nil, echo(ended))
	open := func() *websocket.Conn {
		conn, _, err := s.dial("Origin: http://"+s.addr, s.cookie())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	say := func(conn *websocket.Conn, text string) {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Error(err)
		}
	}
	conn := open()
	say(conn, "bye")
	for range 50 { // what is still on its way does not swallow the goodbye
		_ = conn.WriteMessage(websocket.TextMessage, []byte("x"))
	}
	closed(t, conn, 4410, "as asked")
	<-ended

	conn = open()
	say(conn, strings.Repeat("x", 1<<10+1))
	closed(t, conn, websocket.CloseMessageTooBig, "")
	<-ended

	conn = open()
	say(conn, "panic")
	<-ended
	if _, _, err := conn.ReadMessage(); err == nil {
		t.Error("a socket outlives its panic")
	}
	if !strings.Contains(s.log.String(), "in a socket") {
		t.Error("the panic is not in the log")
	}

	conn = open()
	if err := conn.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-ended

	stalled := open()
	say(stalled, "hello")
	conn = open()
	go s.app.EndStreams(time.Minute)
	closed(t, conn, 1001, "stopping")
	<-ended
	<-ended
	if _, res, err := s.dial("Origin: http://"+s.addr, s.cookie()); err == nil || res == nil || res.StatusCode != 503 {
		t.Errorf("after the end: %v", err)
	}
}

// There are only so many sockets.
func TestSocketsAreFew(t *testing.T) {
	ended := make(chan string, 100)
	s := serve(t, nil, echo(ended))
	var open []*websocket.Conn
	for {
		conn, res, err := s.dial("Origin: http://"+s.addr, s.cookie())
		if err != nil {
			if res == nil || res.StatusCode != 429 {
				t.Fatalf("%v", err)
			}
			break
		}
		if open = append(open, conn); len(open) > 64 {
			t.Fatal("no end")
		}
	}
	if len(open) != 64 {
		t.Errorf("%d sockets", len(open))
	}
	for _, c := range open {
		c.Close()
		<-ended
	}
	for {
		conn, _, err := s.dial("Origin: http://"+s.addr, s.cookie())
		if err == nil {
			conn.Close()
			return
		}
	}
}

// A handshake whose connection ends before it is taken over gives its place back:
// else some dozens of them would be the end of all live views.
func TestSocketPlaces(t *testing.T) {
	ended, asked, gone := make(chan string, 100), make(chan bool), make(chan bool)
	route := echo(ended)
	open := route.Handle
	route.Handle = func(c *fiber.Ctx) error {
		asked <- true
		<-gone
		return open(c)
	}
	s := serve(t, nil, route)
	for range 70 { // more than there are places
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "GET /v1/socket HTTP/1.1\r\nHost: "+s.addr+"\r\nOrigin: http://"+s.addr+"\r\n"+s.cookie()+
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		<-asked
		if err := errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close()); err != nil { // a reset
			t.Fatal(err)
		}
		gone <- true
	}
	go func() { <-asked; gone <- true }()
	conn, res, err := s.dial("Origin: http://"+s.addr, s.cookie())
	if err != nil {
		t.Fatal(res, err)
	}
	_ = conn.Close()
	<-ended
}
