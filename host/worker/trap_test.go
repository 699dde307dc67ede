package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
)

func TestGuestsNamesDoNotDecideTheTrap(t *testing.T) {
	inner := errors.New("integer overflow")
	err := fmt.Errorf("wasm error: %w\nwasm stack trace:\n\t.unreachable()", inner)
	if got := trapKind(fmt.Errorf("start function[stack overflow] failed: %w", err)); got != abi.TrapInteger {
		t.Errorf("trap %q", got)
	}
	if got := trapKind(errors.New("something new")); got != abi.TrapOther {
		t.Errorf("trap %q", got)
	}
	if e := exitOf(fmt.Errorf("start: %w", sys.NewExitError(4))); e.Kind != abi.ExitExited || e.Code != 4 {
		t.Errorf("exit %+v", e)
	}
}

func TestClocksStep(t *testing.T) {
	c := newClock()
	if _, ns := c.wall(); ns%int32(time.Millisecond) != 0 {
		t.Errorf("wall clock at %d ns", ns)
	}
	if n := c.nano(); n <= 0 || n%int64(time.Millisecond) != 0 {
		t.Errorf("monotonic clock at %d ns", n)
	}
	if _, ok := c.of(2); ok {
		t.Error("a CPU clock")
	}
}

// A fixed clock depends on how often it is looked at and on sleeps alone, steps
// like the real one, and never runs backwards or out of range.
func TestFixedClock(t *testing.T) {
	const start = 1_700_000_000_123
	read := func() (all []int64) {
		c := newFixedClock(&abi.Fixed{Start: start})
		sec, ns := c.wall()
		all = append(all, sec, int64(ns), c.nano())
		c.advance(1500 * time.Millisecond)
		for range 100 {
			all = append(all, c.nano())
		}
		at, _ := c.of(0)
		return append(all, at)
	}
	first := read()
	if first[0] != 1_700_000_000 || first[1] != 123_000_000 || first[2] != int64(time.Millisecond) ||
		first[3] != int64(1501*time.Millisecond) {
		t.Errorf("first readings %v", first[:4])
	}
	if last := first[len(first)-1]; last != (start+1501)*int64(time.Millisecond) {
		t.Errorf("after 103 looks %d", last)
	}
	time.Sleep(2 * time.Millisecond) // of the real clock, which it must not see
	if second := read(); !slices.Equal(first, second) {
		t.Error("two clocks differ")
	}
	c := newFixedClock(&abi.Fixed{Start: 1 << 42})
	for range 3 {
		c.advance(1<<63 - 1)
	}
	if at, _ := c.of(0); at < 1<<42*int64(time.Millisecond) {
		t.Errorf("the clock ran over: %d", at)
	}
	if _, ok := c.of(2); ok {
		t.Error("a CPU clock")
	}
}

// A clock that the host tells the time is never ahead of the world by more than a step, however
// often its guest looks at it and sleeps, and reads the same times again when it is told the same.
func TestToldClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tell := func(c *fixedClock, ms int) { c.setTime(uint64(began.UnixMilli() + int64(ms))) }
		var told []int
		looks := func(c *fixedClock, after func(n int)) (all []int64) {
			for n := range 100 {
				for range 997 * (n % 40) {
					at, _ := c.of(0)
					all = append(all, at)
				}
				after(n)
			}
			return all
		}
		c := newFixedClock(&abi.Fixed{Start: uint64(began.UnixMilli()), Told: true})
		first := looks(c, func(n int) {
			if n%7 == 0 {
				c.advance(3 * time.Millisecond)
				time.Sleep(3 * time.Millisecond)
			}
			told = append(told, int(time.Since(began).Milliseconds()))
			tell(c, told[n])
			if ahead := c.elapsed - time.Since(began); ahead > mostAhead+glanceTakes {
				t.Fatalf("%v ahead after %d", ahead, n)
			}
		})
		if !slices.IsSorted(first) {
			t.Error("it went back")
		}
		again := newFixedClock(&abi.Fixed{Start: uint64(began.UnixMilli()), Told: true})
		second := looks(again, func(n int) {
			if n%7 == 0 {
				again.advance(3 * time.Millisecond)
			}
			tell(again, told[n])
		})
		if !slices.Equal(first, second) {
			t.Error("it reads other times again")
		}
	})
}

// A sleep that passes at once asks the host for nothing, and the clock says that
// it was slept.
func TestInstantSleep(t *testing.T) {
	c := newFixedClock(&abi.Fixed{})
	g := &guest{clock: c, skipSleeps: true} // without relay: a call to the host would panic
	g.sleep(time.Hour)
	if c.elapsed != time.Hour {
		t.Errorf("slept %v", c.elapsed)
	}
}

// subscription is one of poll_oneoff's.
func subscription(user uint64, kind byte, clock uint32, timeout uint64, flags uint16) []byte {
	s := make([]byte, subscriptionBytes)
	binary.LittleEndian.PutUint64(s, user)
	s[8] = kind
	binary.LittleEndian.PutUint32(s[16:], clock)
	binary.LittleEndian.PutUint64(s[24:], timeout)
	binary.LittleEndian.PutUint16(s[40:], flags)
	return s
}

func TestPoll(t *testing.T) {
	g := &guest{clock: newClock()}
	join := func(s ...[]byte) (all []byte) {
		for _, b := range s {
			all = append(all, b...)
		}
		return all
	}
	tests := []struct {
		name  string
		subs  []byte
		wait  time.Duration
		users []uint64
		errno uint64
	}{
		{"one timer", subscription(1, 0, 1, 5e6, 0), 5 * time.Millisecond, []uint64{1}, wasiOK},
		{"the sooner of two", join(subscription(1, 0, 1, 5e6, 0), subscription(2, 0, 0, 3e6, 0)), 3 * time.Millisecond,
			[]uint64{2}, wasiOK},
		{"two at once", join(subscription(1, 0, 1, 3e6, 0), subscription(2, 0, 0, 3e6, 0)), 3 * time.Millisecond,
			[]uint64{1, 2}, wasiOK},
		{"a descriptor is ready", join(subscription(1, 0, 1, 5e6, 0), subscription(2, 1, 0, 0, 0)), 0, []uint64{2}, wasiOK},
		{"a time in the past", subscription(1, 0, 0, 1, 1), 0, []uint64{1}, wasiOK},
		{"for ever", subscription(1, 0, 1, 1<<64-1, 0), 1<<63 - 1, []uint64{1}, wasiOK},
		{"another clock", subscription(1, 0, 3, 1, 0), 0, nil, wasiInval},
		{"another flag", subscription(1, 0, 1, 1, 2), 0, nil, wasiInval},
	}
	for _, tt := range tests {
		events, wait, errno := g.readySubscriptions(tt.subs)
		if wait != tt.wait || errno != tt.errno || len(events) != eventBytes*len(tt.users) {
			t.Errorf("%s: wait %v, errno %d, %d bytes", tt.name, wait, errno, len(events))
			continue
		}
		for i, user := range tt.users {
			if got := binary.LittleEndian.Uint64(events[i*eventBytes:]); got != user {
				t.Errorf("%s: event %d is of %d, want %d", tt.name, i, got, user)
			}
		}
	}
}

func TestWASIErrnos(t *testing.T) {
	for e, want := range map[abi.Errno]uint64{
		abi.OK: 0, abi.EDENIED: 2, abi.ENOENT: 44, abi.ETOOBIG: 22, abi.ENOSPC: 51, abi.ECANCELED: 11, abi.EINVAL: 28,
		abi.ENOTSUP: 58, abi.EIO: 29, abi.EPROTO: 29, abi.EBUSY: 29,
	} {
		if got := wasiErrno(e); got != want {
			t.Errorf("%v becomes %d, want %d", e, got, want)
		}
	}
}

func TestLinearMemoryStaysInPlace(t *testing.T) {
	var p peak
	m := p.allocate(0, 8<<20)
	defer m.Free()
	first := m.Reallocate(64 << 10)
	first[0] = 42
	grown := m.Reallocate(8 << 20)
	grown[8<<20-1] = 1
	if &first[0] != &grown[0] || len(grown) != 8<<20 {
		t.Error("growing moved the memory")
	}
	if m.Reallocate(8<<20+1) != nil {
		t.Error("grown beyond the maximum")
	}
	if p.bytes != 8<<20 {
		t.Errorf("peak %d", p.bytes)
	}
}
