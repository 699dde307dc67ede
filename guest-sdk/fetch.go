package guest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// A Request is an HTTP request through the network binding. The host resolves, checks and
// connects, follows redirects under the same policy and keeps cookies; see
// docs/spec/abi.md.
type Request struct {
	Method string      // such as POST; "" means GET
	URL    string      // absolute
	Header [][2]string // names and values; a handle stands for a secret's value
	Body   []byte      // at most 16 MiB
	// Redirect is "follow" (the default), "manual", which returns the redirect, or "error".
	Redirect string
	// MaxBytes raises the limit of the body above the host's default of 32 MiB, up to the
	// operator's maximum.
	MaxBytes int64
	// Timeout bounds the request, and Wait how long it may wait for the rate limiter before
	// it fails with ERATE, both rounded up to milliseconds. Zero uses the host's default.
	Timeout, Wait time.Duration
}

// A Response is a server's answer, whatever its status.
type Response struct {
	Status int
	URL    string      // after redirects
	Header [][2]string // in the order of the server
	// Body must be read to its end or closed. While unread it can be the Content of an
	// Attachment, and then does not pass through the connector.
	Body io.ReadCloser
}

// Get returns the first value of a header, or "". Names are case-insensitive.
func (r *Response) Get(name string) string {
	for _, h := range r.Header {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

// inlineBytes is the longest body that is delivered with its answer. For a longer one,
// another call costs less than the copy.
const inlineBytes = 64 << 10

// readBytes is how much of a longer body one call fetches for readers of small pieces, such as a json.Decoder.
const readBytes = 64 << 10

// Fetch makes an HTTP request. Its error is an *Error of the host; EPROTO and ECANCELED end
// the run, others do not. EDENIED means that the server or a header is not granted. While
// one goroutine waits, requests of other goroutines are made too. Fetch avoids net/http,
// which makes a module three times as large and as slow to start; for client libraries that
// need net/http there is package guesthttp.
func (r *Run) Fetch(q Request) (*Response, error) {
	frame, err := q.frame()
	if err != nil {
		return nil, err
	}
	reply, err := r.NetworkRequest(frame)
	if err != nil {
		return nil, err
	}
	return newResponse(r, reply)
}

// frame encodes the request: u32 n, n bytes of JSON, the body.
func (q *Request) frame() ([]byte, error) {
	method, header := q.Method, q.Header
	if method == "" {
		method = "GET"
	}
	if header == nil {
		header = [][2]string{}
	}
	if !utf8.ValidString(q.URL) { // which JSON would alter
		return nil, fmt.Errorf("guest: the URL %q is not UTF-8: escape it as %%XX", q.URL)
	}
	for _, h := range header {
		if !utf8.ValidString(h[0]) || !utf8.ValidString(h[1]) {
			return nil, fmt.Errorf("guest: the header %q is not UTF-8", h[0])
		}
	}
	text, err := json.Marshal(struct {
		Method   string      `json:"method"`
		URL      string      `json:"url"`
		Header   [][2]string `json:"headers"`
		Redirect string      `json:"redirect,omitempty"`
		MaxBytes int64       `json:"max_bytes,omitempty"`
		Timeout  int64       `json:"timeout_ms,omitempty"`
		Wait     int64       `json:"wait_ms,omitempty"`
		Inline   int         `json:"inline_bytes"`
	}{method, q.URL, header, q.Redirect, q.MaxBytes, milliseconds(q.Timeout), milliseconds(q.Wait), inlineBytes})
	if err != nil {
		return nil, err
	}
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(text)+len(q.Body)), uint32(len(text)))
	return append(append(frame, text...), q.Body...), nil
}

// milliseconds rounds up, because 0 means the host's default.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// newResponse decodes a reply: u32 n, n bytes of JSON, the beginning of the body; or only the
// JSON, from a host that sends no inline bodies.
func newResponse(r *Run, reply []byte) (*Response, error) {
	text, begun := reply, []byte(nil)
	if len(reply) >= 4 && uint64(binary.LittleEndian.Uint32(reply)) <= uint64(len(reply)-4) {
		n := 4 + binary.LittleEndian.Uint32(reply)
		text, begun = reply[4:n], reply[n:]
	}
	var head struct {
		Handle int32       `json:"handle"`
		Status int         `json:"status"`
		Header [][2]string `json:"headers"`
		URL    string      `json:"url"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("guest: malformed reply of the host: %w", err)
	}
	body := &responseBody{run: r, handle: head.Handle, readStarted: len(begun) > 0}
	body.reader = bytes.NewReader(begun)
	if body.handle != 0 {
		body.reader = io.MultiReader(body.reader, bufio.NewReaderSize((*rest)(body), readBytes))
	}
	return &Response{Status: head.Status, URL: head.URL, Header: head.Header, Body: body}, nil
}

// A responseBody is the body of a Response.
type responseBody struct {
	run         *Run
	reader      io.Reader
	handle      int32 // of the rest that is not inline; 0 for none
	readStarted bool  // reading has begun, so the handle lacks a part
	closed      bool
}

func (b *responseBody) Read(p []byte) (int, error) {
	if b.closed {
		return 0, errors.New("guest: read of a body that is closed")
	}
	b.readStarted = true
	return b.reader.Read(p)
}

func (b *responseBody) Close() error {
	b.closed = true
	return b.release()
}

func (b *responseBody) release() error {
	handle := b.handle
	if b.handle = 0; handle == 0 {
		return nil
	}
	return b.run.CloseHandle(handle)
}

// TakeHandle gives up the handle of an unread body, for Attach.
func (b *responseBody) TakeHandle() (handle int32, ok bool) {
	if b.readStarted || b.handle == 0 {
		return 0, false
	}
	handle, b.handle, b.closed = b.handle, 0, true
	return handle, true
}

// A rest reads the part of a body that was not inline, and closes the handle at its end.
type rest responseBody

func (b *rest) Read(p []byte) (int, error) {
	if b.handle == 0 {
		return 0, io.EOF
	}
	n, err := b.run.ReadHandle(b.handle, p)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	if err != nil {
		_ = (*responseBody)(b).release() // the caller gets err
	}
	return n, err
}
