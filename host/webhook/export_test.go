package webhook

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// A Sent is an attempt as tests see it.
type Sent struct {
	URL, ID, Signature string
	At                 time.Time
	Body               []byte
}

// Post has attempts made by a test.
func (o Options) Post(post func(context.Context, Sent) (int, error)) Options {
	o.post = func(ctx context.Context, m message) (int, error) {
		return post(ctx, Sent{m.url, m.id, m.signature, m.at, m.body})
	}
	return o
}

// Trust has certificates of a test server accepted.
func (o Options) Trust(conf *tls.Config) Options { o.tls = conf; return o }

// Lanes bounds what a webhook keeps in memory.
func (o Options) Lanes(n int) Options { o.most = n; return o }

// PostThrough makes one attempt over a transport.
func PostThrough(ctx context.Context, t http.RoundTripper, url string) (int, error) {
	p := poster{gate: &gate{}, secure: t}
	return p.post(ctx, message{url: url, id: "msg_1", at: time.Now(), body: []byte("{}")})
}

var Delays = delays
