package web_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// deadlined is a connection that remembers its write deadline.
type deadlined struct {
	net.Conn
	mu   sync.Mutex
	at   time.Time
	when []time.Time // the deadline of each write
}

func (d *deadlined) SetWriteDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = at
	return d.Conn.SetWriteDeadline(at)
}

func (d *deadlined) Write(b []byte) (int, error) {
	d.mu.Lock()
	d.when = append(d.when, d.at)
	d.mu.Unlock()
	return d.Conn.Write(b)
}

// Whoever stops to read an answer loses it after a while that grows with its
// size, and no later answer on the connection meets that deadline.
func TestStalledReader(t *testing.T) {
	const size = 1 << 20
	s := serve(t, nil, web.Route{Method: "GET", Path: "/large", Open: true, Handle: func(c *fiber.Ctx) error {
		return c.SendString(strings.Repeat("x", size))
	}})
	theirs, ours := net.Pipe()
	conn := &deadlined{Conn: ours}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.app.Fiber().Server().ServeConn(conn) }) // an end is an error of pipes
	in := bufio.NewReader(theirs)
	began := time.Now()
	for range 2 {
		if _, err := io.WriteString(theirs, s.request("GET", "/large", "")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	theirs.Close()
	serving.Wait()
	least, most := began.Add(web.WriteDeadline+size/(16<<10)*time.Second),
		time.Now().Add(web.WriteDeadline+(1+size/(16<<10))*time.Second)
	if len(conn.when) < 2 {
		t.Fatalf("%d writes", len(conn.when))
	}
	for _, at := range conn.when {
		if at.Before(least) || at.After(most) {
			t.Errorf("deadline %v, want %v to %v", at, least, most)
		}
	}
	if !conn.at.IsZero() {
		t.Errorf("an idle connection has the deadline %v", conn.at)
	}
}

// Large bodies are held whole, so few are at one time; the place is given back.
func TestUploadsAtOnce(t *testing.T) {
	reading, goOn := make(chan struct{}), make(chan struct{})
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/upload", Scope: access.ConnectorsManage, Upload: true,
		Handle: func(c *fiber.Ctx) error {
			if _, err := web.RawBody(c); err != nil {
				return err
			}
			if c.Query("wait") != "" {
				reading <- struct{}{}
				<-goOn
			}
			return web.Nothing(c)
		}})
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			s.do("POST", "/v1/upload?wait=1", "x", s.bearer(), "Content-Type: application/wasm").is(t, "one of few", 204, "")
		})
		<-reading
	}
	a := s.do("POST", "/v1/upload", "x", s.bearer(), "Content-Type: application/wasm")
	a.is(t, "one too many", 429, "rate_limited")
	if a.Header.Get("Retry-After") != "1" || a.Error.Details["scope"] != "global" {
		t.Errorf("%v %s", a.Header, a.Body)
	}
	close(goOn)
	waiting.Wait()
	for range 10 {
		s.do("POST", "/v1/upload", "x", s.bearer(), "Content-Type: application/wasm").is(t, "afterwards", 204, "")
	}
}

// A header that an open route does not look at buys no requests.
func TestOpenRate(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "GET", Path: "/open", Open: true, Handle: ok})
	request := s.request("GET", "/open", "", "Authorization: Bearer x")
	limited := 0
	for _, a := range s.raw(strings.Repeat(request, 201)) {
		if a.Status == 429 {
			limited++
		}
	}
	if limited != 1 {
		t.Errorf("%d of 201 requests were too many", limited)
	}
}

// RFC 9112 section 6.3: a request with two lengths is refused, and nothing behind
// it is taken for another.
func TestTwoLengths(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/x", Scope: access.RunsRead, Handle: ok})
	for _, names := range [][2]string{{"Content-Length", "Transfer-Encoding"}, {"content-length", "transfer-encoding"},
		{"CONTENT-LENGTH", "Transfer-encoding"}} {
		for _, lengths := range []string{names[0] + ": 5\r\n" + names[1] + ": chunked\r\n",
			names[1] + ": chunked\r\n" + names[0] + ": 5\r\n"} {
			all := s.raw("POST /v1/x HTTP/1.1\r\n" + lengths + "Host: " + s.addr + "\r\n" + s.bearer() + "\r\n\r\n0\r\n\r\n" +
				s.request("POST", "/v1/x", "", s.bearer()))
			if len(all) != 1 {
				t.Fatalf("%d answers", len(all))
			}
			all[0].is(t, lengths, 400, "validation_error")
		}
	}
	all := s.raw("POST /v1/x HTTP/1.1\r\nHost: " + s.addr + "\r\n" + s.bearer() +
		"\r\nX-Note: content-length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if len(all) != 1 || all[0].Status >= 400 {
		t.Errorf("a chunked body: %+v", all)
	}
}
