// Package client calls the API of a running host: over the local socket in its data
// directory, where file permissions identify the owner, or over its address with an
// API key.
//
// Answers are limited in size and as trustworthy as the host. Text in them that comes
// from connectors must be escaped by whoever shows it. A Client is safe for concurrent
// use.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/patience"
	"github.com/sluicehost/sluice/store"
)

// A Client speaks to one host. Each resource of the API is a type that Client
// embeds.
type Client struct {
	*transport
	artifactClient
	assistanceClient
	assistantClient
	auditClient
	authorizationClient
	connectionClient
	connectorClient
	destinationClient
	eventClient
	fileClient
	grantClient
	hostClient
	keyClient
	queryClient
	recordClient
	runClient
	scheduleClient
	searchClient
	secretClient
	stateClient
	systemClient
	webhookClient
}

func newClient(t *transport) *Client {
	return &Client{
		t, artifactClient{t}, assistanceClient{t}, assistantClient{t}, auditClient{t}, authorizationClient{t},
		connectionClient{t}, connectorClient{t}, destinationClient{t}, eventClient{t}, fileClient{t}, grantClient{t},
		hostClient{t}, keyClient{t}, queryClient{t}, recordClient{t}, runClient{t}, scheduleClient{t}, searchClient{t},
		secretClient{t}, stateClient{t}, systemClient{t}, webhookClient{t},
	}
}

// The resources, each with its calls.
type (
	artifactClient    struct{ *transport }
	assistantClient   struct{ *transport }
	assistanceClient  struct{ *transport }
	auditClient       struct{ *transport }
	connectionClient  struct{ *transport }
	connectorClient   struct{ *transport }
	destinationClient struct{ *transport }
	eventClient       struct{ *transport }
	fileClient        struct{ *transport }
	grantClient       struct{ *transport }
	hostClient        struct{ *transport }
	keyClient         struct{ *transport }
	queryClient       struct{ *transport }
	recordClient      struct{ *transport }
	runClient         struct{ *transport }
	scheduleClient    struct{ *transport }
	secretClient      struct{ *transport }
	stateClient       struct{ *transport }
	systemClient      struct{ *transport }
	webhookClient     struct{ *transport }
)

// transport sends requests to a host and reads its answers.
type transport struct {
	http  *http.Client
	base  string // scheme and host, without a slash at the end
	key   string // "" on the local socket
	where string // for people
	local bool
	wait  time.Duration // between attempts to reconnect to an event stream
	hello time.Duration // how long Alive waits for an answer
}

// Client implements the services of the application.
var (
	_ host.Connectors  = (*Client)(nil)
	_ host.Connections = (*Client)(nil)
	_ host.Grants      = (*Client)(nil)
	_ host.Hosts       = (*Client)(nil)
	_ host.Secrets     = (*Client)(nil)
	_ host.Schedules   = (*Client)(nil)
	_ host.Backups     = (*Client)(nil)
	_ host.Assistants  = (*Client)(nil)
)

// Limits on the size of answers, in bytes.
const (
	maxAnswer = 128 << 20 // a page of large records
	maxError  = 1 << 20
)

// answerWithin bounds a request other than a stream. Installing a connector and
// starting a run may compile a module first.
const answerWithin = 3 * time.Minute

// dialAgain is the pause before dialing again when the socket's backlog is full.
const dialAgain = 50 * time.Millisecond

// Socket returns a client of the host that listens on a socket file. It does not
// connect; Alive reports whether a host is there.
func Socket(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		for {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "unix", path)
			if !errors.Is(err, syscall.EAGAIN) { // the backlog is full
				return conn, err
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(dialAgain):
			}
		}
	}
	return owner(dial, path)
}

// Local returns a client of a host in this process, which dial connects it to; where
// names the host for people.
func Local(dial func(context.Context) (net.Conn, error), where string) *Client {
	return owner(func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }, where)
}

func owner(dial func(ctx context.Context, network, address string) (net.Conn, error), where string) *Client {
	return newClient(&transport{http: httpClient(&http.Transport{DialContext: dial}), base: "http://localhost",
		where: where, local: true, wait: retryWait, hello: aliveWithin})
}

// ErrAddress reports that an address is invalid, or that a key must not be sent to it.
var ErrAddress = errors.New("want https://HOST, or http:// and an address of this machine")

// URL returns a client of the host at an address. Every request carries the key,
// so plain HTTP to another machine is refused with ErrAddress.
func URL(address, key string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, ErrAddress
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, ErrAddress
	}
	return newClient(&transport{http: httpClient(&http.Transport{}), base: u.Scheme + "://" + u.Host, key: key,
		where: u.Host, wait: retryWait, hello: aliveWithin}), nil
}

func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

// httpClient returns a client that follows no redirect, which could leak the key.
func httpClient(t *http.Transport) *http.Client {
	t.MaxResponseHeaderBytes, t.TLSHandshakeTimeout = 64<<10, 10*time.Second
	return &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Local reports whether the client uses the socket: it then acts as the owner, on
// the same machine.
func (c *transport) Local() bool { return c.local }

// Where returns the host's name to show to people.
func (c *transport) Where() string { return c.where }

// Close drops idle connections.
func (c *transport) Close() { c.http.CloseIdleConnections() }

// aliveWithin is how long Alive waits for an answer on an idle machine.
const aliveWithin = 2 * time.Second

// Alive reports whether a host answers, whatever the answer. The error is an
// *[UnreachableError] for a host that accepts the connection but does not answer in
// time: it is busy rather than absent.
func (c *transport) Alive(ctx context.Context) (bool, error) {
	within, cancel := patience.Within(ctx, c.hello)
	defer cancel()
	res, err := c.send(within, http.MethodGet, "/healthz", nil, nil, nil)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case within.Err() != nil:
		return false, &UnreachableError{Where: c.where,
			Err: fmt.Errorf("a host listens there and is busy: %w", context.Cause(within))}
	case err != nil:
		return false, nil
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxError)
	return res.StatusCode == http.StatusOK, nil
}

// An UnreachableError reports that no host answered.
type UnreachableError struct {
	Where string
	Err   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no host answers at %s: %v", e.Where, e.Err)
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// send makes a request. The caller closes the body. The error is store.ErrNotFound for
// the empty path that at returns for an impossible name.
func (c *transport) send(ctx context.Context, method, path string, query url.Values, header http.Header,
	body io.Reader) (*http.Response, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, store.ErrNotFound
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if header != nil {
		q.Header = header
	}
	if c.key != "" {
		q.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(q)
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var of *url.Error
	if errors.As(err, &of) { // it repeats the address
		err = of.Err
	}
	return nil, &UnreachableError{c.where, err}
}

// call sends in as JSON, if it is not nil, and reads the answer into out, if that
// is not nil. The error of the host is an *Error.
func (c *transport) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	header, body, err := encode(in)
	if err != nil {
		return err
	}
	return c.exchange(ctx, method, path, query, header, body, out)
}

// encode returns what a request with in as JSON has; nil is no body.
func encode(in any) (header http.Header, body io.Reader, err error) {
	header = http.Header{"Accept": {"application/json"}}
	if in == nil {
		return header, nil, nil
	}
	b, err := json.Marshal(in)
	if err != nil {
		return nil, nil, fmt.Errorf("encode request: %w", err)
	}
	header.Set("Content-Type", "application/json")
	return header, bytes.NewReader(b), nil
}

func (c *transport) exchange(ctx context.Context, method, path string, query url.Values, header http.Header,
	body io.Reader, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return c.await(ctx, method, path, query, header, body, out)
}

// await is exchange without a time limit other than that of ctx.
func (c *transport) await(ctx context.Context, method, path string, query url.Values, header http.Header,
	body io.Reader, out any) error {
	_, err := c.receive(ctx, method, path, query, header, body, out)
	return err
}

// put changes a resource if it has the given revision, nil for any, and reports whether
// it was created.
func (c *transport) put(ctx context.Context, method, path string, revision *uint64, in,
	out any) (created bool, err error) {
	header, body, err := encode(in)
	if err != nil {
		return false, err
	}
	if revision != nil {
		header.Set("If-Match", strconv.Quote(strconv.FormatUint(*revision, 10)))
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	status, err := c.receive(ctx, method, path, nil, header, body, out)
	return status == http.StatusCreated, err
}

func (c *transport) receive(ctx context.Context, method, path string, query url.Values, header http.Header,
	body io.Reader, out any) (status int, err error) {
	res, err := c.send(ctx, method, path, query, header, body)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return res.StatusCode, errorOf(res)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, &UnreachableError{c.where, err}
	case len(b) > maxAnswer:
		return 0, fmt.Errorf("the answer of %s is larger than %d bytes", c.where, maxAnswer)
	case out == nil:
		return res.StatusCode, nil
	}
	if raw, ok := out.(*json.RawMessage); ok {
		*raw = b
		return res.StatusCode, nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return 0, fmt.Errorf("read answer of %s: %w", c.where, err)
	}
	return res.StatusCode, nil
}

func (c *transport) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, out)
}

// at joins escaped segments to a path below /v1. It returns "" if one cannot name
// anything, such as an id typed as "..".
func at(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return ""
		}
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
