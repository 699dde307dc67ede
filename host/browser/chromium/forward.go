package chromium

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/egress"
)

// forward serves a request in absolute form. Only http arrives that way, since the proxy does not
// speak TLS.
func (g *Gate) forward(b *bound, w http.ResponseWriter, r *http.Request) {
	to, ok := absolute(r.URL)
	_, step := b.policy.Match("http", to.host, to.port)
	switch {
	case !ok:
		malformed(w)
		return
	case r.URL.Scheme != "http":
		g.refuse(b, w, to, "scheme_denied")
		return
	case step != "":
		g.refuse(b, w, to, step+"_denied")
		return
	case b.spent():
		g.refuse(b, w, to, VerdictBytes)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	idle := time.AfterFunc(g.o.Limits.Idle, cancel)
	defer idle.Stop()
	pass := func(n int) bool { idle.Reset(g.o.Limits.Idle); return b.take(n) }
	if r.ContentLength != 0 {
		r.Body = &body{r.Body, http.NewResponseController(w), g.o.Limits.Idle, pass}
	}
	answer, err := b.transport.RoundTrip(outgoing(ctx, r, to))
	if err != nil {
		if v := verdictOf(err); v != "" {
			g.refuse(b, w, to, v)
			return
		}
		g.count.allowed.Add(1)
		unreachable(w)
		return
	}
	defer answer.Body.Close()
	g.count.allowed.Add(1)
	g.reply(w, answer, pass)
}

// refuse denies a request to the page and reports it to the owner.
func (g *Gate) refuse(b *bound, w http.ResponseWriter, to destination, verdict string) {
	g.denied(b, to.host, to.port, verdict)
	blocked(w)
}

// A destination is the host and port of a request.
type destination struct {
	host string // canonical, or "" if it is not a host name
	port uint16
}

func (p destination) String() string { return net.JoinHostPort(p.host, strconv.Itoa(int(p.port))) }

// absolute returns the destination of a request in absolute form. It reports false for other forms
// and for anything that readers could interpret differently.
func absolute(u *url.URL) (destination, bool) {
	if u.Host == "" || u.User != nil || u.Opaque != "" || strings.Contains(u.Path+u.RawQuery, "#") {
		return destination{}, false
	}
	text := u.Port()
	if text == "" && !strings.HasSuffix(u.Host, ":") {
		if text = "80"; u.Scheme == "https" {
			text = "443"
		}
	}
	port, ok := portOf(text)
	if !ok {
		return destination{}, false
	}
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		host = "[" + host + "]"
	}
	host, err := egress.CanonicalHost(host)
	if err != nil {
		host = ""
	}
	return destination{host, port}, true
}

// portOf parses a port in its canonical spelling.
func portOf(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

// outgoing returns the request for the server, built anew so that nothing of the browser's framing
// is left.
func outgoing(ctx context.Context, r *http.Request, to destination) *http.Request {
	u := *r.URL
	u.Host = to.String()
	out := (&http.Request{Method: r.Method, URL: &u, Host: u.Host, Header: endToEnd(r.Header),
		ContentLength: r.ContentLength}).WithContext(ctx)
	if to.port == 80 {
		out.Host = strings.TrimSuffix(u.Host, ":80")
	}
	if r.ContentLength != 0 {
		out.Body = r.Body
	}
	if out.Header.Get("User-Agent") == "" {
		out.Header["User-Agent"] = nil // otherwise the library adds one
	}
	return out
}

// reply streams an answer to the browser.
func (g *Gate) reply(w http.ResponseWriter, answer *http.Response, pass func(int) bool) {
	if answer.StatusCode < 200 || answer.StatusCode == http.StatusProxyAuthRequired {
		unreachable(w) // the proxy speaks no other protocol and needs no password
		return
	}
	h := w.Header()
	for name, values := range endToEnd(answer.Header) {
		h[name] = values
	}
	for _, name := range []string{"Content-Type", "Date"} {
		if _, ok := h[name]; !ok {
			h[name] = nil // otherwise the library adds one
		}
	}
	control := http.NewResponseController(w)
	w.WriteHeader(answer.StatusCode)
	buffer := make([]byte, 32<<10)
	for {
		n, err := answer.Body.Read(buffer)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(g.o.Limits.Idle)) // the write reports a failure
			if !pass(n) {
				panic(http.ErrAbortHandler)
			}
			if _, err := w.Write(buffer[:n]); err != nil || control.Flush() != nil {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the browser must not take a part for the whole
		}
	}
}

// A body is an upload of the browser: counted, and cut off when it stalls.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
	pass    func(int) bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.idle)) // the read reports a failure
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{}) // an answer may take longer
	}
	if !b.pass(n) {
		return 0, http.ErrBodyReadAfterClose
	}
	return n, err
}

// between lists the headers of a single connection, and those by which a server could impersonate
// the proxy or send the browser around it.
var between = []string{
	"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Alt-Svc",
	"Http2-Settings", mark,
}

// endToEnd returns a copy of the headers that may pass.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(textproto.TrimString(name))
		}
	}
	for name := range out {
		if slices.Contains(between, name) || strings.HasPrefix(name, "Proxy-") {
			delete(out, name)
		}
	}
	return out
}
