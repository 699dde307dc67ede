package daemon

import (
	"context"
	"net"
	"sync"
)

// A pipe is a listener that only this process can dial. Its connections look like
// those of the local socket, whose peers are the owner.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
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

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipe) Addr() net.Addr { return pipeAddr }

var pipeAddr = &net.UnixAddr{Net: "unix"}

func (p *pipe) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- pipeConn{theirs}:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type pipeConn struct{ net.Conn }

func (pipeConn) LocalAddr() net.Addr  { return pipeAddr }
func (pipeConn) RemoteAddr() net.Addr { return pipeAddr }
