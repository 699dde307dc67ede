package stream

import (
	"net"
	"sync/atomic"
	"time"
)

// watch reads one byte of a connection whose client is not expected to send
// any: an end, an error or a byte means that it has gone, or speaks another
// protocol. stop ends the read and waits for it.
func watch(conn net.Conn, gone func()) (stop func()) {
	conn.SetReadDeadline(time.Time{}) // the server's own, for the request, is over
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

// extend moves the write deadline of the connection.
func (s *Stream) extend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && !s.hurried {
		s.conn.SetWriteDeadline(time.Now().Add(s.hub.opts.WriteDeadline))
	}
}

// hurry gives the stream a last write deadline, so that a client that does not
// read holds nobody up. It reports whether the stream is being served; one that
// is not will end as soon as it is.
func (s *Stream) hurry(in time.Duration) (serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hurried = true; s.conn != nil {
		s.conn.SetWriteDeadline(time.Now().Add(in))
	}
	return s.serving
}
