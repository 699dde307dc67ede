//go:build unix

package worker

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// pair is a link whose other end the test holds.
func pair(t testing.TB) (*link, *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	host := os.NewFile(uintptr(fds[1]), "host")
	t.Cleanup(func() {
		_ = syscall.Close(fds[0])
		_ = host.Close()
	})
	return newLink(fds[0]), host
}

// gaveUp is what lost panics with in tests, where a worker would exit.
type gaveUp struct{ err error }

func giveUp(err error) { panic(gaveUp{err}) }

// lostBy returns why f gave the host up, or nil.
func lostBy(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(gaveUp).err
		}
	}()
	f()
	return nil
}

func write(t testing.TB, host *os.File, h abi.WireHeader, payload []byte) {
	t.Helper()
	h.Length = uint32(len(payload))
	if _, err := host.Write(append(h.Append(nil), payload...)); err != nil {
		t.Fatal(err)
	}
}

// A sleep passes once: by the guest's account, or in the time that the host tells behind it.
func TestToldSleep(t *testing.T) {
	l, host := pair(t)
	c := newFixedClock(&abi.Fixed{Start: 1000, Told: true})
	g := &guest{clock: c, relay: newRelay(l, giveUp)}
	g.relay.onTime = c.setTime
	write(t, host, abi.WireHeader{Call: abi.CallClock}, abi.AppendClock(nil, 6001))
	write(t, host, abi.WireHeader{ID: 1, Call: abi.CallSleep}, nil)
	g.sleep(5 * time.Second)
	if at, _ := c.of(0); at != int64(6001*time.Millisecond) {
		t.Errorf("it is %v since 1970", time.Duration(at))
	}
}

func TestRelayTakesRepliesAndCredit(t *testing.T) {
	l, host := pair(t)
	r := newRelay(l, giveUp)
	r.frames, r.bytes = 0, 0
	write(t, host, abi.WireHeader{Call: abi.CallCredit}, abi.Credit{Frames: 1, Bytes: 10}.Append(nil))
	write(t, host, abi.WireHeader{ID: 1, Call: abi.CallLog, Errno: abi.EIO}, []byte("why"))
	reply, errno := r.call(abi.CallLog, []byte("text"))
	if string(reply) != "why" || errno != abi.EIO || r.frames != 1 || r.bytes != 10 {
		t.Errorf("%q %v, credit %d %d", reply, errno, r.frames, r.bytes)
	}
	if errno := r.emit(make([]byte, 10)); errno != abi.OK || r.frames != 0 || r.bytes != 0 {
		t.Errorf("emit %v, credit %d %d", errno, r.frames, r.bytes)
	}
	write(t, host, abi.WireHeader{Call: abi.CallCredit, Errno: abi.ECANCELED}, abi.Credit{}.Append(nil))
	if errno := r.emit(nil); errno != abi.ECANCELED {
		t.Errorf("emit after its end: %v", errno)
	}
}

func TestRelayStopsForGoodAfterAViolation(t *testing.T) {
	l, host := pair(t)
	r := newRelay(l, giveUp)
	write(t, host, abi.WireHeader{ID: 1, Call: abi.CallLog, Errno: abi.EPROTO}, nil)
	r.call(abi.CallLog, nil)
	for range 3 {
		if _, errno := r.call(abi.CallDone, nil); errno != abi.EPROTO {
			t.Errorf("a later call: %v", errno)
		}
		if errno := r.emit(nil); errno != abi.EPROTO {
			t.Errorf("a later emit: %v", errno)
		}
	}
	if r.id != 1 {
		t.Errorf("%d messages were sent, want 1", r.id)
	}
}

func TestRelayGivesUpOnNonsense(t *testing.T) {
	for name, h := range map[string]abi.WireHeader{
		"another id":       {ID: 2, Call: abi.CallLog},
		"another call":     {ID: 1, Call: abi.CallDone},
		"a call of guests": {ID: 1, Call: abi.CallEmit},
		"an errno unknown": {ID: 1, Call: abi.CallLog, Errno: 77},
	} {
		l, host := pair(t)
		write(t, host, h, nil)
		if err := lostBy(func() { newRelay(l, giveUp).call(abi.CallLog, nil) }); !errors.Is(err, abi.ErrWire) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, host := pair(t)
	header := abi.WireHeader{Length: 1 << 31, ID: 1, Call: abi.CallStart}.Append(nil)
	if _, err := host.Write(header); err != nil {
		t.Fatal(err)
	}
	if err := lostBy(func() { newRelay(l, giveUp).call(abi.CallStart, nil) }); !errors.Is(err, abi.ErrWire) {
		t.Errorf("a giant: %v", err)
	}
}

// FuzzRelay: whatever the host sends, a worker answers its guest or gives up.
func FuzzRelay(f *testing.F) {
	f.Add(abi.WireHeader{ID: 1, Call: abi.CallLog}.Append(nil))
	f.Add(append(abi.WireHeader{Length: 8, Call: abi.CallCredit}.Append(nil), abi.Credit{Frames: 1}.Append(nil)...))
	f.Fuzz(func(t *testing.T, wire []byte) {
		if len(wire) > 32<<10 {
			return // must fit the socket
		}
		l, host := pair(t)
		if _, err := host.Write(wire); err != nil {
			t.Fatal(err)
		}
		if err := host.Close(); err != nil {
			t.Fatal(err)
		}
		r := newRelay(l, giveUp)
		_ = lostBy(func() {
			for range 10 {
				if reply, _ := r.call(abi.CallLog, nil); len(reply) > len(wire) {
					t.Errorf("a reply of %d from %d bytes", len(reply), len(wire))
				}
			}
		})
		if r.frames > abi.CreditFrames || r.bytes > abi.CreditBytes {
			t.Errorf("credit %d %d", r.frames, r.bytes)
		}
	})
}
