package egress_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

// names is a resolver that remembers what it was asked.
type names struct {
	answers map[string][]string

	mu    sync.Mutex
	asked []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host = strings.TrimSuffix(host, ".") // asked for as it is, without search domains
	n.asked = append(n.asked, host)
	var out []netip.Addr
	for _, a := range n.answers[host] {
		out = append(out, netip.MustParseAddr(a))
	}
	if out == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return out, nil
}

func (n *names) queries() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.asked...)
}

// quick is a pace that holds nobody back.
func quick() *egress.RateLimiter {
	return egress.NewRateLimiter(egress.RateLimit{PerSecond: 1e6, Burst: 1e6, AtOnce: 100, LongestStop: time.Minute})
}

func client(t *testing.T, o egress.Options, entries ...egress.Entry) *egress.Client {
	t.Helper()
	o.Policy = egress.NewPolicy(entries...)
	if o.RateLimiter == nil {
		o.RateLimiter = quick()
	}
	c, err := egress.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// entry reads an entry; private ones lead to this machine.
func entry(t *testing.T, text string, private bool) egress.Entry {
	t.Helper()
	e, err := egress.ParseEntry(text)
	if err != nil {
		t.Fatal(err)
	}
	e.Private = private
	return e
}

// serve starts a server of this machine and returns the entry that reaches it.
func serve(t *testing.T, h http.HandlerFunc) (base string, e egress.Entry) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, entry(t, s.URL, true)
}

func get(c *egress.Client, u string) (*egress.Response, error) {
	return c.Do(context.Background(), &egress.Request{Method: "GET", URL: u, Redirect: "follow"})
}

// failure is what a request failed with.
func failure(t *testing.T, err error) egress.Error {
	t.Helper()
	var e *egress.Error
	if !errors.As(err, &e) {
		t.Fatalf("want a *egress.Error, got %v", err)
	}
	return *e
}

func body(t *testing.T, r *egress.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGet(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Header.Get("X-Sent")+" "+r.Header.Get("User-Agent"))
		fmt.Fprintf(w, "%s %s", r.Method, r.URL)
	})
	var hops []egress.Hop
	c := client(t, egress.Options{Audit: func(h egress.Hop) { hops = append(hops, steady(h)) }}, e)
	r, err := c.Do(t.Context(),
		&egress.Request{Method: "GET", URL: base + "/a?secret=1#x", Headers: [][2]string{{"x-sent", "hello"}},
			Redirect: "follow"})
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, r); got != "GET /a?secret=1" || r.Status != 200 || r.Bytes != int64(len(got)) {
		t.Errorf("%q, %+v", got, r)
	}
	want := []egress.Hop{{Method: "GET", Origin: base, Path: "/a", Status: 200, Family: "ipv4"}} // No query
	if diff := cmp.Diff(want, hops); diff != "" {
		t.Error(diff)
	}
	for _, h := range r.Headers {
		if h[0] == "X-Seen" && h[1] != "hello sluice" {
			t.Errorf("the server saw %q", h[1])
		}
	}
}

// What is not approved is not even looked up.
func TestDenied(t *testing.T) {
	n := &names{answers: map[string][]string{"api.example.com": {"127.0.0.1"},
		"mixed.example.com": {"93.184.216.34", "10.0.0.1"}}}
	c := client(t, egress.Options{Resolver: n}, entry(t, "api.example.com", false), entry(t, "mixed.example.com", false),
		entry(t, "*.shop.example.com", false))
	for u, step := range map[string]string{
		"https://other.example.com/":      "host",
		"https://shop.example.com/":       "host",
		"https://127.0.0.1/":              "host",
		"https://[::ffff:7f00:1]/":        "host",
		"http://api.example.com/":         "scheme",
		"ftp://api.example.com/":          "scheme",
		"https://api.example.com:8443/":   "port",
		"https://api.example.com/":        "address",
		"https://mixed.example.com/":      "address",
		"https://API.example.COM.:443/x?": "address",
	} {
		t.Run(u, func(t *testing.T) {
			_, err := get(c, u)
			e := failure(t, err)
			if e.Errno != abi.EDENIED || e.Step != step {
				t.Errorf("%+v, want a denial of the %s", e, step)
			}
			if step == "address" && strings.Contains(e.Message, "127.0") || strings.Contains(e.Message, "10.0") {
				t.Errorf("the address is told: %s", e.Message)
			}
		})
	}
	for _, q := range n.queries() {
		if q != "api.example.com" && q != "mixed.example.com" {
			t.Errorf("%s was looked up", q)
		}
	}
}

// What is not an absolute https URL of a host is refused before any look-up.
func TestNoURL(t *testing.T) {
	c := client(t, egress.Options{Resolver: &names{}}, entry(t, "api.example.com", true))
	for _, u := range []string{
		"", "api.example.com", "//api.example.com/", "https:///x", "https://user@api.example.com/",
		"https://a:b@api.example.com/", "https://api.example.com\\@evil.example/", "https://api.example.com/ x",
		"https://api.example.com/\n", "https://api.example.com:0/", "https://api.example.com:99999/",
		"https://api.example.com:/", "https://127.1/", "https://0x7f.1/", "https://2130706433/", "https://127。0。0。1/",
		"https://[fe80::1%25lo]/", "https:api.example.com",
	} {
		_, err := get(c, u)
		if e := failure(t, err); e.Errno != abi.EINVAL {
			t.Errorf("%q: %+v", u, e)
		}
	}
	_, err := get(c, "https://api.example.com/"+strings.Repeat("a", 9000))
	if e := failure(t, err); e.Errno != abi.ETOOBIG {
		t.Errorf("%+v", e)
	}
}

// Every hop is checked anew, and what was meant for one origin stays there.
func TestRedirects(t *testing.T) {
	other, otherEntry := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s auth=%q type=%q cookie=%q body=%q", r.Method, r.Header.Get("Authorization"),
			r.Header.Get("Content-Type"), r.Header.Get("Cookie"), b)
	})
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(code)
			return
		}
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s auth=%q cookie=%q body=%q", r.Method, r.Header.Get("Authorization"), r.Header.Get("Cookie"), b)
	})
	c := client(t, egress.Options{}, e, otherEntry)
	do := func(q egress.Request) (*egress.Response, error) {
		q.Headers = [][2]string{{"Authorization", "Bearer x"}, {"Content-Type", "text/plain"}}
		q.Body = []byte("data")
		return c.Do(t.Context(), &q)
	}
	at := func(to string, code int) string {
		return fmt.Sprintf("%s/?code=%d&to=%s", base, code, url.QueryEscape(to))
	}
	for _, tt := range []struct{ name, method, url, want string }{
		{"same origin 307", "POST", at("/end", 307), `POST auth="Bearer x" cookie="session=1" body="data"`},
		{"same origin 303", "POST", at("/end", 303), `GET auth="Bearer x" cookie="session=1" body=""`},
		{"same origin 302 after POST", "POST", at("/end", 302), `GET auth="Bearer x" cookie="session=1" body=""`},
		// cookies go by host, not by port
		{"other origin 307", "POST", at(other, 307), `POST auth="" type="" cookie="session=1" body=""`},
		{"not followed without Location", "GET", at("", 302), `GET auth="Bearer x" cookie="session=1" body="data"`},
	} {
		r, err := do(egress.Request{Method: tt.method, URL: tt.url, Redirect: "follow"})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := body(t, r); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
	six := "/end"
	for range 6 {
		six = at(six, 302)
	}
	for _, tt := range []struct{ url, mode, step string }{
		{at("http://169.254.169.254/latest", 302), "follow", "host"},
		{at("https://evil.example/", 302), "follow", "host"},
		{at("file:///etc/passwd", 302), "follow", "scheme"},
		{at("/end", 302), "error", "redirect"},
		{six, "follow", "redirect"},
	} {
		_, err := do(egress.Request{Method: "GET", URL: tt.url, Redirect: tt.mode})
		if e := failure(t, err); e.Errno != abi.EDENIED || e.Step != tt.step {
			t.Errorf("%s: %+v", tt.url, e)
		}
	}
	r, err := do(egress.Request{Method: "GET", URL: at("/end", 302), Redirect: "manual"})
	if err != nil || r.Status != 302 {
		t.Fatal(r, err)
	}
	r.Body.Close()
}

// TLS is verified, HTTP/2 spoken, and nothing leads from https to http.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
			return
		}
		fmt.Fprint(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	port := s.Listener.Addr().(*net.TCPAddr).Port
	n := &names{answers: map[string][]string{"example.com": {"127.0.0.1"}, "wrong.example": {"127.0.0.1"}}}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	entries := []egress.Entry{
		entry(t, "example.com:"+strconv.Itoa(port), true), entry(t, "wrong.example:"+strconv.Itoa(port), true),
		entry(t, "http://example.com", true),
	}
	c := client(t, egress.Options{Resolver: n, TLS: &tls.Config{RootCAs: roots}}, entries...)
	r, err := get(c, fmt.Sprintf("https://example.com:%d/", port))
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, r); got != "HTTP/2.0" {
		t.Errorf("the server spoke %s", got)
	}
	_, err = get(c, fmt.Sprintf("https://example.com:%d/down", port))
	if e := failure(t, err); e.Step != "redirect" {
		t.Errorf("%+v", e)
	}
	_, err = get(c, fmt.Sprintf("https://wrong.example:%d/", port))
	if e := failure(t, err); e.Code != "tls_failed" {
		t.Errorf("%+v", e)
	}
	_, err = get(client(t, egress.Options{Resolver: n}, entries...), fmt.Sprintf("https://example.com:%d/", port))
	if e := failure(t, err); e.Code != "tls_failed" {
		t.Errorf("an unknown authority: %+v", e)
	}
}

// What the environment says about proxies is of no interest.
func TestNoProxy(t *testing.T) {
	var asked bool
	proxy, _ := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy)
	}
	base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "direct") })
	r, err := get(client(t, egress.Options{}, e), base)
	if err != nil || body(t, r) != "direct" || asked {
		t.Error(err, asked)
	}
}

// Bodies are bounded as they are received and as they unpack.
func TestBodies(t *testing.T) {
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gzip", "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			n := 1
			if r.URL.Path == "/bomb" {
				n = 30_000
			}
			for range n {
				_, _ = z.Write(make([]byte, 1000))
			}
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "?")
		case "/long":
			_, _ = w.Write(make([]byte, 5000))
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/lie":
			w.Header().Set("Content-Length", "9000000000")
			_, _ = w.Write([]byte("x"))
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
		}
	})
	c := client(t, egress.Options{}, e)
	for _, tt := range []struct {
		path string
		most int64
		size int
		code string
	}{
		{"/gzip", 0, 1000, ""}, {"/bomb", 0, 0, "response_too_large"}, {"/br", 0, 0, "unsupported_encoding"},
		{"/long", 0, 5000, ""}, {"/long", 5000, 5000, ""}, {"/long", 4999, 0, "response_too_large"},
		{"/endless", 1 << 20, 0, "response_too_large"}, {"/lie", 0, 0, "response_too_large"}, {"/short", 0, 0, "broken_off"},
	} {
		r, err := c.Do(t.Context(),
			&egress.Request{Method: "GET", URL: base + tt.path, Redirect: "follow", MaxBytes: tt.most})
		var got []byte
		if err == nil {
			got, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		switch {
		case tt.code == "" && (err != nil || len(got) != tt.size):
			t.Errorf("%s at most %d: %d bytes, %v", tt.path, tt.most, len(got), err)
		case tt.code != "" && failure(t, err).Code != tt.code:
			t.Errorf("%s at most %d: %v, want %s", tt.path, tt.most, err, tt.code)
		}
	}
}

// A server that drips is given up.
func TestDrip(t *testing.T) {
	stop := make(chan struct{})
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = w.Write([]byte("."))
				_ = http.NewResponseController(w).Flush()
			case <-stop:
				return
			case <-r.Context().Done():
				return
			}
		}
	})
	t.Cleanup(func() { close(stop) })
	l := egress.DefaultLimits()
	l.FloorWindow = 300 * time.Millisecond
	r, err := get(client(t, egress.Options{Limits: l}, e), base)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(r.Body)
	if e := failure(t, err); e.Code != "too_slow" {
		t.Errorf("%+v", e)
	}
	r.Body.Close()
	c := client(t, egress.Options{}, e)
	for limit := 200 * time.Millisecond; ; limit *= 2 { // enough for the head on the slowest machine
		if r, err = c.Do(t.Context(),
			&egress.Request{Method: "GET", URL: base, Redirect: "follow", Timeout: limit}); err == nil {
			break
		} else if failure(t, err).Code != "timeout" {
			t.Fatal(err)
		}
	}
	_, err = io.ReadAll(r.Body)
	if e := failure(t, err); e.Code != "timeout" || e.Errno != abi.ETIMEOUT {
		t.Errorf("%+v", e)
	}
	r.Body.Close()
}

// frame is a request as guests send it.
func frame(head string, body string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	return append(append(b, head...), body...)
}

// The frame of a request, and headers that are refused.
func TestParseRequest(t *testing.T) {
	for head, want := range map[string]abi.Errno{
		`{"method":"GET","url":"https://a.example/"}`:                                        abi.OK,
		`{"method":"GET","url":"https://a.example/","headers":[["Accept","x"]],"wait_ms":5}`: abi.OK,
		`{"method":"get","url":"x"}`:                                                         abi.EDENIED,
		`{"method":"CONNECT","url":"x"}`:                                                     abi.EDENIED,
		`{"method":"GET","url":"x","headers":[["Host","x"]]}`:                                abi.EDENIED,
		`{"method":"GET","url":"x","headers":[["cookie","x"]]}`:                              abi.EDENIED,
		`{"method":"GET","url":"x","headers":[["Proxy-Auth","x"]]}`:                          abi.EDENIED,
		`{"method":"GET","url":"x","headers":[["Sec-Fetch-Mode","x"]]}`:                      abi.EDENIED,
		`{"method":"GET","url":"x","headers":[["a","b\r\nc"]]}`:                              abi.EINVAL,
		`{"method":"GET","url":"x","headers":[["a b","c"]]}`:                                 abi.EINVAL,
		`{"method":"GET","url":"x","headers":[["a"]]}`:                                       abi.EINVAL,
		`{"method":"GET","url":"x","headers":{}}`:                                            abi.EINVAL,
		`{"method":"GET","url":"x","timeout_ms":0}`:                                          abi.EINVAL,
		`{"method":"GET","url":"x","max_bytes":"1"}`:                                         abi.EINVAL,
		`{"method":"GET","url":"x","redirect":"always"}`:                                     abi.EINVAL,
		`{"method":"GET","url":1}`:                                                           abi.EINVAL,
		`{"method":"GET","method":"GET","url":"x"}`:                                          abi.EINVAL,
		`[]`: abi.EINVAL,
		``:   abi.EINVAL,
	} {
		q, err := egress.ParseRequest(frame(head, "body"), egress.DefaultLimits())
		if want == abi.OK {
			if err != nil || string(q.Body) != "body" {
				t.Errorf("%s: %v", head, err)
			}
			continue
		}
		if e := failure(t, err); e.Errno != want {
			t.Errorf("%s: %+v, want errno %d", head, e, want)
		}
	}
	many := strings.Repeat(`["a","b"],`, 64) + `["a","b"]`
	_, err := egress.ParseRequest(frame(`{"method":"GET","url":"x","headers":[`+many+`]}`, ""), egress.DefaultLimits())
	if e := failure(t, err); e.Errno != abi.ETOOBIG {
		t.Errorf("%+v", e)
	}
	for _, b := range [][]byte{nil, {1}, {255, 255, 255, 255}, {5, 0, 0, 0, 'x'}} {
		if _, err := egress.ParseRequest(b, egress.DefaultLimits()); failure(t, err).Errno != abi.EINVAL {
			t.Errorf("%v: %v", b, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add(frame(`{"method":"GET","url":"https://a.example/","headers":[["Accept","x"]],"timeout_ms":5}`, "body"))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := egress.ParseRequest(b, egress.DefaultLimits())
		if err != nil {
			failure(t, err)
			return
		}
		if q.Timeout < 0 || q.Wait < 0 || q.MaxBytes < 0 || len(q.Headers) > 64 {
			t.Errorf("%+v", q)
		}
	})
}
