package guest

import (
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

// A Request is one of the network binding. The host resolves, checks and connects,
// follows redirects under the same policy and keeps the cookies; see docs/spec/abi.md.
type Request struct {
	Method string      // such as POST; "" for GET
	URL    string      // absolute
	Header [][2]string // names and values; a handle of a secret is put where its value belongs
	Body   []byte      // at most 16 MiB
	// Redirect is what becomes of one: "follow", as "" is, "manual", which returns it, or "error".
	Redirect string
	// MaxBytes allows a body over the host's default of 32 MiB, up to the operator's maximum.
	MaxBytes int64
	// Timeout is how long it may take, Wait how long it may wait for its turn with that
	// server before it fails with ERATE, both rounded up to milliseconds. Zero leaves it to the host.
	Timeout, Wait time.Duration
}

// A Response is what a server answered, whatever its status.
type Response struct {
	Status int
	URL    string      // behind redirects
	Header [][2]string // in the server's order
	// Body is read to its end or closed. Not read yet, it can be the Content of an Attachment,
	// and does not pass through the connector.
	Body io.ReadCloser
}

// Get returns the first value of a header, "" for none. Case does not matter.
func (r *Response) Get(name string) string {
	for _, h := range r.Header {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

// inlineBytes is the longest body that comes with its answer: another call would cost more
// than the copy.
const inlineBytes = 64 << 10

// Fetch makes a request. An error is an *Error of the host, and the run goes on unless it is
// EPROTO or ECANCELED: EDENIED is a server or a header that is not granted. It needs no
// net/http, which makes a module three times as large and as slow to start; client libraries
// that are built on that take package guesthttp. While one goroutine waits, requests of others are
// made too.
func (r *Run) Fetch(q Request) (*Response, error) {
	frame, err := q.frame()
	if err != nil {
		return nil, err
	}
	reply, err := r.NetworkRequest(frame)
	if err != nil {
		return nil, err
	}
	return r.response(reply)
}

// frame is u32 n, n bytes of JSON, the body.
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

// milliseconds rounds up, as nothing would mean the host's default.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// response reads u32 n, n bytes of JSON, the beginning of the body; or the JSON alone, of a
// host that sends no bodies with it.
func (r *Run) response(reply []byte) (*Response, error) {
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
	body := &fetched{run: r, handle: head.Handle, begun: len(begun) > 0}
	body.from = io.MultiReader(bytes.NewReader(begun), (*rest)(body))
	return &Response{Status: head.Status, URL: head.URL, Header: head.Header, Body: body}, nil
}

// fetched is the body of a Response.
type fetched struct {
	run    *Run
	from   io.Reader
	handle int32 // of what did not come with the answer; 0 for nothing
	begun  bool  // something of it is not in the handle any more
	closed bool
}

func (b *fetched) Read(p []byte) (int, error) {
	if b.closed {
		return 0, errors.New("guest: read of a body that is closed")
	}
	b.begun = true
	return b.from.Read(p)
}

// Close closes the handle, if it is still open.
func (b *fetched) Close() error {
	b.closed = true
	return b.release()
}

func (b *fetched) release() error {
	handle := b.handle
	if b.handle = 0; handle == 0 {
		return nil
	}
	return b.run.CloseHandle(handle)
}

// TakeHandle is for Attach.
func (b *fetched) TakeHandle() (handle int32, ok bool) {
	if b.begun || b.handle == 0 {
		return 0, false
	}
	handle, b.handle, b.closed = b.handle, 0, true
	return handle, true
}

// rest reads what did not come with the answer, and closes the handle behind it.
type rest fetched

func (b *rest) Read(p []byte) (int, error) {
	if b.handle == 0 {
		return 0, io.EOF
	}
	n, err := b.run.ReadHandle(b.handle, p)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	if err != nil {
		_ = (*fetched)(b).release() // its reader has the error to tell
	}
	return n, err
}
