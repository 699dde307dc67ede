package chromium

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/egress"
)

// connect serves CONNECT. It dials the server before it answers the browser, and sends the server
// nothing until the start of the tunnel was checked.
func (g *Gate) connect(b *bound, w http.ResponseWriter, r *http.Request) {
	to, ok := authority(r.RequestURI)
	if !ok || r.ContentLength != 0 {
		malformed(w)
		return
	}
	w.Header().Set("Connection", "close") // unless it becomes a tunnel
	if b.spent() {
		g.refuse(b, w, to, VerdictBytes)
		return
	}
	select {
	case g.tunnels <- struct{}{}:
		defer func() { <-g.tunnels }()
	default:
		g.refuse(b, w, to, VerdictTunnels)
		return
	}
	server, err := b.dialer.Dial(r.Context(), to.host, to.port, schemes(to.port)...)
	if err != nil {
		if v := verdictOf(err); v != "" {
			g.refuse(b, w, to, v)
			return
		}
		g.count.allowed.Add(1)
		unreachable(w)
		return
	}
	defer server.Close()
	g.count.allowed.Add(1)
	browser, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer browser.Close()
	began := make([]byte, early.Reader.Buffered())
	if _, err := io.ReadFull(early, began); err != nil {
		return
	}
	t := &tunnel{gate: g, bound: b, to: to, browser: browser, server: server, early: began}
	t.run()
}

// schemes returns the schemes that a tunnel to a port may be for, the likelier one first: the
// browser opens tunnels for https, wss and ws.
func schemes(port uint16) []string {
	if port == 80 {
		return []string{"http", "https"}
	}
	return []string{"https", "http"}
}

// authority parses HOST:PORT in its canonical form.
func authority(s string) (destination, bool) {
	host, text, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(s, "/?#@\\") {
		return destination{}, false
	}
	if strings.HasPrefix(s, "[") {
		host = "[" + host + "]"
	}
	port, ok := portOf(text)
	if !ok {
		return destination{}, false
	}
	host, err = egress.CanonicalHost(host)
	if err != nil {
		host = ""
	}
	return destination{host, port}, true
}

// A tunnel is an established tunnel.
type tunnel struct {
	gate            *Gate
	bound           *bound
	to              destination
	browser, server net.Conn
	early           []byte // what the browser sent early

	once sync.Once
	idle *time.Timer
}

// end closes both sides.
func (t *tunnel) end() {
	t.once.Do(func() {
		_ = t.browser.Close()
		_ = t.server.Close()
	})
}

// run relays until the tunnel ends.
func (t *tunnel) run() {
	limits := t.gate.o.Limits
	defer t.end()
	defer context.AfterFunc(t.bound.life, t.end)()
	t.idle = time.AfterFunc(limits.Dial, t.end)
	defer t.idle.Stop()
	if _, err := io.WriteString(t.browser, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	first := t.early
	ready := true
	if !t.gate.o.AnyServerName {
		first, ready = t.begin()
	}
	if !ready || !t.pass(len(first)) {
		return
	}
	if _, err := t.server.Write(first); err != nil {
		return
	}
	t.relay()
}

// begin checks the start of the tunnel and, for a WebSocket, waits for the server's consent. first
// is still to be sent.
func (t *tunnel) begin() (first []byte, ok bool) {
	_, noTLS := t.bound.policy.Match("https", t.to.host, t.to.port)
	_, noPlain := t.bound.policy.Match("http", t.to.host, t.to.port)
	o := &preamble{from: t.browser, seen: t.early}
	denial := o.read(t.to, noTLS == "", noPlain == "")
	switch {
	case denial != "":
		t.gate.denied(t.bound, t.to.host, t.to.port, denial)
		return nil, false
	case o.err != nil:
		return nil, false
	case o.secure:
		return o.seen, true
	}
	return nil, t.upgrade(o.seen)
}

// upgrade sends a WebSocket request and passes the answer on. Unless the server consents, only the
// answer passes, since anything the browser sends afterwards would be an unchecked request.
func (t *tunnel) upgrade(request []byte) bool {
	if _, err := t.server.Write(request); err != nil || !t.pass(len(request)) {
		return false
	}
	const consent = "HTTP/1.1 101 "
	status := make([]byte, len(consent))
	if _, err := io.ReadFull(t.server, status); err != nil {
		return false
	}
	if _, err := t.browser.Write(status); err != nil || !t.pass(len(status)) {
		return false
	}
	if string(status) == consent {
		return true
	}
	t.copy(t.browser, t.server)
	return false
}

// relay copies both directions until both have ended.
func (t *tunnel) relay() {
	var up sync.WaitGroup
	up.Go(func() { t.copy(t.server, t.browser) })
	t.copy(t.browser, t.server)
	up.Wait()
}

// copy copies one direction and its end. A failure ends both directions.
func (t *tunnel) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !t.pass(n) {
				t.gate.denied(t.bound, t.to.host, t.to.port, VerdictBytes)
				t.end()
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				t.end()
				return
			}
		}
		if err == io.EOF {
			if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			t.end()
			return
		}
	}
}

// pass counts bytes and resets the idle timer.
func (t *tunnel) pass(n int) bool {
	t.idle.Reset(t.gate.o.Limits.Idle)
	return t.bound.take(n)
}

// mostPreamble bounds a ClientHello or a WebSocket request.
const mostPreamble = 64 << 10

var errPreamble = errors.New("a tunnel begins with too much")

// A preamble reads the start of a tunnel and keeps it.
type preamble struct {
	from   io.Reader
	seen   []byte
	at     int   // position in seen
	secure bool  // it is TLS
	err    error // of from
}

// Read implements io.Reader. It returns what was read before, then more.
func (o *preamble) Read(p []byte) (int, error) {
	if o.at < len(o.seen) {
		n := copy(p, o.seen[o.at:])
		o.at += n
		return n, nil
	}
	if len(o.seen) >= mostPreamble {
		return 0, errPreamble
	}
	n, err := o.from.Read(p)
	o.seen = append(o.seen, p[:n]...)
	o.at += n
	if err != nil {
		o.err = err
	}
	return n, err
}

// read returns a verdict if the tunnel is refused: it is neither TLS for its host nor a WebSocket
// to it, or the policy allows the host only by the other scheme. Other failures are in err.
func (o *preamble) read(to destination, mayTLS, mayPlain bool) (verdict string) {
	var first [1]byte
	if _, err := io.ReadFull(o, first[:]); err != nil {
		return ""
	}
	o.at = 0
	const handshake = 22 // a record of TLS
	o.secure = first[0] == handshake
	switch {
	case o.secure && !mayTLS, !o.secure && !mayPlain:
		return "scheme_denied"
	case o.secure:
		return o.serverName(to.host)
	}
	return o.webSocket(to)
}

// serverName compares the name in a ClientHello, in however many pieces it arrives, with the host.
// An IP address must come without a name. Of an encrypted ClientHello only the outer name is
// visible, so only servers that present themselves as the host can be reached with it.
func (o *preamble) serverName(host string) string {
	var hello *tls.ClientHelloInfo
	read := errors.New("read")
	_ = tls.Server(readOnly{o}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			hello = h
			return nil, read
		},
	}).Handshake() // always fails
	switch {
	case hello == nil && o.err != nil:
		return ""
	case hello == nil:
		return VerdictServerName // unread names are not allowed
	}
	want := host
	if _, err := netip.ParseAddr(host); err == nil {
		want = ""
	}
	if got := hello.ServerName; got != want {
		if canonical, err := egress.CanonicalHost(got); err != nil || canonical != want {
			return VerdictServerName
		}
	}
	return ""
}

// webSocket checks the head of the only request that passes unencrypted: one for a WebSocket to the
// tunnel's host, in a form that all servers parse alike.
func (o *preamble) webSocket(to destination) string {
	end := -1
	for piece := make([]byte, 4096); end < 0; end = bytes.Index(o.seen, []byte("\r\n\r\n")) {
		if o.at = len(o.seen); !looksPlain(o.seen) {
			return VerdictProtocol
		}
		if _, err := o.Read(piece); err == errPreamble {
			return VerdictProtocol
		} else if err != nil {
			return ""
		}
	}
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(o.seen)))
	request, err := lines.ReadLine()
	if err != nil || end+4 != len(o.seen) || !looksPlain(o.seen) {
		return VerdictProtocol
	}
	h, err := lines.ReadMIMEHeader()
	parts := strings.Split(request, " ")
	switch {
	case err != nil, len(parts) != 3, parts[0] != http.MethodGet, !strings.HasPrefix(parts[1], "/"),
		parts[2] != "HTTP/1.1",
		len(h["Host"]) != 1, !strings.EqualFold(strings.Join(h["Upgrade"], ","), "websocket"),
		h["Content-Length"] != nil, h["Transfer-Encoding"] != nil:
		return VerdictProtocol
	}
	if !sameHost(h["Host"][0], to) {
		return VerdictServerName
	}
	return ""
}

// looksPlain reports whether a head begins like a request, uses only CR LF, and has no continuation
// lines.
func looksPlain(head []byte) bool {
	const begins = http.MethodGet + " "
	n := min(len(head), len(begins))
	return string(head[:n]) == begins[:n] &&
		bytes.Count(head, []byte("\n")) == bytes.Count(head, []byte("\r\n")) &&
		bytes.Count(bytes.TrimSuffix(head, []byte("\r")), []byte("\r")) == bytes.Count(head, []byte("\r\n")) &&
		bytes.IndexByte(head, 0) < 0 && !bytes.Contains(head, []byte("\n ")) && !bytes.Contains(head, []byte("\n\t"))
}

// sameHost reports whether a Host header names the destination, in ASCII.
func sameHost(header string, to destination) bool {
	if strings.ContainsFunc(header, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return false
	}
	named, ok := authority(header)
	if !ok {
		named, ok = authority(header + ":" + strconv.Itoa(80))
	}
	return ok && named == to
}

// readOnly is a connection that discards writes.
type readOnly struct{ r io.Reader }

func (c readOnly) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c readOnly) Write(p []byte) (int, error)      { return len(p), nil }
func (c readOnly) Close() error                     { return nil }
func (c readOnly) LocalAddr() net.Addr              { return nil }
func (c readOnly) RemoteAddr() net.Addr             { return nil }
func (c readOnly) SetDeadline(time.Time) error      { return nil }
func (c readOnly) SetReadDeadline(time.Time) error  { return nil }
func (c readOnly) SetWriteDeadline(time.Time) error { return nil }
