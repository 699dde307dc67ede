package network

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"sync/atomic"
)

// A tape is a complete body, so that the guest reads the same pieces while recording and in
// the replay.
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

// asked returns a request in the form of recordings.
func (v *values) asked(q *Request, found func(where, mark string)) Asked {
	out := Asked{Method: q.Method, URL: v.hideURL(q.URL, spot("request url", found)), MaxBytes: q.MaxBytes}
	if q.Redirect != "follow" {
		out.Redirect = q.Redirect
	}
	out.Headers = v.hideHeaders("request", q.Headers, found)
	slices.SortStableFunc(out.Headers, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	body := v.hideBody(q.Body, q.Headers, spot("request body", found))
	if len(body) > wholeBody {
		sum := sha256.Sum256(body)
		out.Digest, out.Length = hex.EncodeToString(sum[:]), int64(len(body))
	} else if len(body) > 0 {
		out.Body = body
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
