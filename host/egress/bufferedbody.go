package egress

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"sync/atomic"
)

// A bufferedBody is a complete body, so that the guest reads the same pieces while recording and in
// the replay.
type bufferedBody struct {
	unread  []byte
	endErr  error
	aborted atomic.Bool
}

func newBufferedBody(body []byte, broken *Error) *bufferedBody {
	if broken != nil {
		return &bufferedBody{unread: body, endErr: broken}
	}
	return &bufferedBody{unread: body, endErr: io.EOF}
}

func (t *bufferedBody) Read(p []byte) (int, error) {
	switch {
	case t.aborted.Load():
		return 0, ErrClosed
	case len(t.unread) == 0:
		return 0, t.endErr
	}
	n := copy(p, t.unread)
	t.unread = t.unread[n:]
	return n, nil
}

func (t *bufferedBody) Abort() { t.aborted.Store(true) }

func (t *bufferedBody) Close() error {
	t.unread, t.endErr = nil, io.EOF
	return nil
}

// recordRequest returns a request in the form of recordings.
func (v *values) recordRequest(q *Request, found func(where, mark string)) RecordedRequest {
	out := RecordedRequest{Method: q.Method, URL: v.hideURL(q.URL, atPlace("request url", found)), MaxBytes: q.MaxBytes}
	if q.Redirect != "follow" {
		out.Redirect = q.Redirect
	}
	out.Headers = v.hideHeaders("request", q.Headers, found)
	slices.SortStableFunc(out.Headers, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	body := v.hideBody(q.Body, q.Headers, atPlace("request body", found))
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
