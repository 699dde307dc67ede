package web_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

// TestClientGone: what is done for a client ends when that has gone, and not because it sends
// the next request already.
func TestClientGone(t *testing.T) {
	in, ended, answer := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	s := serve(t, nil, web.Route{Method: "GET", Path: "/v1/long", Handle: func(c *fiber.Ctx) error {
		ctx, done := web.ClientContext(c)
		defer done()
		in <- struct{}{}
		select {
		case <-ctx.Done():
			ended <- struct{}{}
		case <-answer:
		}
		return c.SendString("answered")
	}})
	begin := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, s.request("GET", "/v1/long", "", s.bearer())); err != nil {
			t.Fatal(err)
		}
		<-in
		return c
	}
	for what, leave := range map[string]func(net.Conn){
		"closes": func(c net.Conn) { _ = c.Close() },
		"resets": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
		"asks and": func(c net.Conn) {
			_, _ = io.WriteString(c, s.request("GET", "/v1/long", "", s.bearer()))
			_ = c.Close()
		},
	} {
		leave(begin())
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: not noticed", what)
		}
	}
	c := begin()
	if _, err := io.WriteString(c, s.request("GET", "/v1/long", "", s.bearer())); err != nil {
		t.Fatal(err)
	}
	answer <- struct{}{}
	<-in // the second, on the same connection
	answer <- struct{}{}
	select {
	case <-ended:
		t.Error("who asked twice was taken for gone")
	default:
	}
}
