package worker

import (
	"time"

	"github.com/sluicehost/sluice/abi"
)

// clockStep is the resolution of a guest's clocks.
const clockStep = time.Millisecond

// A clock is a guest's wall and monotonic clock, both in whole steps. The monotonic clock
// starts at one step with the worker, so that it reveals nothing about the machine.
type clock interface {
	wall() (sec int64, nsec int32)
	nano() int64
	// of returns the time of a WASI clock in nanoseconds.
	of(id uint32) (ns int64, ok bool)
	// advance is called after the guest has slept.
	advance(time.Duration)
	// setTime sets the host's time, in milliseconds since 1970.
	setTime(ms uint64)
}

func newClock() clock { return realClock{start: time.Now()} }

type realClock struct{ start time.Time }

func (c realClock) wall() (sec int64, nsec int32) {
	now := time.Now().Truncate(clockStep)
	return now.Unix(), int32(now.Nanosecond())
}

func (c realClock) nano() int64 {
	return int64(time.Since(c.start).Truncate(clockStep) + clockStep)
}

func (c realClock) of(id uint32) (ns int64, ok bool) {
	switch id {
	case 0:
		return time.Now().Truncate(clockStep).UnixNano(), true
	case 1:
		return c.nano(), true
	}
	return 0, false
}

func (c realClock) advance(time.Duration) {}
func (c realClock) setTime(uint64)        {}

// A fixedClock depends only on what its guest does, so that a replay reads the same times:
// reading the clock and sleeping advance it. It never goes back. It lags behind real time
// while the guest waits for the host, unless the host sends the time with its replies. In
// that mode a guest that reads the clock often is delayed rather than running more than
// mostAhead ahead of real time; the delay does not change what it reads.
type fixedClock struct {
	start   time.Duration // since 1970
	elapsed time.Duration

	hostTime bool          // the host sends the time
	ahead    time.Duration // how far the clock is ahead of real time because of looks, as of since
	since    time.Time
}

const (
	lookTakes   = 10 * time.Microsecond      // of a clock that does not follow the host
	glanceTakes = 100 * time.Nanosecond      // of a clock that follows the host: about what a look really takes
	mostAhead   = clockStep                  // of real time
	maxPassed   = 100 * 365 * 24 * time.Hour // where the fixed clock stops
)

func newFixedClock(f *abi.Fixed) *fixedClock {
	return &fixedClock{start: time.Duration(f.Start) * time.Millisecond, hostTime: f.Told, since: time.Now()}
}

// read advances the clock by one look and returns the time since the start.
func (c *fixedClock) read() time.Duration {
	if !c.hostTime {
		c.add(lookTakes)
		return c.elapsed.Truncate(clockStep)
	}
	c.add(glanceTakes)
	if c.ahead += glanceTakes; c.ahead > mostAhead {
		if c.addElapsed(); c.ahead > 0 {
			time.Sleep(c.ahead)
			c.addElapsed()
		}
	}
	return c.elapsed.Truncate(clockStep)
}

// addElapsed accounts for the real time that has passed.
func (c *fixedClock) addElapsed() {
	now := time.Now()
	c.ahead, c.since = max(0, c.ahead-max(0, now.Sub(c.since))), now
}

func (c *fixedClock) wall() (sec int64, nsec int32) {
	now := c.start + c.read()
	return int64(now / time.Second), int32(now % time.Second)
}

func (c *fixedClock) nano() int64 { return int64(c.read() + clockStep) }

func (c *fixedClock) of(id uint32) (ns int64, ok bool) {
	switch id {
	case 0:
		return int64(c.start + c.read()), true
	case 1:
		return c.nano(), true
	}
	return 0, false
}

func (c *fixedClock) add(d time.Duration) { c.elapsed = min(c.elapsed+min(d, maxPassed), maxPassed) }

// advance advances the clock by d, which also passes in real time.
func (c *fixedClock) advance(d time.Duration) {
	c.add(d)
	c.since = c.since.Add(min(d, maxPassed))
}

func (c *fixedClock) setTime(ms uint64) {
	at := time.Duration(ms)*time.Millisecond - c.start
	c.addElapsed()
	c.ahead = min(c.ahead, max(0, c.elapsed-at))
	c.elapsed = min(max(c.elapsed, at), maxPassed)
}
