package browser

import (
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

// stand says why the watchdog stands still, or that it is no reason any more
// (B190). most bounds it, unless it is 0. The caller holds mu.
func (s *Session) stand(reason string, on bool, most time.Duration) {
	if !on {
		delete(s.standing, reason)
		if s.dog != nil {
			s.dog.Resume(reason)
		}
		return
	}
	var until time.Time
	if most > 0 {
		until = time.Now().Add(most)
	}
	s.standing[reason] = until
	if s.dog != nil {
		s.dog.Pause(reason, most)
	}
}

// guard starts the watchdog of a session that is being made.
func (s *Session) guard(trip func(silent time.Duration, last string)) *fleet.Watchdog {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dog = fleet.NewWatchdog(s.host.o.Watchdog, trip)
	for reason, until := range s.standing {
		left := time.Duration(0)
		if !until.IsZero() {
			if left = time.Until(until); left <= 0 {
				continue
			}
		}
		s.dog.Pause(reason, left)
	}
	return s.dog
}

// unguard ends the watchdog.
func (s *Session) unguard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dog != nil {
		s.dog.Stop()
	}
	s.dog = nil
}

// Assisted tells of assistance that is open, or with nil that it is over. While a
// connector says that it goes on by itself, the watchdog waits with it, as long as
// its own timeout and one deadline more (B190).
func (s *Session) Assisted(id string, a *abi.AssistanceMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on := a != nil && a.ProgressPosture == abi.PostureRunning && a.ResponseObligation == abi.ObligationNone
	var most time.Duration
	if on && a.TimeoutSeconds != nil && *a.TimeoutSeconds > 0 && *a.TimeoutSeconds < 1e9 {
		most = time.Duration(*a.TimeoutSeconds*float64(time.Second)) + s.host.o.Watchdog
	}
	s.stand("assistance:"+id, on, most)
}
