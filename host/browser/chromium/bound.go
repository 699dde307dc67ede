package chromium

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/host/network"
)

// A GateBinding is a run as its gate sees it.
type GateBinding struct {
	Policy *network.Policy // of the connection; nil allows nothing
	// Bytes may pass in both directions; 0 is network.run_bytes (B241). Passed counts
	// them, with those of the run's own requests if it is theirs too; nil: a count of
	// the browser's alone.
	Bytes  int64
	Passed *atomic.Int64
	// Denied is told of denials, merged (B243); nil for nobody. It is called from one
	// goroutine at a time, not after Unbind, Bind or Close has returned, and must not
	// call the gate.
	Denied func(Denial)
}

// A bound is a binding at work. Nothing of it is shared with the next one, not
// even an idle connection (S72).
type bound struct {
	policy    *network.Policy
	dialer    *network.Dialer
	transport *http.Transport
	life      context.Context
	end       context.CancelFunc
	most      int64         // bytes
	passed    *atomic.Int64 // of them
	denials   *denials
}

func (g *Gate) bind(of GateBinding) *bound {
	if of.Policy == nil {
		of.Policy = network.NewPolicy()
	}
	if of.Bytes == 0 {
		of.Bytes = network.DefaultLimits().RunBytes
	}
	b := &bound{policy: of.Policy, denials: &denials{told: of.Denied, left: mostLines}}
	b.dialer = network.NewDialer(network.Options{Policy: of.Policy, Table: g.o.Table, Resolver: g.o.Resolver, Limits: g.o.Limits.reaching()})
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

// plain connects for requests of http.
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

// take counts bytes that are to pass, and reports whether they may.
func (b *bound) take(n int) bool { return b.passed.Add(int64(n)) <= b.most }

// spent reports whether nothing may pass any more.
func (b *bound) spent() bool { return b.passed.Load() >= b.most }

// close ends what is under the binding, and tells what was denied.
func (b *bound) close() {
	b.end()
	b.dialer.Close()
	b.transport.CloseIdleConnections()
	b.denials.close()
}

// verdictOf is the denial that an error is, "" for another failure.
func verdictOf(err error) string {
	var e *network.Error
	if errors.As(err, &e) && e.Step != "" {
		return e.Code
	}
	return ""
}
