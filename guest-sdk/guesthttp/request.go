package guesthttp

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
)

// maxRequestBody is network.request_body of §17.
const maxRequestBody = 16 << 20

// errRequestBody is a body over it. The number is that of a host with a lower
// limit, but nothing was sent.
var errRequestBody = fmt.Errorf("guesthttp: the request body is over 16 MiB: %w", abi.ETOOBIG)

// A head is the JSON of a request frame.
type head struct {
	Method    string      `json:"method"`
	URL       string      `json:"url"`
	Headers   [][2]string `json:"headers"`
	TimeoutMS int64       `json:"timeout_ms,omitempty"`
	Redirect  string      `json:"redirect"`
	MaxBytes  int64       `json:"max_bytes,omitempty"`
	WaitMS    int64       `json:"wait_ms,omitempty"`
}

// readBody reads the request's body whole. The caller closes it.
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

// frame is u32 n, n bytes of head, the body.
func (t *Transport) frame(req *http.Request, target string, body []byte) ([]byte, error) {
	h := head{Method: req.Method, URL: target, Headers: headers(req.Header), Redirect: "manual",
		MaxBytes: max(t.MaxBytes, 0), WaitMS: max(milliseconds(t.Wait), 0)}
	if h.Method == "" {
		h.Method = http.MethodGet
	}
	if err := h.checkText(); err != nil {
		return nil, err
	}
	if err := expired(req.Context()); err != nil {
		return nil, err
	}
	if deadline, ok := req.Context().Deadline(); ok {
		h.TimeoutMS = max(milliseconds(time.Until(deadline)), 1)
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("guesthttp: encode the request: %w", err)
	}
	frame := make([]byte, 4, 4+len(b)+len(body))
	binary.LittleEndian.PutUint32(frame, uint32(len(b)))
	return append(append(frame, b...), body...), nil
}

// checkText refuses what JSON cannot carry: it would reach the server changed.
func (h *head) checkText() error {
	if !utf8.ValidString(h.Method) || !utf8.ValidString(h.URL) {
		return errors.New("guesthttp: the method or the URL is not UTF-8")
	}
	for _, kv := range h.Headers {
		if !utf8.ValidString(kv[0]) || !utf8.ValidString(kv[1]) {
			return fmt.Errorf("guesthttp: header %q is not UTF-8", kv[0])
		}
	}
	return nil
}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// expired is ctx.Err, and looks at the clock too: in a wasm build no timer
// fires while a goroutine goes from one call to the next.
func expired(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return nil
}
