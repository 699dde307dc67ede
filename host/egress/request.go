package egress

import (
	"encoding/binary"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// MaxInline is how much of a body the reply to a request may have, in bytes.
const MaxInline = 256 * abi.KiB

// A Request is a guest's request, bounded and checked.
type Request struct {
	Method   string
	URL      string
	Headers  [][2]string
	Timeout  time.Duration // 0 means the limit
	Redirect string        // follow, manual, error
	MaxBytes int64         // decoded bytes of the body; 0 means the limit
	Wait     time.Duration // longest wait for a rate limiter; 0 means the timeout
	Inline   int64         // longest encoded body to return inline
	Body     []byte
	// Waiting is called when the request waits for a rate limiter, with the time, and with
	// a zero time when it goes on; may be nil.
	Waiting func(origin string, until time.Time)
}

// methods are those of plain requests, and the two read-only methods of WebDAV (RFC 4918,
// RFC 3253), which calendars and address books need.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "REPORT"}

// scanners are pooled, because their scratch space costs more than a short text.
var scanners = sync.Pool{New: func() any { return &strictjson.Scanner{MaxValues: 1000} }}

// ParseRequest decodes the frame of the request function. Body shares memory with it. The
// error is an *Error: EINVAL for a Malformed request, ETOOBIG beyond a limit, EDENIED for a
// method or header that guests may not use.
func ParseRequest(frame []byte, l Limits) (*Request, error) {
	if len(frame) < 4 || uint64(binary.LittleEndian.Uint32(frame)) > uint64(len(frame)-4) {
		return nil, Malformed("the frame is shorter than its head")
	}
	n := int(binary.LittleEndian.Uint32(frame))
	head, body := frame[4:4+n], frame[4+n:]
	if n > maxURL+l.RequestHeaderBytes*2+4*abi.KiB {
		return nil, Errorf(abi.ETOOBIG, "request_too_large", "the head of a request may have %d bytes",
			maxURL+l.RequestHeaderBytes*2+4*abi.KiB)
	}
	if int64(len(body)) > l.RequestBody {
		return nil, Errorf(abi.ETOOBIG, "request_too_large", "the body of a request may have %d bytes", l.RequestBody)
	}
	scanner := scanners.Get().(*strictjson.Scanner)
	defer scanners.Put(scanner)
	v, err := scanner.Parse(head, false)
	if err != nil {
		return nil, Malformed("%v", err)
	}
	q := &Request{Redirect: "follow", Body: body}
	for _, m := range []struct {
		name string
		into *string
	}{{"method", &q.Method}, {"url", &q.URL}, {"redirect", &q.Redirect}} {
		if err := textMember(v, m.name, m.into); err != nil {
			return nil, err
		}
	}
	for _, m := range []struct {
		name  string
		most  int64
		scale int64
		into  *int64
	}{
		{"timeout_ms", int64(l.TotalMost), int64(time.Millisecond), (*int64)(&q.Timeout)},
		{"wait_ms", int64(l.TotalMost), int64(time.Millisecond), (*int64)(&q.Wait)},
		{"max_bytes", l.ResponseMost, 1, &q.MaxBytes},
		{"inline_bytes", MaxInline, 1, &q.Inline},
	} {
		if err := numberMember(v, m.name, m.most, m.scale, m.into); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(methods, q.Method) {
		return nil, denyf("method", "method %.20q is not one of %s", q.Method, strings.Join(methods, " "))
	}
	if !slices.Contains([]string{"follow", "manual", "error"}, q.Redirect) {
		return nil, Malformed("redirect must be follow, manual or error")
	}
	return q, q.readHeaders(v, l)
}

func textMember(v strictjson.Value, name string, into *string) error {
	m, ok := v.Member(name)
	if !ok {
		return nil
	}
	text, ok := m.Text()
	if !ok {
		return Malformed("%s must be a string", name)
	}
	*into = text
	return nil
}

func numberMember(v strictjson.Value, name string, most, scale int64, into *int64) error {
	m, ok := v.Member(name)
	if !ok || m.Absent() {
		return nil
	}
	n, ok := m.SafeInteger()
	if !ok || n < 1 {
		return Malformed("%s must be an integer from 1", name)
	}
	*into = min(n, most/scale) * scale
	return nil
}

// hostHeaders are headers that the host sets, or that concern the connection.
var hostHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te",
	"trailer", "expect",
	"accept-encoding", "cookie", "cookie2"}

// routingHeaders are headers by which a proxy or a framework takes a request for one to another
// host or path than the one that was checked.
var routingHeaders = []string{"forwarded", "x-host", "x-original-host", "x-original-url", "x-original-uri",
	"x-rewrite-url", "x-http-host-override", "x-http-destinationurl", "http2-settings",
	"alt-used"}

// isHostHeader reports whether a guest must not set the header, also in spellings that
// servers treat alike, such as _ for -.
func isHostHeader(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return slices.Contains(hostHeaders, name) || slices.Contains(routingHeaders, name) ||
		slices.ContainsFunc([]string{"proxy-", "sec-", "x-forwarded-"},
			func(p string) bool { return strings.HasPrefix(name, p) })
}

func (q *Request) readHeaders(v strictjson.Value, l Limits) error {
	list, ok := v.Member("headers")
	if !ok {
		return nil
	}
	if !list.Is(strictjson.KindArray) {
		return Malformed("headers must be an array of pairs")
	}
	size := 0
	for item := range list.Items() {
		pair, ok := headerPair(item)
		if !ok {
			return Malformed("a header must be a pair of strings")
		}
		if !httpguts.ValidHeaderFieldName(pair[0]) || !httpguts.ValidHeaderFieldValue(pair[1]) {
			return Malformed("header %.60q is not one", pair[0])
		}
		if isHostHeader(pair[0]) {
			return denyf("header", "header %s is set by the host", pair[0])
		}
		if size += len(pair[0]) + len(pair[1]) + 4; size > l.RequestHeaderBytes || len(q.Headers) == l.RequestHeaders {
			return Errorf(abi.ETOOBIG, "request_too_large", "a request may have %d headers and %d bytes of them",
				l.RequestHeaders, l.RequestHeaderBytes)
		}
		q.Headers = append(q.Headers, pair)
	}
	return nil
}

func headerPair(item strictjson.Value) (pair [2]string, ok bool) {
	if !item.Is(strictjson.KindArray) || item.Len() != 2 {
		return pair, false
	}
	i := 0
	for part := range item.Items() {
		if pair[i], ok = part.Text(); !ok {
			return pair, false
		}
		i++
	}
	return pair, true
}

// A target is a URL that passed steps 1 and 2.
type target struct {
	url    *url.URL // with the canonical host, without fragment
	scheme string
	host   string
	port   uint16
}

// origin returns the key of rate limiters and credentials.
func (t target) origin() string { return t.scheme + "://" + t.url.Host }

// parseTarget parses a URL within bounds and makes its host canonical. from is the base of
// a relative redirect, or nil.
func parseTarget(raw string, from *url.URL) (target, error) {
	if len(raw) > maxURL {
		return target{}, Errorf(abi.ETOOBIG, "request_too_large", "a URL may have %d bytes", maxURL)
	}
	if strings.ContainsFunc(raw,
		func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f || c >= 0x80 && c < 0xa0 }) {
		return target{}, Malformed("a URL has no blanks, backslashes or control characters")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, Malformed("the URL cannot be read")
	}
	if from != nil {
		u = from.ResolveReference(u)
	}
	if u.User != nil {
		return target{}, Malformed("a URL has no user name and no password; send an Authorization header")
	}
	if u.Scheme == "" {
		return target{}, Malformed("the URL is not absolute")
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return target{}, denyf("scheme", "scheme %.20q is neither https nor http", u.Scheme)
	}
	if u.Opaque != "" || u.Host == "" {
		return target{}, Malformed("the URL is not absolute")
	}
	host, err := CanonicalHost(u.Hostname())
	if err != nil {
		return target{}, Malformed("%v", err)
	}
	port, ok := portOf(u)
	if !ok {
		return target{}, Malformed("the port of the URL is not one")
	}
	t := target{url: u, scheme: u.Scheme, host: host, port: port}
	u.Host = hostPort(u.Scheme, host, port)
	u.Fragment, u.RawFragment = "", ""
	if len(u.String()) > maxURL { // resolving and escaping make it longer
		return target{}, Errorf(abi.ETOOBIG, "request_too_large", "a URL may have %d bytes", maxURL)
	}
	return t, nil
}

func portOf(u *url.URL) (uint16, bool) {
	text := u.Port()
	if text == "" {
		return defaultPort(u.Scheme), !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0
}

// hostPort returns the authority of a URL, without the scheme's default port.
func hostPort(scheme, host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == defaultPort(scheme) {
		return host
	}
	return host + ":" + strconv.Itoa(int(port))
}
