package egress

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Scrub is a scrubber over forms by handle.
func Scrub(src io.Reader, forms map[string][]string) io.Reader {
	s := &Seals{}
	for handle, list := range forms {
		var of [][]byte
		for _, f := range list {
			of = append(of, []byte(f))
		}
		s.Add("", handle, "", of, nil)
	}
	return newScrubber(src, s.echoes)
}

// Hidden is a text as recordings have it, and what a guest gets of that. held
// stands for value.
func Hidden(text, held, value string, forms [][]byte) (hidden, shown string) {
	v := newValues()
	if value != "" {
		v.AddSecret("token", held, value, forms)
	}
	b := v.hideBody([]byte(text), nil, func(string, int) {})
	return string(b), string(v.show(b))
}

// HeadersFor is what a guest sees of an answer's headers.
var HeadersFor = headersFor

// CookiesAfter are those that go to a URL after one answer of another.
func CookiesAfter(from *url.URL, answer *http.Response, to *url.URL) ([]*http.Cookie, error) {
	j, err := newJar()
	if err != nil {
		return nil, err
	}
	j.storeFrom(from, answer)
	r := &http.Request{URL: to, Header: http.Header{}}
	j.addTo(r)
	return r.Cookies(), nil
}

// Target is where a request for a URL goes.
func Target(raw string, from *url.URL) (u *url.URL, host string, err error) {
	t, err := parseTarget(raw, from)
	return t.url, t.host, err
}

// Enter waits for an origin's turn.
func (g *RateLimiter) Enter(ctx context.Context, origin string, longest time.Duration) (leave func(), err error) {
	return g.acquire(ctx, origin, &wait{remaining: longest})
}

// Answered has the limiter learn from an answer.
func (g *RateLimiter) Answered(origin string, r *http.Response) { g.observe(origin, r) }
