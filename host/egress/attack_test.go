package egress_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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
	"github.com/sluicehost/sluice/host/network"
)

// raw starts a server of this machine that speaks for itself on every
// connection, which ends when speak returns.
func raw(t *testing.T, speak func(net.Conn)) (base string, e egress.Entry) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() {
				defer c.Close()
				speak(c)
			})
		}
	})
	base = "http://" + l.Addr().String()
	return base, entry(t, base, true)
}

// hear reads one request off a connection, without its body.
func hear(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) }

// flood writes a piece until nobody takes it.
func flood(c net.Conn, piece string) {
	for {
		if _, err := io.WriteString(c, piece); err != nil {
			return
		}
	}
}

// No spelling of a host leads anywhere else. The entry is for a
// public name; what was looked up must be that name.
func TestSpellings(t *testing.T) {
	var hosts []string
	for _, at := range []string{
		"127.0.0.1", "127.1", "0", "0.0.0.0", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.0.0.1.",
		"127.0.0.01", "127.0.1", "1.1", "0x7f.0.0.0x1", "017700000001", "127.0.0.0x1", "００.0.0.0", "127。0。0。1",
		"127．0．0．1", "①②⑦.0.0.1", "localhost", "LOCALHOST", "localhost.", "foo.localhost", "ⓛocalhost",
		"169.254.169.254", "metadata.google.internal", "metadata", "nas.local", "[::]", "[::1]", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]",
		"[fc00::1]", "[::1%25lo]", "[::1%lo]", "::1", "[::1", "::1]", "[127.0.0.1]", "10.0.0.1", "192.168.1.1", "100.64.0.1",
		"evil.example", "api.example.com.evil.example", "evil-api.example.com", "xapi.example.com", "api.example.comx",
		"api.example.com..", ".api.example.com", "api..example.com", "api.example.com%00", "api.example.com%2eevil.example",
		"api.example.com%09", "api%2eexample.com", "api.example.com,evil.example", "api.example.com;evil.example",
		"api.example.com|evil", "api.example.com^", "api_x.example.com", "-api.example.com", "api.example.com-",
		"аpi.example.com", "xn--pi-8cd.example.com", "*.example.com", "*", "api\u00ad.example.com.evil.example",
		"api.example.com@evil.example", "evil.example@api.example.com", "a:b@api.example.com", "@api.example.com",
		":@api.example.com", "api.example.com:443@evil.example", "api.example.com:@evil.example",
		"api.example.com\\@evil.example", "evil.example\\.api.example.com", "api.example.com#@evil.example/",
		"evil.example#api.example.com", "evil.example?api.example.com", "evil.example/api.example.com", "api.example.com:80",
		"api.example.com:0", "api.example.com:65979", "api.example.com:443:443", "api.example.com:+443", "api.example.com:-1",
		"api.example.com:443x", "api.example.com:４４３", "api.example.com:0x1bb", "api.example.com: 443",
	} {
		hosts = append(hosts, "https://"+at+"/", "http://"+at+"/", "HTTPS://"+at, "https:\\\\"+at+"/", "https:///"+at,
			"//"+at+"/", "https:"+at, "https:/"+at+"/")
	}
	hosts = append(hosts, "javascript:1", "file:///etc/passwd", "ws://api.example.com/", "wss://api.example.com/",
		"unix:///run/x", "h2c://api.example.com/",
		"https+unix://api.example.com/", "blob:https://api.example.com/", "view-source:https://api.example.com/",
		"\thttps://api.example.com/", "https\n://api.example.com/")
	n := &names{answers: map[string][]string{"api.example.com": {"127.0.0.1"}}}
	c := client(t, egress.Options{Resolver: n}, entry(t, "api.example.com", false))
	for _, u := range hosts {
		_, err := get(c, u)
		e := failure(t, err)
		if e.Errno != abi.EDENIED && e.Errno != abi.EINVAL {
			t.Errorf("%q: %+v", u, e)
		}
	}
	for _, q := range n.queries() {
		if q != "api.example.com" {
			t.Errorf("%s was looked up", q)
		}
	}
}

// Whatever a resolver says, and however its answers change, one forbidden
// address is enough and none is told.
func TestResolvers(t *testing.T) {
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprintf("93.184.216.%d", i)
	}
	for name, answers := range map[string][]string{
		"loopback last": {"93.184.216.34", "127.0.0.1"}, "loopback first": {"127.0.0.1", "93.184.216.34"},
		"mapped": {"::ffff:127.0.0.1"}, "nat64": {"64:ff9b::7f00:1"}, "6to4": {"2002:7f00:1::"}, "compatible": {"::7f00:1"},
		"zone": {"fe80::1%lo"}, "public with a zone": {"2606:4700::1%lo"}, "this network": {"0.0.0.0"}, "any": {"::"},
		"carrier": {"100.64.0.1"}, "broadcast": {"255.255.255.255"}, "multicast": {"ff02::1"},
		"metadata": {"169.254.169.254"}, "too many": many, "none": {},
	} {
		n := &names{answers: map[string][]string{"api.example.com": answers}}
		_, err := get(client(t, egress.Options{Resolver: n}, entry(t, "api.example.com", false)), "https://api.example.com/")
		e := failure(t, err)
		if want := name == "too many" || name == "none"; (e.Step != "address") != want {
			t.Errorf("%s: %+v", name, e)
		}
		for _, a := range answers {
			if strings.Contains(e.Message, a) {
				t.Errorf("%s: the address is told: %s", name, e.Message)
			}
		}
		if got := n.queries(); len(got) != 1 {
			t.Errorf("%s: %d look-ups", name, len(got))
		}
	}
}

// An address of this machine is refused, although the table allows it.
func TestOwnAddress(t *testing.T) {
	own := netip.MustParseAddr("93.184.216.34")
	n := &names{answers: map[string][]string{"api.example.com": {own.String()},
		"mapped.example.com": {"::ffff:93.184.216.34"}}}
	c := client(t, egress.Options{Resolver: n,
		Table: &egress.Table{Own: func() []netip.Addr { return []netip.Addr{own} }}},
		entry(t, "api.example.com", false), entry(t, "mapped.example.com", false))
	for _, u := range []string{"https://api.example.com/", "https://mapped.example.com/"} {
		if _, err := get(c, u); failure(t, err).Step != "address" {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// Where a redirect must not lead.
func TestRedirectSpellings(t *testing.T) {
	var reached []string
	_, other := serve(t, func(_ http.ResponseWriter, r *http.Request) { reached = append(reached, r.Host) })
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header()["Location"] = []string{to}
			w.WriteHeader(http.StatusFound)
		}
	})
	port := strconv.Itoa(int(other.Port))
	c := client(t, egress.Options{}, e)
	for _, to := range []string{
		"http://127.0.0.1:" + port, "//127.0.0.1:" + port, "///127.0.0.1:" + port, "http://localhost:" + port,
		"http://[::ffff:127.0.0.1]:" + port, "http://127.1:" + port, "http://2130706433:" + port, "http://0:" + port,
		"\\\\127.0.0.1:" + port, "/\\127.0.0.1:" + port, "http:\\\\127.0.0.1:" + port, "http://a@127.0.0.1:" + port,
		"http:127.0.0.1:" + port, "http:///127.0.0.1:" + port, "https://127.0.0.1:" + port, "HTTP://127.0.0.1:" + port,
		base[len("http:"):] + "@127.0.0.1:" + port, "file:///etc/passwd", "gopher://127.0.0.1:" + port, "data:,x",
		"about:blank", "http:", "http://", "http://%31%32%37.0.0.1:" + port, "http://127.0.0.1%3a" + port,
		"http://127.0.0.1:" + port + "\t", "ftp:" + base[len("http:"):],
	} {
		r, err := get(c, base+"/?to="+url.QueryEscape(to))
		if err == nil { // a path of the same server
			if !strings.HasPrefix(r.URL, base+"/") {
				t.Errorf("%q led to %s", to, r.URL)
			}
			r.Body.Close()
			continue
		}
		if e := failure(t, err); e.Errno != abi.EDENIED && e.Errno != abi.EINVAL {
			t.Errorf("%q: %+v", to, e)
		}
	}
	if reached != nil {
		t.Errorf("requests for %q reached another server", reached)
	}
}

// What was meant for one origin does not come back with a redirect to it
// by way of another.
func TestRedirectBack(t *testing.T) {
	var back string
	var aBase string
	bBase, b := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, aBase+"/end", http.StatusTemporaryRedirect)
	})
	aBase, a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			body, _ := io.ReadAll(r.Body)
			back = r.Method + r.Header.Get("Authorization") + string(body)
			return
		}
		http.Redirect(w, r, bBase, http.StatusTemporaryRedirect)
	})
	r, err := client(t, egress.Options{}, a, b).Do(t.Context(), &egress.Request{
		Method: "POST", URL: aBase, Redirect: "follow", Body: []byte("data"),
		Headers: [][2]string{{"AUTHORIZATION", "Bearer x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if back != "POST" {
		t.Errorf("the first server saw %q", back)
	}
}

// Nothing in a header makes two requests of one, or changes its frame.
func TestSmuggling(t *testing.T) {
	for _, h := range [][2]string{
		{"Content-Length", "0"}, {"content-length", "0"}, {"Transfer-Encoding", "chunked"}, {"TRANSFER-ENCODING", "x"},
		{"Connection", "close"}, {"Upgrade", "h2c"}, {"Host", "evil.example"}, {"Te", "trailers"}, {"Trailer", "X"},
		{"Expect", "100-continue"}, {"Cookie", "a=b"}, {"Accept-Encoding", "br"}, {"Proxy-Authorization", "x"},
		{"Keep-Alive", "x"}, {"Sec-Fetch-Site", "none"},
		{"Transfer_Encoding", "chunked"}, {"Content_Length", "0"}, {"Proxy_Authorization", "x"}, // to CGI it is the same
		{"X-Forwarded-Host", "evil.example"}, {"x-forwarded-proto", "http"}, {"X_Forwarded_Host", "evil.example"},
		{"Forwarded", "host=evil.example"},
		// Another place than was asked about
		{"X-Original-URL", "/admin"}, {"X-Rewrite-URL", "/admin"}, {"X-Host", "evil.example"}, {"HTTP2-Settings", "AAMAAABk"},
		{"X\r\nHost", "x"}, {"X: y\r\nHost", "x"}, {"X ", "x"}, {" X", "x"}, {"X\t", "x"}, {"X:", "x"}, {":path", "/x"},
		{":authority", "x"}, {"", "x"}, {"X\u0000", "x"}, {"Hoſt", "x"}, {"Transfer\u2010Encoding", "x"}, {"X", "a\r\nb"},
		{"X", "a\nb"}, {"X", "a\rb"}, {"X", "a\u0000b"}, {"X", "a\u007fb"}, {"X", "a\u000bb"},
		{"X", "a\r\n\r\nGET / HTTP/1.1"},
	} {
		pair, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		head := `{"method":"GET","url":"https://a.example/","headers":[` + string(pair) + `]}`
		_, err = egress.ParseRequest(frame(head, ""), egress.DefaultLimits())
		if err == nil {
			t.Errorf("%q is taken", h)
			continue
		}
		if e := failure(t, err); e.Errno != abi.EDENIED && e.Errno != abi.EINVAL {
			t.Errorf("%q: %+v", h, e)
		}
	}
	for _, m := range []string{"CONNECT", "TRACE", "get", "GET ", " GET", "GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nGET",
		"PRI", "MKCOL", "PROPPATCH", "propfind", ""} {
		_, err := egress.ParseRequest(frame(`{"method":"`+m+`","url":"https://a.example/"}`, ""), egress.DefaultLimits())
		if e := failure(t, err); e.Step != "method" {
			t.Errorf("%q: %+v", m, e)
		}
	}
}

// What a URL holds stays in the request line.
func TestRequestLine(t *testing.T) {
	var lines []string
	base, e := raw(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			lines = append(lines, err.Error())
			return
		}
		lines = append(lines, r.RequestURI+" of "+r.Host)
		_, _ = io.WriteString(c, "HTTP/1.1 204 x\r\nConnection: close\r\n\r\n")
	})
	c := client(t, egress.Options{}, e)
	host := strings.TrimPrefix(base, "http://")
	var want []string
	for _, tt := range [][2]string{
		{"", "/"}, {"//evil.example/x", "//evil.example/x"}, {"/%0d%0aX:y", "/%0d%0aX:y"},
		{"/a?b=%0d%0a", "/a?b=%0d%0a"}, {"/a#b", "/a"}, {"?http://evil.example/", "/?http://evil.example/"},
		{"/%2e%2e/", "/%2e%2e/"}, {"/ä", "/%C3%A4"}, {"/*", "/*"},
	} {
		r, err := get(c, base+tt[0])
		if err != nil {
			t.Fatal(tt[0], err)
		}
		r.Body.Close()
		want = append(want, tt[1]+" of "+host)
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// Servers that send what no server should. Each ends in an error of
// the contract, soon.
func TestHostileServers(t *testing.T) {
	gz := func(mangle func(*bytes.Buffer)) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Name, z.Extra = strings.Repeat("n", 400), make([]byte, 60_000)
		_, _ = z.Write([]byte("data"))
		_ = z.Close()
		mangle(&b)
		return fmt.Sprintf("HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", b.Len(), b.String())
	}
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) { hear(c); _, _ = io.WriteString(c, text) }
	}
	pour := func(head, piece string) func(net.Conn) {
		return func(c net.Conn) { hear(c); _, _ = io.WriteString(c, head); flood(c, piece) }
	}
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	// Only the silent servers meet a limit of time, each one of its own.
	hasty := map[string]func(*egress.Limits){
		"no answer":         func(l *egress.Limits) { l.Headers = 300 * time.Millisecond },
		"half a header":     func(l *egress.Limits) { l.Headers = 300 * time.Millisecond },
		"a body that stops": func(l *egress.Limits) { l.FloorWindow = 300 * time.Millisecond },
	}
	for _, tt := range []struct {
		name  string
		speak func(net.Conn)
		codes string
	}{
		{"no answer", silent, "timeout"},
		{"half a header", func(c net.Conn) { hear(c); _, _ = io.WriteString(c, "HTTP/1.1 200 x\r\nA: "); silent(c) },
			"timeout"},
		{"closed at once", func(net.Conn) {}, "unreachable"},
		{"no HTTP", say("SSH-2.0-x\r\n\r\n"), "unreachable"},
		{"endless header", pour("HTTP/1.1 200 x\r\nA: ", strings.Repeat("a", 4096)), "unreachable"},
		{"endless headers", pour("HTTP/1.1 200 x\r\n", "A: b\r\n"), "unreachable"},
		{"endless status line", pour("HTTP/1.1 200 ", strings.Repeat("a", 4096)), "unreachable"},
		{"1xx for ever", pour("", "HTTP/1.1 103 x\r\nLink: y\r\n\r\n"), "broken_answer"},
		{"two lengths", say("HTTP/1.1 200 x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), "unreachable"},
		{"negative length", say("HTTP/1.1 200 x\r\nContent-Length: -1\r\n\r\n"), "unreachable"},
		{"huge length", say("HTTP/1.1 200 x\r\nContent-Length: 9223372036854775807\r\n\r\n"), "response_too_large"},
		{"overflowing length", say("HTTP/1.1 200 x\r\nContent-Length: 99999999999999999999\r\n\r\n"), "unreachable"},
		{"unknown transfer coding", say("HTTP/1.1 200 x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), "unreachable"},
		{"chunk length overflows", say("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
			"broken_off"},
		{"chunk of endless length", pour("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", "0"), "broken_off"},
		{"endless chunk extension", pour("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", 4096)),
			"broken_off"},
		{"tiny chunks with extensions",
			pour("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", "1;"+strings.Repeat("x", 2000)+"\r\na\r\n"),
			"broken_off"},
		{"endless trailers", pour("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n"), "broken_off"},
		{"a body that stops", func(c net.Conn) { hear(c); _, _ = io.WriteString(c, "HTTP/1.1 200 x\r\n\r\nabc"); silent(c) },
			"too_slow"},
		{"gzip cut off", say(gz(func(b *bytes.Buffer) { b.Truncate(b.Len() - 6) })), "broken_off"},
		{"gzip with a wrong sum", say(gz(func(b *bytes.Buffer) { b.Bytes()[b.Len()-8] ^= 1 })), "broken_off"},
		{"gzip with garbage behind", say(gz(func(b *bytes.Buffer) { b.WriteString("garbage behind it") })), "broken_off"},
		{"gzip that is none", say(
			"HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\nthis is not any gzip"), "broken_off"},
		{"gzip with an endless name",
			pour("HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03", "nnnnnnnn"),
			"broken_off"},
		{"gzip in gzip", say("HTTP/1.1 200 x\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 0\r\n\r\n"),
			"unsupported_encoding"},
		{"deflate", say("HTTP/1.1 200 x\r\nContent-Encoding: deflate\r\nContent-Length: 0\r\n\r\n"), "unsupported_encoding"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, e := raw(t, tt.speak)
			l := egress.DefaultLimits()
			if change := hasty[tt.name]; change != nil {
				change(&l)
			}
			r, err := client(t, egress.Options{Limits: l}, e).Do(t.Context(),
				&egress.Request{Method: "GET", URL: base, Redirect: "follow", MaxBytes: 1 << 20})
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
			if e := failure(t, err); e.Code != tt.codes {
				t.Errorf("%+v, want %s", e, tt.codes)
			}
		})
	}
}

// A server that takes the connection and never speaks TLS.
func TestStalledTLS(t *testing.T) {
	base, e := raw(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	l := egress.DefaultLimits()
	l.TLS = 200 * time.Millisecond
	u := "https" + strings.TrimPrefix(base, "http")
	e.Scheme = "https"
	_, err := get(client(t, egress.Options{Limits: l}, e), u)
	if f := failure(t, err); f.Errno != abi.ETIMEOUT {
		t.Errorf("%+v", f)
	}
}

// A server may answer while the request is still being sent, and never read it;
// neither the answer nor its end waits for that.
func TestEarlyAnswer(t *testing.T) {
	base, e := raw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 100))
		_, _ = io.WriteString(c, "HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\nearly")
		_, _ = c.Read(make([]byte, 1)) // and no more
		select {
		case <-t.Context().Done():
		case <-time.After(2 * time.Minute):
		}
	})
	r, err := client(t, egress.Options{}, e).Do(t.Context(),
		&egress.Request{Method: "PUT", URL: base, Redirect: "follow", Body: make([]byte, 16<<20), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, r); got != "early" {
		t.Error(got)
	}
}

// The body of a redirect is not read, however long.
func TestRedirectBody(t *testing.T) {
	ended := make(chan struct{})
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			return
		}
		defer close(ended)
		w.Header().Set("Location", "/end")
		w.WriteHeader(http.StatusFound)
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	r, err := get(client(t, egress.Options{}, e), base)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	<-ended
}

// Cookies stay with the host that set them, and public suffixes set none.
func TestCookiesCross(t *testing.T) {
	seen := map[string]string{}
	_, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		seen[host] = r.Header.Get("Cookie")
		if host != "a.example.com" {
			return
		}
		for _, c := range []string{
			"own=1", "suffix=1; Domain=com", "other=1; Domain=b.example.com", "foreign=1; Domain=example.org",
			"below=1; Domain=x.a.example.com", "secure=1; Secure", "path=1; Path=/elsewhere",
			"long=" + strings.Repeat("x", 5000),
		} {
			w.Header().Add("Set-Cookie", c)
		}
	})
	port := ":" + strconv.Itoa(int(e.Port))
	n := &names{answers: map[string][]string{}}
	var entries []egress.Entry
	hosts := []string{"a.example.com", "b.example.com", "x.a.example.com", "c.example.org", "a.example.com"}
	for _, h := range hosts {
		n.answers[h] = []string{"127.0.0.1"}
		entries = append(entries, entry(t, "http://"+h+port, true))
	}
	c := client(t, egress.Options{Resolver: n}, entries...)
	for _, h := range hosts {
		r, err := get(c, "http://"+h+port+"/")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	want := map[string]string{"a.example.com": "own=1", "b.example.com": "", "x.a.example.com": "", "c.example.org": ""}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// Cookies of a browser go to their host like its own, within the same bounds.
func TestTakeCookies(t *testing.T) {
	seen := map[string]string{}
	_, e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		seen[host] = r.Header.Get("Cookie")
	})
	port := ":" + strconv.Itoa(int(e.Port))
	n := &names{answers: map[string][]string{"a.example.com": {"127.0.0.1"}, "b.example.com": {"127.0.0.1"}}}
	c := client(t, egress.Options{Resolver: n}, entry(t, "http://a.example.com"+port, true),
		entry(t, "http://b.example.com"+port, true))
	took := network.NewSession(c).TakeCookies("a.example.com", []*http.Cookie{
		{Name: "session", Value: "s1"}, {Name: "foreign", Value: "1", Domain: "b.example.com"},
		{Name: "suffix", Value: "1", Domain: "com"}, {Name: "secure", Value: "1", Secure: true},
		{Name: "long", Value: strings.Repeat("x", 5000)},
	})
	for _, h := range []string{"a.example.com", "b.example.com"} {
		r, err := get(c, "http://"+h+port+"/")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	if diff := cmp.Diff(map[string]string{"a.example.com": "session=s1", "b.example.com": ""}, seen); diff != "" ||
		took != 4 {
		t.Errorf("took %d: %s", took, diff)
	}
}

// No header of a server sends the next request elsewhere.
func TestAltSvc(t *testing.T) {
	reached := false
	_, other := serve(t, func(http.ResponseWriter, *http.Request) { reached = true })
	base, e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Alt-Svc", fmt.Sprintf(`h2=":%d", http/1.1=":%d"; ma=3600; persist=1`, other.Port, other.Port))
		w.Header().Set("Refresh", fmt.Sprintf("0; url=http://127.0.0.1:%d/", other.Port))
		w.Header().Set("Content-Location", fmt.Sprintf("http://127.0.0.1:%d/", other.Port))
	})
	c := client(t, egress.Options{}, e, other)
	for range 3 {
		r, err := get(c, base)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	if reached {
		t.Error("the server of the header was asked")
	}
}

// Closing a session closes the connections that the guest left open.
func TestSessionEndsConnections(t *testing.T) {
	gone := make(chan struct{}, 2)
	base, e := raw(t, func(c net.Conn) {
		hear(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 x\r\nContent-Length: 100\r\n\r\nx")
		_, _ = io.Copy(io.Discard, c)
		gone <- struct{}{}
	})
	s := network.NewSession(client(t, egress.Options{}, e))
	for range 2 {
		if text, errno := s.Handle(t.Context(), abi.CallNetworkRequest,
			frame(`{"method":"GET","url":"`+base+`"}`, "")); errno != abi.OK {
			t.Fatal(string(text))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-gone
	<-gone
	if text, errno := s.Handle(t.Context(), abi.CallRead, abi.AppendRead(nil, 1, 10)); errno != abi.ENOENT {
		t.Errorf("%d %s", errno, text)
	}
}
