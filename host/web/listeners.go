package web

import (
	"net"
	"sync"
)

// listeners are those that are served. The server underneath knows one only once
// it has begun to accept, so that a Shutdown before that would miss it. It also
// takes a connection for busy that has asked nothing yet, and browsers open such in
// advance.
type listeners struct {
	mu   sync.Mutex // guards what is below
	all  []net.Listener
	mute map[net.Conn]bool // have asked nothing yet
	over bool

	served sync.WaitGroup // those that the server underneath has not let go
}

// silent notes whether a connection has asked nothing yet.
func (s *listeners) silent(c net.Conn, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !yes:
		delete(s.mute, c)
	case s.over:
		_ = c.Close()
	default:
		if s.mute == nil {
			s.mute = map[net.Conn]bool{}
		}
		s.mute[c] = true
	}
}

// add reports whether l may be served; served is done with it then.
func (s *listeners) add(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.all = append(s.all, l)
		s.served.Add(1)
	}
	return !s.over
}

func (s *listeners) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, l := range s.all {
		_ = l.Close() // the server underneath says what its own Close of it said
	}
	for c := range s.mute {
		_ = c.Close() // nothing was begun for it
	}
}

// A closedOnce is closed by whoever comes first; the others learn how that went.
type closedOnce struct {
	net.Listener
	once sync.Once
	err  error
}

func (l *closedOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
