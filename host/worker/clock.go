package worker

import "time"

// clockStep is how finely a guest sees time (S43).
const clockStep = time.Millisecond

// A clock is a guest's wall and monotonic time, both in whole steps. The
// monotonic one starts at one step with the worker, so that nothing about the
// machine can be read from it.
type clock struct{ start time.Time }

func newClock() clock { return clock{start: time.Now()} }

func (c clock) wall() (sec int64, nsec int32) {
	now := time.Now().Truncate(clockStep)
	return now.Unix(), int32(now.Nanosecond())
}

func (c clock) nano() int64 {
	return int64(time.Since(c.start).Truncate(clockStep) + clockStep)
}

// of returns the time of a WASI clock in nanoseconds.
func (c clock) of(id uint32) (ns int64, ok bool) {
	switch id {
	case 0:
		return time.Now().Truncate(clockStep).UnixNano(), true
	case 1:
		return c.nano(), true
	}
	return 0, false
}
