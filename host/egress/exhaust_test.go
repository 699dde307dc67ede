package egress_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
)

// After 101 net/http hands the connection over and watches it no more.
func TestSwitchedProtocol(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until it is closed
		conn.Close()
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	if text, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
		frame(`{"method":"GET","url":"`+base+`"}`, "")); errno != abi.EUNAVAIL {
		t.Errorf("%v %s", errno, text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Every hop counts as a request, and the bytes of all bodies are counted as they arrive.
func TestRunLimits(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/loop" {
			http.Redirect(w, r, "/loop", http.StatusFound)
			return
		}
		_, _ = w.Write(make([]byte, 1<<20))
	})
	l := egress.DefaultLimits()
	l.RunRequests, l.RunBytes = 4, 3<<20
	_, err := get(client(t, egress.Options{Limits: l}, e), base+"/loop")
	if e := failure(t, err); e.Code != "request_limit" {
		t.Errorf("%+v", e)
	}
	c := client(t, egress.Options{Limits: l}, e)
	var open []*egress.Response
	for range 4 {
		r, err := get(c, base)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	var got int
	for _, r := range open {
		var b []byte
		b, err = io.ReadAll(r.Body)
		got += len(b)
		r.Body.Close()
	}
	if e := failure(t, err); e.Code != "receive_limit" || got > 3<<20 {
		t.Errorf("%d bytes, %+v", got, e)
	}
	c = client(t, egress.Options{Limits: l}, e)
	network.NewSession(c).Received().Add(3<<20 + 1) // what the run's browser brought
	_, err = get(c, base)
	if e := failure(t, err); e.Code != "receive_limit" {
		t.Errorf("%+v", e)
	}
}

// One layer is unpacked, however the layers are spelled.
func TestNestedCodings(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Encoding"] = []string{"gzip", "gzip"}
		_, _ = w.Write([]byte("x"))
	})
	_, err := get(client(t, egress.Options{}, e), base)
	if e := failure(t, err); e.Code != "unsupported_encoding" {
		t.Errorf("%+v", e)
	}
}

// A server of plain http cannot set what only a secure one may, and many
// subdomains cannot fill one host's requests.
func TestCookieRules(t *testing.T) {
	var sent string
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Cookie")
		for _, c := range []string{"__Host-a=1; Path=/", "__Secure-b=1", "plain=1"} {
			w.Header().Add("Set-Cookie", c)
		}
		for i := range 100 {
			w.Header().Add("Set-Cookie", fmt.Sprintf("c%d=%s", i, strings.Repeat("x", 300)))
		}
	})
	c := client(t, egress.Options{}, e)
	for range 2 {
		r, err := get(c, base)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	if strings.Contains(sent, "__") || !strings.Contains(sent, "plain=1") || strings.Count(sent, "=") > 50 {
		t.Errorf("%.200q has %d cookies", sent, strings.Count(sent, "="))
	}
}

// The limit on the length of a URL also holds for the target of a redirect.
func TestLongLocation(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Path+strings.Repeat("a", 3000)+"/x")
		w.WriteHeader(http.StatusFound)
	})
	_, err := get(client(t, egress.Options{}, e), base+"/")
	if e := failure(t, err); e.Code != "request_too_large" {
		t.Errorf("%+v", e)
	}
}

// A secret that was sent keeps the request at its origin, though a hop in
// between carried none, and a path that gives it back is not logged.
func TestSealedStays(t *testing.T) {
	elsewhere, elsewhereEntry := serve(t,
		func(http.ResponseWriter, *http.Request) { t.Error("followed to another origin") })
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/api/pass-word-1")
		if strings.HasSuffix(r.URL.Path, "-1") {
			w.Header().Set("Location", elsewhere)
		}
		w.WriteHeader(http.StatusSeeOther)
	})
	s := &egress.Seals{}
	s.Add("token", handle, "pass-word", [][]byte{[]byte("pass-word")},
		[]abi.Destination{{Origin: base, Placements: []string{"body"}}})
	var paths []string
	c := client(t, egress.Options{Seals: s, Audit: func(h egress.Hop) { paths = append(paths, h.Path) }}, e,
		elsewhereEntry)
	r, err := c.Do(t.Context(), &egress.Request{
		Method: "POST", URL: base + "/api", Redirect: "follow", Headers: [][2]string{{"Content-Type", "text/plain"}},
		Body: []byte(handle),
	})
	if err != nil || r.Status != http.StatusSeeOther || r.Redirects != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Body.Close()
	if diff := cmp.Diff([]string{"/api", "/api/slui…"}, paths); diff != "" {
		t.Error(diff)
	}
}

// Text made of nothing but secrets costs no more than its length.
func TestScrubDense(t *testing.T) {
	forms := map[string][]string{handle: {"pass"}}
	for i := range 500 {
		forms[fmt.Sprintf("sluice-sealed-v1-%026d", i)] = []string{fmt.Sprintf("pas%04d", i)}
	}
	done := make(chan int, 1)
	go func() {
		got, _ := io.ReadAll(egress.Scrub(bytes.NewReader(bytes.Repeat([]byte("pass"), 64<<10)), forms))
		done <- len(got)
	}()
	select {
	case n := <-done:
		if want := (64 << 10) * len(handle); n != want {
			t.Errorf("%d bytes, want %d", n, want)
		}
	case <-time.After(2 * time.Minute):
		t.Error("still at it")
	}
}

// A request that gives up waiting leaves its turn to others.
func TestTurnsComeBack(t *testing.T) {
	base, e := serve(t, func(http.ResponseWriter, *http.Request) {})
	const turn = 1000 * time.Second // of which none passes during the test
	g := egress.NewRateLimiter(egress.RateLimit{PerSecond: 0.001, Burst: 1, AtOnce: 4, LongestStop: time.Minute})
	impatient := client(t, egress.Options{RateLimiter: g}, e)
	r, err := get(impatient, base)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := impatient.Do(ctx, &egress.Request{Method: "GET", URL: base, Redirect: "follow", Wait: time.Hour,
			Waiting: func(string, time.Time) { cancel() }})
		if cancel(); failure(t, err).Errno != abi.ECANCELED {
			t.Fatal(err)
		}
	}
	_, err = client(t, egress.Options{RateLimiter: g}, e).Do(t.Context(),
		&egress.Request{Method: "GET", URL: base, Redirect: "follow", Wait: time.Millisecond})
	if e := failure(t, err); e.RetryAfter > turn.Milliseconds() {
		t.Errorf("another connection would wait %d ms", e.RetryAfter)
	}
}

// A server that accepts and says nothing holds no connection for longer
// than the request.
func TestSilentServers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	came, gone := make(chan struct{}, 1000), make(chan struct{}, 1000)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			came <- struct{}{}
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				conn.Close()
				gone <- struct{}{}
			}()
		}
	}()
	base := "https://" + l.Addr().String()
	c := client(t, egress.Options{}, entry(t, base, true))
	for len(came) < 5 { // a slow machine may end a request before it connects
		_, err := c.Do(t.Context(),
			&egress.Request{Method: "GET", URL: base, Redirect: "follow", Timeout: 50 * time.Millisecond})
		if e := failure(t, err); e.Code != "timeout" {
			t.Errorf("%+v", e)
		}
	}
	for range len(came) {
		select {
		case <-gone:
		case <-time.After(2 * time.Minute):
			t.Fatal("a connection outlives its request")
		}
	}
}

// Connections that only wait to be used again take no room from new ones.
func TestIdleMakesRoom(t *testing.T) {
	l := egress.DefaultLimits()
	l.Connections = 2
	var entries []egress.Entry
	var bases []string
	for range 5 {
		base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
		bases, entries = append(bases, base), append(entries, e)
	}
	c := client(t, egress.Options{Limits: l}, entries...)
	for _, base := range bases {
		r, err := c.Do(t.Context(), &egress.Request{Method: "GET", URL: base, Redirect: "follow", Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, r); got != "hello" {
			t.Error(got)
		}
	}
}

// A connector's own pace holds beside the host's, waiting is told, and takes
// nothing of the request's time, which is shorter than the wait.
func TestDeclaredPace(t *testing.T) {
	t.Parallel()
	base, e := serve(t, func(http.ResponseWriter, *http.Request) {})
	host := egress.DefaultRateLimit()
	if p := host.Declared(abi.Rate{PerSecond: 99, Burst: 99}); p != host {
		t.Errorf("a connector sped the host up: %+v", p)
	}
	own := egress.NewRateLimiter(host.Declared(abi.Rate{PerSecond: 0.25}))
	c := client(t, egress.Options{ConnectorLimiter: own}, e)
	var told []string
	for range 2 {
		r, err := c.Do(t.Context(),
			&egress.Request{Method: "GET", URL: base, Redirect: "follow", Timeout: 3500 * time.Millisecond, Wait: time.Minute,
				Waiting: func(origin string, until time.Time) {
					told = append(told, origin)
					if origin != "" && time.Until(until) > 5*time.Second {
						t.Errorf("told to wait until %v", until)
					}
				}})
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	if len(told) != 2 || told[0] != strings.TrimSuffix(base, "/") || told[1] != "" {
		t.Errorf("told %q; want the origin, then that it is over", told)
	}
}
