package egress

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// Options of a Client. Only Policy is required.
type Options struct {
	Policy           *Policy
	Reserved         *Policy      // approved for the host only, for a better error; may be nil
	Table            *Table       // nil excludes the addresses of this machine
	Resolver         Resolver     // nil uses Go's resolver
	RateLimiter      *RateLimiter // nil makes one with defaults
	ConnectorLimiter *RateLimiter // rate that the connector declares; may be nil
	TLS              *tls.Config  // nil uses the system's roots; an operator can add only roots for one exact host
	Limits           Limits
	Seals            *Seals // may be nil
	// Audit is called for every hop when its answer has ended or it has failed; may be nil.
	// Calls may be concurrent.
	Audit func(Hop)
}

// A Client makes the requests of one run. Connections, cookies and sessions are not shared
// with other runs. It is safe for concurrent use.
type Client struct {
	options   Options
	dialer    *dialer
	transport *http.Transport
	jar       *jar
	ctx       context.Context // context of all bodies
	cancel    context.CancelCauseFunc
	requests  atomic.Int64
	received  atomic.Int64
}

func NewClient(o Options) (*Client, error) {
	o = o.withDialDefaults()
	o.RateLimiter = cmp.Or(o.RateLimiter, NewRateLimiter(DefaultRateLimit()))
	o.Seals = cmp.Or(o.Seals, &Seals{})
	if o.Audit == nil {
		o.Audit = func(Hop) {}
	}
	j, err := newJar()
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{}
	if o.TLS != nil {
		conf = o.TLS.Clone()
	}
	conf.MinVersion, conf.InsecureSkipVerify, conf.NextProtos = max(conf.MinVersion, tls.VersionTLS12), false,
		[]string{"h2", "http/1.1"}
	life, end := context.WithCancelCause(context.Background())
	d := newDialer(o, conf, life)
	t := &http.Transport{
		Proxy: nil, DialContext: d.dialPlain, DialTLSContext: d.dialTLS, ForceAttemptHTTP2: true,
		ResponseHeaderTimeout: o.Limits.Headers, MaxResponseHeaderBytes: o.Limits.ResponseHeaderBytes,
		DisableCompression: true, MaxIdleConnsPerHost: 32, MaxIdleConns: 64, IdleConnTimeout: time.Minute,
		// per unread body
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 1 << 20},
	}
	d.dropIdle = t.CloseIdleConnections
	return &Client{options: o, jar: j, ctx: life, cancel: end, dialer: d, transport: t}, nil
}

// withDialDefaults fills in the defaults that connecting needs.
func (o Options) withDialDefaults() Options {
	o.Table = cmp.Or(o.Table, &Table{Own: OwnAddresses()})
	o.Resolver = cmp.Or[Resolver](o.Resolver, &net.Resolver{PreferGo: true})
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	return o
}

// Close ends requests in progress, including bodies, and all connections.
func (c *Client) Close() {
	c.cancel(ErrClosed)
	c.dialer.close()
	c.transport.CloseIdleConnections()
}

// A Response is an answer. The caller closes Body.
type Response struct {
	Status    int
	Headers   [][2]string
	URL       string
	Redirects int
	Bytes     int64 // of the body; -1 if unknown or encoded
	Sent      int64 // of the encoded body; -1 if unknown
	Body      Stream
}

// A Stream is the body of an answer. Read returns an *Error or io.EOF.
type Stream interface {
	io.ReadCloser
	// Abort ends a Read in progress and makes later ones fail. It is safe for concurrent
	// use.
	Abort()
}

// Stopped implements the exchanger of a session: nothing stops a client.
func (c *Client) Stopped(bool) *Error { return nil }

// Limits returns what bounds the client's requests.
func (c *Client) Limits() Limits { return c.options.Limits }

// Seals returns the sealed values of the client.
func (c *Client) Seals() *Seals { return c.options.Seals }

// Received returns the counter of bytes that the client received, which others that receive for the same run
// count in too. It is safe for concurrent use.
func (c *Client) Received() *atomic.Int64 { return &c.received }

// Do makes one request and follows its redirects. ctx ends it until Do returns; after that
// the body lives until it is closed. The error is an *Error. A request that fails a check
// is not sent.
func (c *Client) Do(ctx context.Context, q *Request) (*Response, error) {
	if c.received.Load() > c.options.Limits.RunBytes {
		return nil, errReceived(c.options.Limits.RunBytes)
	}
	t, err := parseTarget(q.URL, nil)
	if err != nil {
		return nil, err
	}
	total := c.options.Limits.Total
	if q.Timeout > 0 {
		total = q.Timeout
	}
	reqCtx, cancel := context.WithCancelCause(c.ctx)
	timeout := time.AfterFunc(total, func() { cancel(errTimeout) })
	stop := context.AfterFunc(ctx, func() { cancel(ErrClosed) })
	defer stop()
	end := func() {
		timeout.Stop()
		cancel(nil)
	}
	r, err := c.followRedirects(reqCtx, q, t,
		&wait{remaining: q.maxWait(total), timeout: timeout, timeoutLeft: total, resumed: time.Now(), onWait: q.Waiting})
	if err != nil {
		if context.Cause(reqCtx) != nil {
			err = contextError(reqCtx)
		}
		end()
		return nil, c.guestError(err)
	}
	out, err := c.response(reqCtx, cancel, q, r, end)
	if err != nil {
		end()
		_ = r.Body.Close() // refused
		r.audit.Refused = AsError(err).Code
		c.options.Audit(r.audit)
		return nil, c.guestError(err)
	}
	return out, nil
}

// guestError returns the error for the guest, with sealed values replaced in the
// server's words.
func (c *Client) guestError(err error) *Error {
	out := *AsError(err)
	out.Message = unseal(c.options.Seals.echoes(), out.Message)
	return &out
}

// A responseHead is a response whose body has not been read.
type responseHead struct {
	*http.Response
	family string
}

// A finalResponse is a response that is not followed, with its origin, and the audit entry to write when its body has
// ended.
type finalResponse struct {
	*http.Response
	target    target
	redirects int
	audit     Hop
}

// followRedirects makes a request and follows redirects. What was meant for one origin is never sent
// to another.
func (c *Client) followRedirects(ctx context.Context, q *Request, t target, w *wait) (*finalResponse, error) {
	h := hop{method: q.Method, headers: q.Headers, body: q.Body}
	sealed := false  // a value was sent, now or in an earlier hop
	mayRenew := true // a refused value may be replaced once
	for redirects := 0; ; redirects++ {
		r, subst, audit, err := c.sendHop(ctx, h, t, w)
		if err == nil && mayRenew && r.StatusCode == http.StatusUnauthorized && len(subst.sent) > 0 {
			mayRenew = false
			r, audit, err = c.retryRenewed(ctx, r, audit, subst, h, t, w)
		}
		if err != nil {
			c.options.Audit(audit)
			return nil, err
		}
		sealed = sealed || len(subst.uses) > 0
		location := r.Header.Get("Location")
		if q.Redirect == "manual" || location == "" || !isRedirect(r.StatusCode) {
			return &finalResponse{r, t, redirects, audit}, nil
		}
		to, err := c.redirectTarget(q, t, location, redirects)
		if err != nil {
			_ = r.Body.Close() // of a redirect
			audit.Refused = AsError(err).Code
			c.options.Audit(audit)
			return nil, err
		}
		if t.origin() != to.origin() && (sealed || c.options.Seals.containsValue(to.url)) {
			return &finalResponse{r, t, redirects, audit}, nil // the guest sees the redirect
		}
		c.options.Audit(audit)
		_ = r.Body.Close() // of a redirect
		h = h.redirect(r.StatusCode, t.origin() == to.origin(), c.options.Seals.masks())
		t = to
	}
}

// retryRenewed repeats a request whose values the server refused, if they can be replaced.
// Otherwise it returns the answer r and its audit entry.
func (c *Client) retryRenewed(ctx context.Context, r *http.Response, audit Hop, subst *substitution, h hop, t target,
	w *wait) (*http.Response, Hop, error) {
	newer, err := subst.renew(ctx)
	if err == nil && !newer {
		return r, audit, nil
	}
	_ = r.Body.Close() // of a refusal
	if err != nil {
		audit.Refused = AsError(err).Code
		return nil, audit, err
	}
	c.options.Audit(audit)
	r, _, audit, err = c.sendHop(ctx, h, t, w)
	return r, audit, err
}

// redirectTarget returns the target of a redirect, if it may be followed.
func (c *Client) redirectTarget(q *Request, from target, location string, count int) (target, error) {
	if q.Redirect == "error" {
		return target{}, denyf("redirect", "the server redirects, and the request asked for none")
	}
	if count == c.options.Limits.Redirects {
		return target{}, denyf("redirect", "the server redirects more than %d times", c.options.Limits.Redirects)
	}
	to, err := parseTarget(location, from.url)
	if err == nil && from.scheme == "https" && to.scheme != "https" {
		err = denyf("redirect", "the server redirects from https to %s", to.scheme)
	}
	return to, err
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// maxWait returns how long rate limiters may delay the request.
func (q *Request) maxWait(total time.Duration) time.Duration {
	if q.Wait > 0 {
		return q.Wait
	}
	return total
}

// A hop is a request to one origin.
type hop struct {
	method  string
	headers [][2]string
	body    []byte
}

// redirect returns the next hop: 303, and 301 and 302 after POST, change the method to
// GET. Another origin gets no body and no credentials, neither those known by name nor
// anything that contains a secret.
func (h hop) redirect(status int, same bool, masks []echo) hop {
	next := hop{method: h.method, body: h.body}
	if status == http.StatusSeeOther && h.method != http.MethodHead ||
		(status == http.StatusMovedPermanently || status == http.StatusFound) && h.method == http.MethodPost {
		next.method, next.body = http.MethodGet, nil
	}
	if !same {
		next.body = nil
	}
	for _, pair := range h.headers {
		name := textproto.CanonicalMIMEHeaderKey(pair[0])
		if !same && (isCredentialHeader(name) || unseal(masks, pair[1]) != pair[1]) ||
			next.body == nil && strings.HasPrefix(name, "Content-") {
			continue
		}
		next.headers = append(next.headers, pair)
	}
	return next
}

// sendHop sends one request: steps 3 to 7. subst says which values it contained, and audit is its
// audit entry.
func (c *Client) sendHop(ctx context.Context, h hop, t target,
	w *wait) (r *http.Response, subst *substitution, audit Hop, err error) {
	began := time.Now()
	head, subst, err := c.send(ctx, h, t, w)
	audit = auditOf(h, t, head, err, began, c.options.Seals.masks())
	if err != nil {
		return nil, subst, audit, err
	}
	return head.Response, subst, audit, nil
}

func (c *Client) send(ctx context.Context, h hop, t target, w *wait) (r *responseHead, subst *substitution, err error) {
	if _, step := c.options.Policy.Match(t.scheme, t.host, t.port); step != "" {
		return nil, nil, c.errPolicy(step, t)
	}
	filled, subst, err := c.options.Seals.substitute(ctx, h, t)
	if err != nil {
		return nil, nil, err
	}
	if c.requests.Add(1) > c.options.Limits.RunRequests {
		return nil, nil, Errorf(abi.ERATE, "request_limit", "a run may make %d requests", c.options.Limits.RunRequests)
	}
	for _, g := range []*RateLimiter{c.options.ConnectorLimiter, c.options.RateLimiter} {
		if g == nil {
			continue
		}
		release, err := g.acquire(ctx, t.origin(), w)
		if err != nil {
			return nil, nil, err
		}
		defer release()
	}
	c.options.Seals.note(subst.uses)
	r, err = c.exchange(ctx, filled, t)
	return r, subst, err
}

// exchange sends a request that has passed all checks, and waits for the headers of the
// answer. With an error it still returns the address family.
func (c *Client) exchange(ctx context.Context, h hop, t target) (*responseHead, error) {
	w := &connTrace{client: c}
	ctx, w.cancel = context.WithCancelCause(ctx)
	traced := httptrace.WithClientTrace(context.WithValue(ctx, requestKey{}, ctx), w.trace())
	req, err := http.NewRequestWithContext(traced, h.method, t.url.String(), bytes.NewReader(h.body))
	if err != nil {
		return nil, Malformed("the request cannot be made of it")
	}
	if len(h.body) == 0 {
		req.Body, req.GetBody = nil, nil
	}
	for _, pair := range h.headers {
		req.Header.Add(pair[0], pair[1])
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "sluice")
	}
	req.Header.Set("Accept-Encoding", "gzip")
	c.jar.addTo(req)
	r, err := c.transport.RoundTrip(req)
	if err != nil {
		if why := context.Cause(ctx); why != nil {
			err = why
		}
		w.cancel(nil)
		return &responseHead{family: w.family()}, exchangeError(err)
	}
	if r.StatusCode == http.StatusSwitchingProtocols { // the rest is not HTTP, and net/http no longer watches it
		w.cancel(nil)
		_ = r.Body.Close() // unread
		return &responseHead{r, w.family()}, Errorf(abi.EUNAVAIL, "broken_answer", "the server changes the protocol")
	}
	c.received.Add(headerBytes(r.Header))
	c.options.RateLimiter.observe(t.origin(), r)
	c.jar.storeFrom(t.url, r)
	if err := c.options.Seals.sealHeaders(t, r); err != nil {
		w.cancel(nil)
		_ = r.Body.Close() // unread
		return &responseHead{r, w.family()}, err
	}
	return &responseHead{r, w.family()}, nil
}

// A connTrace observes one exchange in the transport.
type connTrace struct {
	client        *Client
	cancel        context.CancelCauseFunc
	informational atomic.Int64
	attempts      atomic.Int64
	connFamily    atomic.Value // string, see family
}

func (w *connTrace) family() string {
	f, _ := w.connFamily.Load().(string)
	return f
}

// trace ends an exchange with too many informational answers, and one that the transport
// sends more than twice, as it does if connections break before answering.
func (w *connTrace) trace() *httptrace.ClientTrace {
	most := int64(w.client.options.Limits.Informational)
	return &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			if w.informational.Add(1) > most {
				err := Errorf(abi.EUNAVAIL, "broken_answer", "the server gave more than %d answers before the answer", most)
				w.cancel(err)
				return err
			}
			return nil
		},
		GotConn: func(info httptrace.GotConnInfo) {
			w.connFamily.Store(family(info.Conn))
			if w.attempts.Add(1) > 1 {
				w.client.requests.Add(1)
			}
			if w.attempts.Load() > 2 {
				w.cancel(Errorf(abi.EUNAVAIL, "broken_off", "the server breaks its connections before it answers"))
			}
		},
	}
}

// headerBytes returns the approximate size of headers.
func headerBytes(h http.Header) (n int64) {
	for name, values := range h {
		for _, v := range values {
			n += int64(len(name) + len(v) + 4)
		}
	}
	return n
}

// errPolicy returns the denial of step 3, with what would permit the request.
func (c *Client) errPolicy(step string, t target) *Error {
	if r := c.options.Reserved; r != nil {
		if _, missing := r.Match(t.scheme, t.host, t.port); missing == "" {
			return denyf(step, "%s is approved for fetching tokens only, which the host does; a connector that needs it lists it in its manifest", t.origin())
		}
	}
	want := Entry{Scheme: t.scheme, Host: t.host, Port: t.port}
	return denyf(step, "%s is not approved for this connection; --allow-host %s approves it, for a run or with sluice grant", t.origin(), want)
}

// exchangeError returns the error for a failed exchange, without addresses.
func exchangeError(err error) *Error {
	var e *Error
	var cert *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &cert):
		return Errorf(abi.EUNAVAIL, "tls_failed", "the server's certificate is not valid for this host")
	case errors.As(err, &timeout) && timeout.Timeout():
		return Errorf(abi.ETIMEOUT, "timeout", "the server did not answer in time")
	}
	return AsError(err)
}

// response converts an answer to what the guest gets.
func (c *Client) response(ctx context.Context, cancel context.CancelCauseFunc, q *Request, r *finalResponse,
	done func()) (*Response, error) {
	most := c.options.Limits.Response
	if q.MaxBytes > 0 {
		most = q.MaxBytes
	}
	b, err := newBody(ctx, cancel, r.Response, most, c.options.Limits, &c.received, done)
	if err != nil {
		return nil, err
	}
	echoes := c.options.Seals.echoes()
	b.onClose = func(raw int64, failed string) {
		r.audit.Received += raw
		r.audit.Refused = failed
		c.options.Audit(r.audit)
	}
	out := &Response{Status: r.StatusCode, URL: unseal(echoes, r.target.url.String()), Redirects: r.redirects,
		Bytes: r.ContentLength, Sent: r.ContentLength, Body: b}
	if hasNoBody(r.Response) {
		out.Sent = 0
	}
	encoded := b.decoded != io.Reader(b.raw)
	hasTokens := !hasNoBody(r.Response) && len(c.options.Seals.placesIn(r.target, true)) > 0
	if c.options.Seals.any() {
		// a truncated value would not be found
		if r.StatusCode == http.StatusPartialContent &&
			c.options.Seals.cutsValues(r.target.origin(), r.Header.Get("Content-Type")) {
			return nil, denyf("header",
				"the server answered with a part of a body, in which a secret could not be found; leave the header Range out")
		}
		encoded = true
		if !hasTokens {
			b.decoded = newScrubber(b.decoded, c.options.Seals.echoes)
		}
	}
	if encoded {
		out.Bytes = -1
	}
	if out.Bytes > most && r.Request.Method != http.MethodHead {
		return nil, Errorf(abi.ETOOBIG, "response_too_large", "the body has %d bytes, the limit is %d; max_bytes raises it",
			out.Bytes, most)
	}
	if hasTokens {
		whole := c.options.Seals.sealBody(r.target, r.StatusCode, b)
		_ = b.Close() // read
		out.Body, out.Sent = whole, int64(len(whole.unread))
		echoes = c.options.Seals.echoes()
	}
	out.Headers = headersFor(r.Header, encoded)
	for i, pair := range out.Headers {
		out.Headers[i] = [2]string{unseal(echoes, pair[0]), unseal(echoes, pair[1])}
	}
	return out, nil
}
