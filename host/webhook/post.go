package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	attemptTime = 15 * time.Second // for a whole attempt
	maxAnswer   = 64 << 10         // bytes read of an answer
)

// A message is one attempt at a delivery.
type message struct {
	url       string
	id        string
	at        time.Time
	signature string
	body      []byte
}

// A poster makes attempts, each on a new connection, so that every attempt resolves and checks its address.
type poster struct {
	gate          *gate
	agent         string
	plain, secure http.RoundTripper
}

func newPoster(g *gate, agent string, conf *tls.Config) *poster {
	transport := func(plain bool) *http.Transport {
		return &http.Transport{
			DialContext: g.dialer(plain), TLSClientConfig: conf,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswer,
		} // no Proxy, because a proxy from the environment would dial unchecked addresses
	}
	return &poster{gate: g, agent: agent, plain: transport(true), secure: transport(false)}
}

// post makes one attempt and returns the status of the answer. It does not follow redirects.
func (p *poster) post(ctx context.Context, m message) (int, error) {
	u, err := p.gate.parse(m.url)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	answer, err := p.transport(u).RoundTrip(p.request(ctx, u, m))
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	_ = answer.Body.Close() // the answer is not needed
	if err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	return answer.StatusCode, nil
}

func (p *poster) transport(u *url.URL) http.RoundTripper {
	if u.Scheme == "http" {
		return p.plain
	}
	return p.secure
}

// request returns the POST request with its signed headers. See docs/spec/api.md, "Webhooks".
func (p *poster) request(ctx context.Context, u *url.URL, m message) *http.Request {
	r := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":      {"application/json"},
			"User-Agent":        {p.agent},
			"Webhook-Id":        {m.id},
			"Webhook-Timestamp": {strconv.FormatInt(m.at.Unix(), 10)},
			"Webhook-Signature": {m.signature},
		},
		Body: io.NopCloser(bytes.NewReader(m.body)), ContentLength: int64(len(m.body)),
	})
	return r.WithContext(ctx)
}
