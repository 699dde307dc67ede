package sandbox

// Idle is how many blank workers wait, and BlankPIDs which (tests only).
func (s *Sandbox) Idle() (pids []int) {
	s.nursery.mu.Lock()
	defer s.nursery.mu.Unlock()
	for _, b := range s.nursery.idle {
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
