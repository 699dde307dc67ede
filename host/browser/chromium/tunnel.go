package chromium

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/network"
)

// connect serves CONNECT (B240). The server is connected to before the browser is
// told of it, and gets its first byte once what the tunnel begins with was read.
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

// schemes are those that a tunnel to a port may be for, the likelier one first:
// the browser has a tunnel for https, wss and ws.
func schemes(port uint16) []string {
	if port == 80 {
		return []string{"http", "https"}
	}
	return []string{"https", "http"}
}

// authority reads HOST:PORT in its only form.
func authority(s string) (place, bool) {
	host, text, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(s, "/?#@\\") {
		return place{}, false
	}
	if strings.HasPrefix(s, "[") {
		host = "[" + host + "]"
	}
	port, ok := portOf(text)
	if !ok {
		return place{}, false
	}
	host, err = network.CanonicalHost(host)
	if err != nil {
		host = ""
	}
	return place{host, port}, true
}

// A tunnel is one that may be.
type tunnel struct {
	gate            *Gate
	bound           *bound
	to              place
	browser, server net.Conn
	early           []byte // what the browser sent before it was told to

	once sync.Once
	idle *time.Timer
}

// end cuts both sides off.
func (t *tunnel) end() {
	t.once.Do(func() {
		_ = t.browser.Close()
		_ = t.server.Close()
	})
}

// run returns when the tunnel is over.
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

// begin reads what the tunnel begins with, and, for a WebSocket, waits for the
// server's consent. first is still to be sent.
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

// upgrade sends the request for a WebSocket and passes the answer on. Unless the
// server consents, the answer is all that passes: what a browser sends after it
// would be a request that nobody judged.
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

// relay passes both directions on until both have ended, half by half (B241).
func (t *tunnel) relay() {
	var up sync.WaitGroup
	up.Go(func() { t.copy(t.server, t.browser) })
	t.copy(t.browser, t.server)
	up.Wait()
}

// copy passes one direction on, and its end. A failure ends both.
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

// pass counts bytes and puts off the end of an idle tunnel.
func (t *tunnel) pass(n int) bool {
	t.idle.Reset(t.gate.o.Limits.Idle)
	return t.bound.take(n)
}
