package chromium

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/network"
)

// mostPreamble is how long a ClientHello or the request for a WebSocket may be.
const mostPreamble = 64 << 10

var errPreamble = errors.New("a tunnel begins with too much")

// An preamble reads what a tunnel begins with and keeps it (B240).
type preamble struct {
	from   io.Reader
	seen   []byte
	at     int   // of seen
	secure bool  // it is TLS
	err    error // of from
}

// Read implements io.Reader: what was seen, then more.
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

// read returns the verdict if the tunnel may not go on: it is neither TLS for its
// host nor a WebSocket to it, or the policy has the host by the other scheme.
// What fails for another reason is in err.
func (o *preamble) read(to place, mayTLS, mayPlain bool) (verdict string) {
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

// serverName holds the name in a ClientHello against the host, in however many
// pieces it comes. An address has no name; with one it is another host. Of an
// encrypted ClientHello only the outer name is seen, so only a server that
// presents itself as the host can be reached with it.
func (o *preamble) serverName(host string) string {
	var hello *tls.ClientHelloInfo
	read := errors.New("read")
	_ = tls.Server(readOnly{o}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			hello = h
			return nil, read
		},
	}).Handshake() // it fails in any case
	switch {
	case hello == nil && o.err != nil:
		return ""
	case hello == nil:
		return VerdictServerName // unread is not allowed
	}
	want := host
	if _, err := netip.ParseAddr(host); err == nil {
		want = ""
	}
	if got := hello.ServerName; got != want {
		if canonical, err := network.CanonicalHost(got); err != nil || canonical != want {
			return VerdictServerName
		}
	}
	return ""
}

// webSocket reads the head of the only request that passes unencrypted: one for
// a WebSocket, to the host of the tunnel, in a form that all servers read alike.
func (o *preamble) webSocket(to place) string {
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
	case err != nil, len(parts) != 3, parts[0] != http.MethodGet, !strings.HasPrefix(parts[1], "/"), parts[2] != "HTTP/1.1",
		len(h["Host"]) != 1, !strings.EqualFold(strings.Join(h["Upgrade"], ","), "websocket"),
		h["Content-Length"] != nil, h["Transfer-Encoding"] != nil:
		return VerdictProtocol
	}
	if !sameHost(h["Host"][0], to) {
		return VerdictServerName
	}
	return ""
}

// looksPlain reports whether a head begins as a request does, has no line end
// but CR LF, and no line that goes on in the next one.
func looksPlain(head []byte) bool {
	const begins = http.MethodGet + " "
	n := min(len(head), len(begins))
	return string(head[:n]) == begins[:n] &&
		bytes.Count(head, []byte("\n")) == bytes.Count(head, []byte("\r\n")) &&
		bytes.Count(bytes.TrimSuffix(head, []byte("\r")), []byte("\r")) == bytes.Count(head, []byte("\r\n")) &&
		bytes.IndexByte(head, 0) < 0 && !bytes.Contains(head, []byte("\n ")) && !bytes.Contains(head, []byte("\n\t"))
}

// sameHost reports whether a Host header names the place, in letters that every
// server reads.
func sameHost(header string, to place) bool {
	if strings.ContainsFunc(header, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return false
	}
	named, ok := authority(header)
	if !ok {
		named, ok = authority(header + ":" + strconv.Itoa(80))
	}
	return ok && named == to
}

// readOnly is a connection to which nothing is ever written.
type readOnly struct{ r io.Reader }

func (c readOnly) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c readOnly) Write(p []byte) (int, error)      { return len(p), nil }
func (c readOnly) Close() error                     { return nil }
func (c readOnly) LocalAddr() net.Addr              { return nil }
func (c readOnly) RemoteAddr() net.Addr             { return nil }
func (c readOnly) SetDeadline(time.Time) error      { return nil }
func (c readOnly) SetReadDeadline(time.Time) error  { return nil }
func (c readOnly) SetWriteDeadline(time.Time) error { return nil }
