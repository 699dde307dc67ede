package network

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Hop is the audit line of one exchange with one origin (S78): no query, no
// header, no body.
type Hop struct {
	Method  string
	Origin  string
	Path    string // at most 256 bytes; long opaque segments are cut
	Status  int    // 0 when there was no answer
	Refused string // code of the error, "" for none
	Sent    int    // bytes of the body
	Took    time.Duration
}

// auditOf describes a hop. A path in which a server gave a sealed value back is
// told with its handle, whatever part of it was escaped.
func auditOf(h hop, t target, r *http.Response, err error, took time.Duration, echoes []echo) Hop {
	path := url.URL{Path: unseal(echoes, t.url.Path)}
	out := Hop{Method: h.method, Origin: t.origin(), Path: auditPath(path.EscapedPath()), Sent: len(h.body), Took: took}
	if r != nil {
		out.Status = r.StatusCode
	}
	if err != nil {
		out.Refused = asError(err).Code
	}
	return out
}

const (
	auditBytes   = 256
	opaqueLength = 24
)

// auditPath shortens a path: segments that long are identifiers or tokens.
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
