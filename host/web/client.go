package web

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
)

// reloadInterval is how often it is looked whether a client is still there.
const reloadInterval = 250 * time.Millisecond

// ClientContext is PollContext for work that is for nobody but the client: it also ends when
// that has gone, within a second where the system tells. The handler calls done when the work is.
func ClientContext(c *fiber.Ctx) (ctx context.Context, done context.CancelFunc) {
	ctx, done = context.WithCancel(PollContext(c))
	if raw := socketOf(c.Context().Conn()); raw != nil {
		go func() {
			tick := time.NewTicker(reloadInterval)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if hungUp(raw) {
					done()
				}
			}
		}()
	}
	return ctx, done
}

// socketOf is the socket below a connection, nil for one without.
func socketOf(conn net.Conn) syscall.RawConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*countedConn); ok {
		conn = c.Conn
	}
	s, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
