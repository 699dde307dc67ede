package egress

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// A Hop is the audit entry of one exchange with one origin, without query, headers and
// bodies.
type Hop struct {
	Began    time.Time
	Method   string
	Origin   string
	Path     string // at most 256 bytes; long segments are shortened
	Status   int    // 0 if there was no answer
	Refused  string // error code, or ""
	Sent     int64  // bytes of the body
	Received int64  // bytes of headers and of the encoded body
	Took     time.Duration
	Family   string // ipv4 or ipv6; "" if no connection was made
}

// auditOf describes a hop up to its answer, without secrets: sealed values that a server
// returned appear as handles, however they were escaped, and values that the guest knows in
// plain text not at all.
func auditOf(h hop, t target, r *responseHead, err error, began time.Time, masks []echo) Hop {
	path := url.URL{Path: unseal(masks, t.url.Path)}
	out := Hop{Began: began, Method: h.method, Origin: auditOrigin(t.origin(), masks),
		Path: auditPath(strings.ReplaceAll(path.EscapedPath(), url.PathEscape(redacted), redacted)), Sent: int64(len(h.body)),
		Took: time.Since(began)}
	if r != nil {
		out.Family = r.family
	}
	if r != nil && r.Response != nil {
		out.Status, out.Received = r.StatusCode, headerBytes(r.Header)
	}
	if err != nil {
		out.Refused = AsError(err).Code
	}
	return out
}

// family returns the address family of a connection.
func family(conn net.Conn) string {
	to, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	switch {
	case err != nil:
		return ""
	case to.Addr().Unmap().Is4():
		return "ipv4"
	}
	return "ipv6"
}

// auditOrigin replaces values in an origin, in which they are in lower case.
func auditOrigin(origin string, masks []echo) string {
	for _, m := range masks {
		origin = strings.ReplaceAll(origin, strings.ToLower(string(m.form)), string(m.handle))
	}
	return origin
}

const (
	auditBytes   = 256
	opaqueLength = 24
)

// auditPath shortens a path: long segments are identifiers or tokens.
func auditPath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if len(p) >= opaqueLength {
			parts[i] = p[:4] + "…"
		}
	}
	if path = strings.Join(parts, "/"); len(path) > auditBytes {
		path = path[:auditBytes-3] + "…"
	}
	return path
}
