package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/google/go-github/v88/github"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

const (
	// maxAnswerBytes bounds one answer. A page of 100 has most often less than 1
	// MiB; texts in it may have 64 KiB each.
	maxAnswerBytes = 24 << 20
	// maxSent is how many requests a run makes in all; of those that nothing
	// came of (304), which cost no rate, settings have no say.
	maxSent = 9500
	// maxETag bounds what goes into a cursor.
	maxETag = 100
)

var (
	errExhausted = errors.New("the requests of this run are used up")
	errElsewhere = errors.New("the server redirects to another one, which is not asked")
	errTooLarge  = errors.New("the answer is too large")
)

// newClient returns go-github over the network binding. The token is a handle:
// the host puts the value into Authorization on the way out.
func newClient(run *guest.Run, set settings) (*github.Client, error) {
	over := guesthttp.New(run)
	over.Wait = set.wait
	options := []github.ClientOptionsFunc{
		github.WithHTTPClient(&http.Client{Transport: &transport{over: over, left: set.requests}, CheckRedirect: stayThere}),
		github.WithURLs(&set.api, nil), github.WithUserAgent("sluice-github"),
	}
	if set.token != "" {
		options = append(options, github.WithAuthToken(set.token))
	}
	return github.NewClient(options...)
}

// stayThere follows redirects, as those of renamed repositories, on one server.
func stayThere(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return errElsewhere
	}
	if len(via) > 3 {
		return errors.New("too many redirects")
	}
	return nil
}

// A transport makes requests conditional, counts them and bounds answers.
type transport struct {
	over       http.RoundTripper
	sent, left int
}

type etagKey struct{}

// withETag makes the requests of a context conditional.
func withETag(ctx context.Context, etag string) context.Context {
	return context.WithValue(ctx, etagKey{}, etag)
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.left <= 0 || t.sent >= maxSent {
		return nil, errExhausted
	}
	if etag, _ := req.Context().Value(etagKey{}).(string); etag != "" {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", etag)
	}
	t.sent++
	resp, err := t.over.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusNotModified {
		t.left--
	}
	resp.Body = &bounded{resp.Body, maxAnswerBytes}
	return resp, nil
}

// A bounded body fails where it is too large, instead of ending.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func etagOf(h http.Header) string {
	if e := h.Get("ETag"); len(e) <= maxETag {
		return e
	}
	return ""
}
