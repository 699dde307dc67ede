package sandbox

// Idle is how many blank workers wait, and BlankPIDs which (tests only).
func (s *Sandbox) Idle() (pids []int) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	for _, b := range s.pool.idle {
		pids = append(pids, b.process.PID())
	}
	return pids
}

// Skeleton makes the module that run workers get (tests only).
var Skeleton = skeleton

// Footprint is how many entries this process remembers (tests only).
func (s *Sandbox) Footprint() int {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return len(s.cache.verified)
}

// Hangup closes the host's end of the socket and does nothing else (tests only).
func (g *Guest) Hangup() error { return g.process.Socket.Close() }

// LoadKey reads or makes a cache's key.
var LoadKey = loadKey
