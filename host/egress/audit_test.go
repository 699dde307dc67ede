package egress_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/egress"
)

// steady is a hop without what differs from one time to the next.
func steady(h egress.Hop) egress.Hop {
	h.Began, h.Took, h.Received = time.Time{}, 0, 0
	return h
}

// One line a hop, with the bytes each way, once it is over.
func TestHops(t *testing.T) {
	const size = 100_000
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/plain?token=x", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, size))
			_ = z.Close()
		default:
			_, _ = io.WriteString(w, strings.Repeat("x", size))
		}
	})
	var hops []egress.Hop
	c := client(t, egress.Options{Audit: func(h egress.Hop) { hops = append(hops, h) }}, e)
	hop := func(path string, status int, refused string) egress.Hop {
		return egress.Hop{Method: "GET", Origin: base, Path: path, Status: status, Refused: refused, Family: "ipv4"}
	}
	away := egress.Hop{Method: "GET", Origin: "https://elsewhere.example.com", Path: "/", Refused: "host_denied"}
	for _, tt := range []struct {
		path        string
		most, read  int64
		want        []egress.Hop
		least, high int64 // received with the last
	}{
		{"/plain?q=1", 0, size, []egress.Hop{hop("/plain", 200, "")}, size, size + 1000},
		{"/plain", 0, 10, []egress.Hop{hop("/plain", 200, "")}, 10, size + 1000},
		{"/plain", 10, size, []egress.Hop{hop("/plain", 200, "response_too_large")}, 1, 1000},
		{"/packed", 10, size, []egress.Hop{hop("/packed", 200, "response_too_large")}, 1, 1000},
		{"/packed", 0, size, []egress.Hop{hop("/packed", 200, "")}, 100, 1000},
		{"/moved", 0, size, []egress.Hop{hop("/moved", 302, ""), hop("/plain", 200, "")}, size, size + 1000},
		{"/away", 0, 0, []egress.Hop{hop("/away", 302, ""), away}, 0, 0},
	} {
		hops = nil
		began := time.Now()
		r, err := c.Do(t.Context(),
			&egress.Request{Method: "GET", URL: base + tt.path, Redirect: "follow", MaxBytes: tt.most})
		if err == nil {
			before := len(hops)
			_, _ = io.CopyN(io.Discard, r.Body, tt.read)
			if len(hops) != before || len(hops) != len(tt.want)-1 {
				t.Errorf("%s: told before it was over", tt.path)
			}
			for range 2 {
				if err := r.Body.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		var got []egress.Hop
		for _, h := range hops {
			got = append(got, steady(h))
			if h.Began.Before(began) || h.Took < 0 || h.Took > time.Minute {
				t.Errorf("%s: %+v", tt.path, h)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Fatalf("%s: %s", tt.path, diff)
		}
		if n := hops[len(hops)-1].Received; n < tt.least || n > tt.high {
			t.Errorf("%s: %d bytes received, want %d to %d", tt.path, n, tt.least, tt.high)
		}
	}
	hops = nil
	r, err := c.Do(t.Context(),
		&egress.Request{Method: "POST", URL: base + "/plain", Redirect: "follow", Body: []byte("12345")})
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if len(hops) != 1 || hops[0].Sent != 5 {
		t.Errorf("%+v", hops)
	}
}

// The family is that of the connection that was made.
func TestFamily(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0") // a machine without IPv6
	}
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	want := "ipv4"
	if strings.Contains(s.URL, "[::1]") {
		want = "ipv6"
	}
	got := ""
	c := client(t, egress.Options{Audit: func(h egress.Hop) { got = h.Family }}, entry(t, s.URL, true))
	r, err := get(c, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
