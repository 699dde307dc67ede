package network

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// headersFor is what a guest sees of an answer's headers, in order of their
// names: no cookies, which are the host's, and of a body that was
// unpacked not what it was before.
func headersFor(h http.Header, packed bool) [][2]string {
	out := [][2]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch name {
		case "Set-Cookie", "Set-Cookie2", "Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Upgrade":
			continue
		case "Content-Encoding", "Content-Length":
			if packed {
				continue
			}
		}
		for _, v := range h[name] {
			out = append(out, [2]string{name, strings.ToValidUTF8(v, "\uFFFD")})
		}
	}
	return out
}
