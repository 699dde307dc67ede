package egress

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// headersFor returns the headers of an answer for the guest, sorted by name: without
// cookies, which the host keeps, and, for a decoded body, without its original encoding and
// length.
func headersFor(h http.Header, encoded bool) [][2]string {
	out := [][2]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch name {
		case "Set-Cookie", "Set-Cookie2", "Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Upgrade":
			continue
		case "Content-Encoding", "Content-Length":
			if encoded {
				continue
			}
		}
		for _, v := range h[name] {
			out = append(out, [2]string{name, strings.ToValidUTF8(v, "\uFFFD")})
		}
	}
	return out
}
