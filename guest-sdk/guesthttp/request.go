package guesthttp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// maxRequestBody is the default limit of hosts, in bytes.
const maxRequestBody = 16 << 20

// errRequestBody reports a body over maxRequestBody, before anything is sent. It wraps the
// errno that the host would return.
var errRequestBody = fmt.Errorf("guesthttp: the request body is over 16 MiB: %w", abi.ETOOBIG)

// readBody reads the whole body of the request. The caller closes it.
func readBody(req *http.Request) ([]byte, error) {
	if err := expired(req.Context()); err != nil {
		return nil, err
	}
	if req.Body == nil {
		return nil, nil
	}
	if req.ContentLength > maxRequestBody {
		return nil, errRequestBody
	}
	var b bytes.Buffer
	if req.ContentLength > 0 {
		b.Grow(int(req.ContentLength) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(req.Body, maxRequestBody+1)); err != nil {
		return nil, err
	}
	if b.Len() > maxRequestBody {
		return nil, errRequestBody
	}
	if n := req.ContentLength; n > 0 && n != int64(b.Len()) {
		return nil, fmt.Errorf("guesthttp: ContentLength is %d and the body has %d bytes", n, b.Len())
	}
	return b.Bytes(), nil
}

// inlineBytes is the longest body that is delivered with its answer. For a longer one,
// another call costs less than the copy.
const inlineBytes = 64 << 10

// frame encodes the request: u32 n, n bytes of JSON, the body.
func (t *Transport) frame(req *http.Request, target string, body []byte) ([]byte, error) {
	if err := expired(req.Context()); err != nil {
		return nil, err
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	if !utf8.ValidString(method) || !utf8.ValidString(target) {
		return nil, errors.New("guesthttp: the method or the URL is not UTF-8")
	}
	b := append(make([]byte, 4, 512+len(body)), `{"method":`...)
	b = strictjson.AppendQuote(b, method)
	b = strictjson.AppendQuote(append(b, `,"url":`...), target)
	b = append(b, `,"headers":[`...)
	for i, kv := range headers(req.Header) {
		if !utf8.ValidString(kv[0]) || !utf8.ValidString(kv[1]) {
			return nil, fmt.Errorf("guesthttp: header %q is not UTF-8", kv[0])
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendQuote(append(b, '['), kv[0])
		b = strictjson.AppendQuote(append(b, ','), kv[1])
		b = append(b, ']')
	}
	b = append(b, `],"redirect":"manual"`...)
	number := func(name string, n int64) {
		if n > 0 {
			b = strconv.AppendInt(append(b, name...), n, 10)
		}
	}
	number(`,"inline_bytes":`, inlineBytes)
	number(`,"max_bytes":`, t.MaxBytes)
	number(`,"wait_ms":`, milliseconds(t.Wait))
	if deadline, ok := req.Context().Deadline(); ok {
		number(`,"timeout_ms":`, max(milliseconds(time.Until(deadline)), 1))
	}
	b = append(b, '}')
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return append(b, body...), nil
}

// milliseconds rounds d up to milliseconds.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// expired is ctx.Err that also compares the deadline with the clock, because in a wasm
// build no timer fires between two calls.
func expired(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// targetOf returns the URL of a request without the fragment and the user information,
// which http.Client has turned into a header.
func targetOf(req *http.Request) (string, error) {
	switch {
	case req.URL == nil:
		return "", errors.New("guesthttp: the request has no URL")
	case req.URL.Host == "":
		return "", errors.New("guesthttp: the URL has no host")
	case len(req.Trailer) > 0:
		return "", errors.New("guesthttp: the network binding has no trailers")
	case req.Host != "" && req.Host != req.URL.Host &&
		authority(req.URL.Scheme, req.Host) != authority(req.URL.Scheme, req.URL.Host):
		return "", fmt.Errorf("guesthttp: the Host %q is not that of the URL, %q: the host sends the URL's",
			req.Host, req.URL.Host)
	case req.URL.Opaque != "":
		return opaque(req.URL)
	}
	if req.URL.User == nil && req.URL.Fragment == "" {
		return req.URL.String(), nil
	}
	u := *req.URL
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return u.String(), nil
}

// opaque returns the URL of a request whose path, perhaps after the host, is in URL.Opaque.
func opaque(u *url.URL) (string, error) {
	path := strings.TrimPrefix(u.Opaque, "//"+u.Host)
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return "", fmt.Errorf("guesthttp: the opaque part of the URL is no path on %q", u.Host)
	}
	rest := url.URL{Opaque: path, ForceQuery: u.ForceQuery, RawQuery: u.RawQuery}
	return u.Scheme + "://" + u.Host + rest.RequestURI(), nil
}

// authority returns host and port in a comparable form.
func authority(scheme, host string) string {
	u := url.URL{Host: host}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// headers returns the headers to send, sorted by name.
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

// implied reports whether a header states what happens anyway. net/http ignores the first
// four in Request.Header too, and libraries set them.
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

// headerOf reads the headers of a reply.
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

// isToken reports whether s can be the name of a header (RFC 9110 section 5.6.2).
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
