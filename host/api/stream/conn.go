package stream

import (
	"net"
	"sync/atomic"
	"time"
)

// watch reads from a connection whose client should not send anything: an end, an error or a byte
// means that it is gone or speaks another protocol. stop ends the read and waits for it.
func watch(conn net.Conn, gone func()) (stop func()) {
	conn.SetReadDeadline(time.Time{}) // the server's own deadline for the request has expired
	done := make(chan struct{})
	var stopped atomic.Bool
	go func() {
		defer close(done)
		var b [1]byte
		conn.Read(b[:])
		if !stopped.Load() {
			gone()
		}
	}()
	return func() {
		stopped.Store(true)
		conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		conn.SetReadDeadline(time.Time{})
	}
}

// extend extends the connection's write deadline.
func (s *Stream) extend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && !s.hurried {
		s.conn.SetWriteDeadline(time.Now().Add(s.hub.opts.WriteDeadline))
	}
}

// hurry sets the stream's final write deadline, so that a client that does not read delays nobody.
// It reports whether the stream is being served; otherwise it ends as soon as it is.
func (s *Stream) hurry(in time.Duration) (serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hurried = true; s.conn != nil {
		s.conn.SetWriteDeadline(time.Now().Add(in))
	}
	return s.serving
}
