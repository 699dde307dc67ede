package egress

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// A Transport makes requests of the host itself, with the same checks and policy as a
// guest's. It follows no redirects and bounds what it reads.
type Transport struct {
	Client  *Client
	MaxBody int64         // limit of a request's and an answer's body, in bytes
	Timeout time.Duration // limit of one request, without waiting for rate limiters
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper. The error is an *Error; redirects are errors, so
// that the request is sent nowhere else.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	q := &Request{Method: r.Method, URL: r.URL.String(), Timeout: t.Timeout, Wait: t.Timeout, Redirect: "error",
		MaxBytes: t.MaxBody}
	if r.Body != nil {
		defer r.Body.Close()
		body, err := io.ReadAll(io.LimitReader(r.Body, t.MaxBody+1))
		if err != nil || int64(len(body)) > t.MaxBody {
			return nil, Malformed("the body of a request of the host may have %d bytes", t.MaxBody)
		}
		q.Body = body
	}
	for name, values := range r.Header {
		for _, v := range values {
			q.Headers = append(q.Headers, [2]string{name, v})
		}
	}
	got, err := t.Client.Do(r.Context(), q)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(r.Context(), got.Body.Abort)()
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, err
	}
	out := &http.Response{
		Status: http.StatusText(got.Status), StatusCode: got.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
	for _, pair := range got.Headers {
		out.Header.Add(pair[0], pair[1])
	}
	return out, nil
}
