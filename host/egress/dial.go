package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Resolver looks names up; *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// requestKey is the key of the request's context in a dial's context, which the transport
// detaches from it.
type requestKey struct{}

// A dialer resolves a name, checks its addresses and connects. The caller has matched the
// host with the policy.
type dialer struct {
	policy   *Policy
	table    *Table
	resolver Resolver
	limits   Limits
	tls      *tls.Config
	ctx      context.Context // of the client
	slots    chan struct{}   // one element per open connection
	dropIdle func()          // closes idle connections

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]struct{}
	closed bool
}

// newDialer returns a dialer whose connections end with ctx.
func newDialer(o Options, conf *tls.Config, life context.Context) *dialer {
	return &dialer{policy: o.Policy, table: o.Table, resolver: o.Resolver, limits: o.Limits, tls: conf, ctx: life,
		slots: make(chan struct{}, o.Limits.Connections), dropIdle: func() {}, open: map[net.Conn]struct{}{}}
}

// dialPlain connects for http.
func (d *dialer) dialPlain(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, stop := d.withTimeout(ctx, d.limits.Dial)
	defer stop()
	return d.dial(ctx, address)
}

// dialTLS connects for https.
func (d *dialer) dialTLS(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, stop := d.withTimeout(ctx, d.limits.Dial+d.limits.TLS)
	defer stop()
	conn, err := d.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	conf := d.tls.Clone()
	conf.ServerName = host
	secured := tls.Client(conn, conf)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake failed
		return nil, err
	}
	return secured, nil
}

// withTimeout limits a dial to its time, its request and its client.
func (d *dialer) withTimeout(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	request, ok := ctx.Value(requestKey{}).(context.Context)
	if !ok {
		request = d.ctx
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	gone := context.AfterFunc(request, cancel) // which ends with the client
	return ctx, func() {
		gone()
		cancel()
	}
}

// dial connects to HOST:PORT with a canonical HOST. It resolves a name once, refuses it if
// any of its addresses is forbidden, and connects to one of them. The address to which the
// kernel connects is checked last.
func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	port := uint16(n)
	private := d.allowsPrivate(host, port)
	addresses, err := d.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if !private && !d.table.Public(a) {
			return nil, errAddress(host, port)
		}
	}
	if err := d.acquire(ctx); err != nil {
		return nil, err
	}
	nd := net.Dialer{ControlContext: func(_ context.Context, _, literal string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(literal)
		if err != nil || to.Port() != port || !private && !d.table.Public(to.Addr()) {
			return errAddress(host, port)
		}
		return nil
	}}
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = nd.DialContext(ctx, "tcp", netip.AddrPortFrom(a, port).String()); err == nil {
			return d.track(conn)
		}
		if denied := (*Error)(nil); errors.As(err, &denied) {
			break
		}
	}
	<-d.slots
	return nil, err
}

// acquire takes a slot for a connection. Idle connections are closed to make room, including
// those that become idle a moment later.
func (d *dialer) acquire(ctx context.Context) error {
	select {
	case d.slots <- struct{}{}:
		return nil
	default:
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		d.dropIdle()
		select {
		case d.slots <- struct{}{}:
			return nil
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A trackedConn releases its slot when it is closed.
type trackedConn struct {
	net.Conn
	d    *dialer
	once sync.Once
}

func (d *dialer) track(conn net.Conn) (net.Conn, error) {
	t := &trackedConn{Conn: conn, d: d}
	d.mu.Lock()
	d.open[t] = struct{}{}
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, errors.Join(ErrClosed, t.Close())
	}
	return t, nil
}

// Close implements net.Conn.
func (t *trackedConn) Close() error {
	t.once.Do(func() {
		t.d.mu.Lock()
		delete(t.d.open, t)
		t.d.mu.Unlock()
		<-t.d.slots
	})
	return t.Conn.Close()
}

// CloseWrite ends sending.
func (t *trackedConn) CloseWrite() error {
	half, ok := t.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// close ends all connections and dials.
func (d *dialer) close() {
	d.mu.Lock()
	d.closed = true
	open := slices.Collect(maps.Keys(d.open))
	d.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close() // whatever it was doing
	}
}

// allowsPrivate reports whether the owner approved exactly this host and port, to whatever
// address it leads. The scheme has been checked in step 3.
func (d *dialer) allowsPrivate(host string, port uint16) bool {
	for _, scheme := range []string{"https", "http"} {
		if e, step := d.policy.Match(scheme, host, port); step == "" && e.Private {
			return true
		}
	}
	return false
}

func (d *dialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	name := host
	if strings.Contains(host, ".") {
		name += "." // keeps search domains from redirecting it
	}
	list, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, Errorf(abi.EUNAVAIL, "unreachable", "host %s cannot be found", host)
	}
	if len(list) == 0 || len(list) > maxAddresses {
		return nil, Errorf(abi.EUNAVAIL, "unreachable", "host %s has %d addresses, want 1 to %d", host,
			len(list), maxAddresses)
	}
	out := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		out = append(out, a.Unmap())
	}
	return out, nil
}

func errAddress(host string, port uint16) *Error {
	return denyf("address", "host %s is not at a public address; an address of its own network is reached only if the owner approves exactly that: --allow-host ADDRESS:%d", host, port)
}
