package network

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/textproto"
	"slices"
	"sync/atomic"
)

// A tape is a body that is there already: the guest reads it in the same pieces
// while it is recorded and when it is replayed.
type tape struct {
	left    []byte
	end     error
	aborted atomic.Bool
}

func newTape(body []byte, broken *Error) *tape {
	if broken != nil {
		return &tape{left: body, end: broken}
	}
	return &tape{left: body, end: io.EOF}
}

func (t *tape) Read(p []byte) (int, error) {
	switch {
	case t.aborted.Load():
		return 0, errClosed
	case len(t.left) == 0:
		return 0, t.end
	}
	n := copy(p, t.left)
	t.left = t.left[n:]
	return n, nil
}

func (t *tape) Abort() { t.aborted.Store(true) }

func (t *tape) Close() error {
	t.left, t.end = nil, io.EOF
	return nil
}

// asked is a request as recordings have it.
func (v *values) asked(q *Request, found func(where, mark string)) Asked {
	hide := v.hiding(found)
	out := Asked{Method: q.Method, URL: hide("request url", q.URL), MaxBytes: q.MaxBytes}
	if q.Redirect != "follow" {
		out.Redirect = q.Redirect
	}
	out.Headers = hideHeaders("request", q.Headers, hide)
	slices.SortStableFunc(out.Headers, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	body := v.hideBody(q.Body, spot("request body", found))
	if len(body) > wholeBody {
		sum := sha256.Sum256(body)
		out.Digest, out.Length = hex.EncodeToString(sum[:]), int64(len(body))
	} else if len(body) > 0 {
		out.Body = body
	}
	return out
}

// hiding is hide with the place where something was found.
func (v *values) hiding(found func(where, mark string)) func(where, text string) string {
	return func(where, text string) string {
		return string(v.hide([]byte(text), spot(where, found)))
	}
}

// spot tells found where; nil for nobody.
func spot(where string, found func(where, mark string)) func(mark string) {
	return func(mark string) {
		if found != nil {
			found(where, mark)
		}
	}
}

func hideHeaders(of string, headers [][2]string, hide func(where, text string) string) (out [][2]string) {
	for _, pair := range headers {
		name := textproto.CanonicalMIMEHeaderKey(pair[0])
		out = append(out, [2]string{name, hide(of+" header "+name, pair[1])})
	}
	return out
}

func hashOf(parts ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte{byte(len(p))})
		h.Write(p)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
