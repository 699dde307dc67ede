package chromium

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/host/egress"
)

// How a browser is confined to its gate.
const (
	ModeNamespace = "namespace" // in a network namespace with nothing but the gate
	ModeFlags     = "flags"     // in the machine's network, by its flags
)

var (
	// ErrMode means that this machine does not let the host make network namespaces.
	ErrMode = errors.New("network namespaces are not available")
	// ErrNamespace means that the process to attach is not in a namespace of its own.
	ErrNamespace = errors.New("the process has no network of its own")
	// ErrGateClosed means that the gate was closed.
	ErrGateClosed = errors.New("egress is closed")
)

// GateOptions configure a Gate. The zero value is what a host uses.
type GateOptions struct {
	Table    *egress.Table   // nil: as for egress.Options
	Resolver egress.Resolver // nil: as for egress.Options
	Mode     string          // "": ModeNamespace where it is available, else ModeFlags
	Limits   GateLimits      // zero: DefaultGateLimits
	// AnyServerName leaves the content of tunnels unchecked: require_sni off.
	AnyServerName bool
}

// A Gate is the only way out of one browser process. It denies everything until a policy is bound
// to it. It is safe for concurrent use.
type Gate struct {
	o       GateOptions
	server  *http.Server
	tunnels chan struct{} // one entry for each open tunnel
	now     atomic.Pointer[bound]
	count   counters
	serving sync.WaitGroup // listeners and requests

	mu       sync.Mutex // guards the fields below
	open     int        // open connections that are no tunnels
	listener net.Listener
	closed   bool
	err      error

	url  string // set once
	dead chan struct{}
}

// OpenGate opens a gate. It listens at once in ModeFlags, and after Attach in ModeNamespace.
func OpenGate(o GateOptions) (*Gate, error) {
	if o.Limits == (GateLimits{}) {
		o.Limits = DefaultGateLimits()
	}
	if o.Table == nil {
		o.Table = &egress.Table{Own: egress.OwnAddresses()}
	}
	if o.Mode == "" {
		o.Mode = EgressMode()
	}
	g := &Gate{o: o, tunnels: make(chan struct{}, o.Limits.Tunnels), url: insideURL, dead: make(chan struct{})}
	g.server = &http.Server{
		Handler: g, ReadHeaderTimeout: o.Limits.Headers, IdleTimeout: o.Limits.Idle, MaxHeaderBytes: o.Limits.HeaderBytes,
		DisableGeneralOptionsHandler: true, ConnState: g.connection, ErrorLog: log.New(io.Discard, "", 0),
	}
	g.now.Store(g.bind(GateBinding{}))
	switch o.Mode {
	case ModeNamespace:
		if err := canUnshare(); err != nil {
			return nil, errors.Join(ErrMode, err)
		}
	case ModeFlags:
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		g.url = "http://" + l.Addr().String()
		return g, g.serve(l)
	default:
		return nil, errors.New("unknown egress mode " + o.Mode)
	}
	return g, nil
}

// EgressMode returns the mode that OpenGate chooses on this machine.
func EgressMode() string {
	if canUnshare() == nil {
		return ModeNamespace
	}
	return ModeFlags
}

// Mode returns ModeNamespace or ModeFlags.
func (g *Gate) Mode() string { return g.o.Mode }

// ProxyURL returns the value for --proxy-server.
func (g *Gate) ProxyURL() string { return g.url }

// Wrap prepares a command that is not started yet: in ModeNamespace it gets a network of its own,
// with all interfaces down, from its first instruction on.
func (g *Gate) Wrap(cmd *exec.Cmd) error {
	if g.o.Mode == ModeNamespace {
		ownNetwork(cmd)
	}
	return nil
}

// Attach opens the gate inside the namespace of a process that was started from a wrapped command
// and has not been waited for. Until then the browser reaches nothing. A later process replaces an
// earlier one. In ModeFlags it does nothing. On ErrNamespace the process would bypass the gate and
// has to be killed.
func (g *Gate) Attach(pid int) error {
	if g.o.Mode != ModeNamespace {
		return nil
	}
	l, err := listenInside(pid)
	if err != nil {
		return err
	}
	return g.serve(l)
}

// serve accepts on l instead of the previous listener.
func (g *Gate) serve(l net.Listener) error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return errors.Join(ErrGateClosed, l.Close())
	}
	before := g.listener
	g.listener = l
	g.serving.Go(func() { g.accept(l) })
	g.mu.Unlock()
	if before != nil {
		_ = before.Close() // of an earlier process
	}
	return nil
}

func (g *Gate) accept(l net.Listener) {
	err := g.server.Serve(l)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == l {
		g.die(err)
	}
}

// die marks the gate as dead. mu is held.
func (g *Gate) die(err error) {
	if g.err == nil {
		g.err = err
		close(g.dead)
	}
}

// Dead is closed when the gate no longer accepts connections: it was closed, or its listener
// failed, which leaves the browser without a network.
func (g *Gate) Dead() <-chan struct{} { return g.dead }

// Bind puts the gate under the policy of a run, with counts of its own. Connections under the
// previous policy end.
func (g *Gate) Bind(b GateBinding) { g.swap(g.bind(b)) }

// Unbind makes the gate deny everything.
func (g *Gate) Unbind() { g.swap(g.bind(GateBinding{})) }

func (g *Gate) swap(next *bound) {
	g.mu.Lock()
	closed := g.closed
	before := next
	if !closed {
		before = g.now.Swap(next)
	}
	g.mu.Unlock()
	before.close()
}

// Close ends every connection and waits for everything that the gate started.
func (g *Gate) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		g.serving.Wait()
		return nil
	}
	g.closed = true
	g.die(ErrGateClosed)
	last := g.now.Load()
	g.mu.Unlock()
	err := g.server.Close()
	last.close()
	g.serving.Wait()
	return err
}

// connection bounds the connections that are no tunnels.
func (g *Gate) connection(c net.Conn, s http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s {
	case http.StateNew:
		if g.open++; g.open > g.o.Limits.Connections {
			_ = c.Close() // too many
		}
	case http.StateHijacked, http.StateClosed:
		g.open--
	}
}

// ServeHTTP implements http.Handler for the gate's own listeners.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.serving.Add(1)
	g.mu.Unlock()
	defer g.serving.Done()
	b := g.now.Load()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()
	r = r.WithContext(ctx)
	if r.ContentLength != 0 { // even for a body that is not read
		// A failure shows at the following read.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.o.Limits.Idle))
	}
	switch {
	case r.ProtoMajor != 1:
		malformed(w)
	case r.Method == http.MethodConnect:
		g.connect(b, w, r)
	default:
		g.forward(b, w, r)
	}
}

// A GateBinding is a run from the view of its gate.
type GateBinding struct {
	Policy *egress.Policy // of the connection; nil allows nothing
	// Bytes bounds the bytes in both directions; 0 is network.run_bytes. Passed counts them,
	// together with the run's own requests if they share it; nil gives the browser a counter of its
	// own.
	Bytes  int64
	Passed *atomic.Int64
	// Denied receives merged denials; it may be nil. It is called from one goroutine at a time,
	// never after Unbind, Bind or Close has returned, and must not call the gate.
	Denied func(Denial)
}

// A bound is a binding in force. It shares nothing with the next one, not even an idle connection.
type bound struct {
	policy    *egress.Policy
	dialer    *egress.Dialer
	transport *http.Transport
	life      context.Context
	end       context.CancelFunc
	most      int64         // bytes
	passed    *atomic.Int64 // bytes passed
	denials   *denials
}

func (g *Gate) bind(of GateBinding) *bound {
	if of.Policy == nil {
		of.Policy = egress.NewPolicy()
	}
	if of.Bytes == 0 {
		of.Bytes = egress.DefaultLimits().RunBytes
	}
	b := &bound{policy: of.Policy, denials: &denials{told: of.Denied, left: mostLines}}
	b.dialer = egress.NewDialer(egress.Options{Policy: of.Policy, Table: g.o.Table, Resolver: g.o.Resolver,
		Limits: g.o.Limits.reaching()})
	b.most, b.passed = of.Bytes, of.Passed
	if b.passed == nil {
		b.passed = new(atomic.Int64)
	}
	b.life, b.end = context.WithCancel(context.Background())
	b.transport = &http.Transport{
		Proxy: nil, DialContext: b.plain, DisableCompression: true, Protocols: onlyHTTP1(),
		ResponseHeaderTimeout: g.o.Limits.Idle, MaxResponseHeaderBytes: int64(g.o.Limits.HeaderBytes),
		MaxIdleConns: 64, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
	}
	return b
}

func onlyHTTP1() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	return p
}

// plain dials for http requests.
func (b *bound) plain(ctx context.Context, _, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	return b.dialer.Dial(ctx, host, uint16(port), "http")
}

// take counts bytes about to pass and reports whether they may.
func (b *bound) take(n int) bool { return b.passed.Add(int64(n)) <= b.most }

// spent reports whether nothing more may pass.
func (b *bound) spent() bool { return b.passed.Load() >= b.most }

// close ends all connections of the binding and reports pending denials.
func (b *bound) close() {
	b.end()
	b.dialer.Close()
	b.transport.CloseIdleConnections()
	b.denials.close()
}

// verdictOf returns the denial that an error stands for, or "" for any other failure.
func verdictOf(err error) string {
	var e *egress.Error
	if errors.As(err, &e) && e.Step != "" {
		return e.Code
	}
	return ""
}

// GateLimits bound what a browser can do to the host through its gate.
type GateLimits struct {
	Tunnels     int           // open at the same time
	Connections int           // from the browser, beside tunnels
	Idle        time.Duration // without traffic, for a tunnel or a request
	Dial        time.Duration // for connecting, and again for the first bytes of a tunnel
	Headers     time.Duration // for reading a request's headers
	HeaderBytes int           // of a request, and of an answer
}

// DefaultGateLimits returns the defaults.
func DefaultGateLimits() GateLimits {
	return GateLimits{Tunnels: 256, Connections: 256, Idle: time.Minute, Dial: 10 * time.Second, Headers: 10 * time.Second,
		HeaderBytes: 256 << 10}
}

// reaching returns the limits of the dialer. Tunnels and plain connections are bounded here, so the
// dialer never waits.
func (l GateLimits) reaching() egress.Limits {
	n := egress.DefaultLimits()
	n.Dial, n.Connections = l.Dial, 2*(l.Tunnels+l.Connections)
	return n
}
