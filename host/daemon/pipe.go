package daemon

import (
	"context"
	"net"
	"sync"
	"time"
)

// A pipe is a listener that only this process can dial. Its connections count as those of the local
// socket, whose peers are the owner.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex // guards dialled
	dialled []net.Conn
	served  sync.WaitGroup // connections not yet closed by the server
}

func newPipe() *pipe { return &pipe{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// hangUpWithin bounds the wait for the server to notice that its connections are closed.
const hangUpWithin = time.Second

// Close closes all connections and waits briefly for the server to notice, since a server that is
// shutting down checks only every 100 ms.
func (p *pipe) Close() error {
	p.once.Do(func() {
		p.mu.Lock()
		close(p.closed)
		for _, c := range p.dialled {
			_ = c.Close()
		}
		p.mu.Unlock()
		gone := make(chan struct{})
		go func() {
			p.served.Wait()
			close(gone)
		}()
		select {
		case <-gone:
		case <-time.After(hangUpWithin):
		}
	})
	return nil
}

func (*pipe) Addr() net.Addr { return pipeAddr }

var pipeAddr = &net.UnixAddr{Net: "unix"}

func (p *pipe) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	c := &pipeConn{Conn: theirs, closed: sync.OnceFunc(p.served.Done)}
	p.mu.Lock()
	select {
	case <-p.closed:
		p.mu.Unlock()
		return nil, net.ErrClosed
	default:
	}
	p.dialled = append(p.dialled, ours)
	p.served.Add(1)
	p.mu.Unlock()
	select {
	case p.conns <- c:
		return ours, nil
	case <-p.closed:
		_ = c.Close()
		return nil, net.ErrClosed
	case <-ctx.Done():
		_ = c.Close()
		return nil, context.Cause(ctx)
	}
}

type pipeConn struct {
	net.Conn
	closed func()
}

func (c *pipeConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

func (*pipeConn) LocalAddr() net.Addr  { return pipeAddr }
func (*pipeConn) RemoteAddr() net.Addr { return pipeAddr }
