package web

import (
	"net"
	"sync"
)

// listeners holds the listeners being served. The underlying server knows a listener only once it
// accepts, so an earlier Shutdown would miss it. It also counts idle new connections as busy, which
// browsers open in advance.
type listeners struct {
	mu     sync.Mutex // guards what is below
	all    []net.Listener
	silent map[net.Conn]bool // have sent nothing yet
	closed bool

	served sync.WaitGroup // listeners that the server still uses
}

// setSilent records whether a connection has sent nothing yet.
func (s *listeners) setSilent(c net.Conn, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !yes:
		delete(s.silent, c)
	case s.closed:
		_ = c.Close()
	default:
		if s.silent == nil {
			s.silent = map[net.Conn]bool{}
		}
		s.silent[c] = true
	}
}

// add reports whether l may be served; if so, served has to be marked done afterwards.
func (s *listeners) add(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.all = append(s.all, l)
		s.served.Add(1)
	}
	return !s.closed
}

func (s *listeners) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.all {
		_ = l.Close() // the server reports its own Close
	}
	for c := range s.silent {
		_ = c.Close() // nothing was begun on it
	}
}

// A closedOnce is closed once; later calls return the first result.
type closedOnce struct {
	net.Listener
	once sync.Once
	err  error
}

func (l *closedOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
