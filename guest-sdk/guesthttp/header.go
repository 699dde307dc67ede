package guesthttp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// headers are those to send, sorted by name.
func headers(from http.Header) [][2]string {
	var list [][2]string
	if len(from) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		for _, value := range from[name] {
			if !implied(http.CanonicalHeaderKey(name), value) {
				list = append(list, [2]string{name, value})
			}
		}
	}
	return list
}

// implied reports whether a header says what happens anyway. The first four
// net/http never takes from Request.Header, and libraries do set them.
func implied(name, value string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	case "Connection":
		return strings.EqualFold(value, "keep-alive") || strings.EqualFold(value, "close")
	case "Accept-Encoding": // the host offers gzip and decodes it
		return strings.EqualFold(value, "gzip") || strings.EqualFold(value, "identity")
	}
	return false
}

// headerOf reads the header of a reply.
func headerOf(list strictjson.Value) (http.Header, error) {
	h := make(http.Header, 8)
	for item := range list.Items() {
		var pair [2]string
		n := 0
		if !item.Is(strictjson.KindArray) {
			return nil, fmt.Errorf("%.80s is no header", item.Raw)
		}
		for part := range item.Items() {
			text, ok := part.Text()
			if !ok || n == len(pair) {
				return nil, fmt.Errorf("%.80s is no header", item.Raw)
			}
			pair[n] = text
			n++
		}
		if n != len(pair) || !isToken(pair[0]) || strings.ContainsAny(pair[1], "\r\n\x00") {
			return nil, fmt.Errorf("%.80s is no header", item.Raw)
		}
		h.Add(pair[0], pair[1])
	}
	return h, nil
}

// isToken reports whether s can be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
