package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	maxRedirects = 5
	maxTries     = 3 // of a request that the server has no time for
)

// A client sends requests with the user's name and the handle of the password.
type client struct {
	http *http.Client
	auth string
}

func newClient(h *http.Client, s *settings) *client {
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &client{http: h}
	if s.handle != "" {
		c.auth = "Basic-Sealed " + s.user + ":" + s.handle
	}
	return c
}

// An ask is one request.
type ask struct {
	method string
	url    *url.URL
	depth  string // "" sends none
	body   string
	want   int // status
}

// do sends a request. It follows redirects with the same method, which net/http does
// not do, and tries again when the server is busy, after the wait that the server asks
// for. The URL that answered is that of the response's request. The error is a
// *trouble, or the error of a run that is ending.
func (c *client) do(ctx context.Context, a ask) (*http.Response, error) {
	for redirects, tries := 0, 1; ; {
		what := a.method + " " + a.url.Redacted()
		r, err := c.send(ctx, a)
		if err != nil {
			return nil, unsent(err, what)
		}
		if r.StatusCode == a.want {
			return r, nil
		}
		r.Body.Close()
		next := redirectOf(r, a.url)
		switch {
		case next != nil && redirects < maxRedirects:
			redirects++
			a.url, tries = next, 1
		case refusedBy(r, what).reason == reasonBusy && tries < maxTries:
			tries++
		default:
			return nil, refusedBy(r, what)
		}
	}
}

func (c *client) send(ctx context.Context, a ask) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, a.method, a.url.String(), strings.NewReader(a.body))
	if err != nil {
		return nil, err
	}
	if a.body != "" {
		req.Header.Set("Content-Type", "application/xml; charset=utf-8")
	}
	if a.depth != "" {
		req.Header.Set("Depth", a.depth)
	}
	if c.auth != "" {
		req.Header.Set("Authorization", c.auth)
	}
	return c.http.Do(req)
}

// redirectOf is where an answer leads, nil for nowhere.
func redirectOf(r *http.Response, from *url.URL) *url.URL {
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	u, err := from.Parse(r.Header.Get("Location"))
	if err != nil || r.Header.Get("Location") == "" || u.User != nil {
		return nil
	}
	return u
}

// multistatus sends a request whose answer is one, and hands over its responses
// as they come. base is the URL that answered.
func (c *client) multistatus(ctx context.Context, a ask,
	each func(base *url.URL, r *response) error) (token string, err error) {
	a.want = http.StatusMultiStatus
	r, err := c.do(ctx, a)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	token, err = readMultistatus(r.Body, func(one *response) error { return each(r.Request.URL, one) })
	if err != nil {
		return "", broken(err, a.method+" "+a.url.Redacted())
	}
	return token, nil
}

// get fetches an object of at most max bytes.
func (c *client) get(ctx context.Context, u *url.URL, max int64) (data []byte, etag string, err error) {
	r, err := c.do(ctx, ask{method: http.MethodGet, url: u, want: http.StatusOK})
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	data, err = io.ReadAll(io.LimitReader(r.Body, max+1))
	if err != nil {
		return nil, "", unsent(err, "GET "+u.Redacted())
	}
	if int64(len(data)) > max {
		return nil, "", troublef(reasonTooLarge, "%s has more than %d MiB", u.Redacted(), max>>20)
	}
	return data, r.Header.Get("ETag"), nil
}
