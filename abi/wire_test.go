package abi_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
)

// wirePayloads are one of each kind, with the parser that takes it back.
func wirePayloads() map[string]struct {
	value interface{ Append([]byte) []byte }
	parse func([]byte) (any, error)
} {
	return map[string]struct {
		value interface{ Append([]byte) []byte }
		parse func([]byte) (any, error)
	}{
		"hello": {abi.Hello{Build: "b", PID: 7}, func(b []byte) (any, error) { return abi.ParseHello(b) }},
		"load": {abi.Load{
			Task: abi.TaskRun, Stdio: true, Directory: true, ModuleBytes: 9, MemoryPages: 65536,
			Limits: abi.DefaultWireLimits(), Jail: []byte("{}"), Name: "n", Env: []string{"A=b", "C="},
			Mounts: []abi.Mount{{ID: 3, Path: "/data"}},
			Fixed:  &abi.Fixed{Start: 1 << 41, Seed: [32]byte{1, 31: 2}, Instant: true},
		}, func(b []byte) (any, error) { return abi.ParseLoad(b) }},
		"ready": {abi.Ready{CPU: 1, Enter: 2, Load: math.MaxInt64, Isolation: abi.Isolation{
			Level: "full", Namespaces: []string{"network"}, Landlock: 6, Seccomp: "strict", Rlimits: true, UID: "own",
		}}, func(b []byte) (any, error) { return abi.ParseReady(b) }},
		"credit": {abi.Credit{Frames: 4, Bytes: 4 << 20}, func(b []byte) (any, error) { return abi.ParseCredit(b) }},
		"fault": {abi.RequestFault{Call: abi.CallEmit, Kind: abi.FaultTooBig, Length: math.MaxUint64},
			func(b []byte) (any, error) { return abi.ParseRequestFault(b) }},
		"exit": {abi.Exit{Kind: abi.ExitTrapped, TrapKind: abi.TrapStack, Detail: "d", GuestMemoryBytes: 1 << 32,
			Instantiate: time.Second}, func(b []byte) (any, error) { return abi.ParseExit(b) }},
	}
}

func TestWirePayloadsRoundTrip(t *testing.T) {
	for name, p := range wirePayloads() {
		got, err := p.parse(p.value.Append(nil))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(p.value, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWirePayloadsAreExact(t *testing.T) { // No short, no long payloads
	for name, p := range wirePayloads() {
		b := p.value.Append(nil)
		for n := range b {
			if _, err := p.parse(b[:n]); !errors.Is(err, abi.ErrWire) {
				t.Errorf("%s cut to %d of %d bytes: %v", name, n, len(b), err)
			}
		}
		if _, err := p.parse(append(b, 0)); !errors.Is(err, abi.ErrWire) {
			t.Errorf("%s with a tail: %v", name, err)
		}
	}
}

func TestWirePayloadsRefuse(t *testing.T) {
	limits := abi.DefaultWireLimits()
	for name, v := range map[string]interface{ Append([]byte) []byte }{
		"load of no task":        abi.Load{Limits: limits},
		"load of a task unknown": abi.Load{Task: 3, Limits: limits},
		"load with 4 GiB + 64K":  abi.Load{Task: abi.TaskRun, Limits: limits, MemoryPages: 65537},
		"load without limits":    abi.Load{Task: abi.TaskRun},
		"load of a far future":   abi.Load{Task: abi.TaskRun, Limits: limits, Fixed: &abi.Fixed{Start: 1 << 43}},
		"load of 1000 variables": abi.Load{Task: abi.TaskRun, Limits: limits, Env: make([]string, 1000)},
		"load of a long name":    abi.Load{Task: abi.TaskRun, Limits: limits, Name: strings.Repeat("n", 70_000)},
		"hello of a long build":  abi.Hello{Build: strings.Repeat("n", 70_000)},
		"ready with no duration": abi.Ready{CPU: -1},
		"credit of 5 frames":     abi.Credit{Frames: 5},
		"credit of 5 MiB":        abi.Credit{Bytes: 5 << 20},
		"fault of a call none":   abi.RequestFault{Call: abi.CallExit, Kind: abi.FaultPointer},
		"fault of a kind none":   abi.RequestFault{Call: abi.CallEmit, Kind: 3},
		"exit of a kind none":    abi.Exit{},
		"exit with 5 GiB":        abi.Exit{Kind: abi.ExitExited, GuestMemoryBytes: 5 << 30},
	} {
		kind, _, _ := strings.Cut(name, " ")
		if _, err := wirePayloads()[kind].parse(v.Append(nil)); !errors.Is(err, abi.ErrWire) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWireHeader(t *testing.T) {
	h := abi.WireHeader{Length: 1<<32 - 1, ID: 0x01020304, Call: abi.CallExit, Errno: abi.ENOSPC}
	b := h.Append(nil)
	if want := []byte{255, 255, 255, 255, 4, 3, 2, 1, 133, 0, 14, 0}; !bytes.Equal(b, want) {
		t.Errorf("header % x", b)
	}
	if got, err := abi.ParseWireHeader(b); got != h || err != nil {
		t.Errorf("header %+v, %v", got, err)
	}
	if _, err := abi.ParseWireHeader(b[:11]); !errors.Is(err, abi.ErrWire) {
		t.Errorf("a short header: %v", err)
	}
	b[10] = 15
	if _, err := abi.ParseWireHeader(b); !errors.Is(err, abi.ErrWire) {
		t.Errorf("an unknown errno: %v", err)
	}
}

func TestWireLimits(t *testing.T) {
	l := abi.DefaultWireLimits()
	if !l.Valid() {
		t.Error("the defaults are out of bounds")
	}
	for _, f := range abi.Functions {
		most, ok := l.FromWorker(f.Call)
		switch {
		case f.Call == abi.CallReply:
			if ok {
				t.Error("reply is never relayed")
			}
		case !ok:
			t.Errorf("%s.%s cannot be sent", f.Module, f.Name)
		case f.Message && f.Call != abi.CallStart && int(most) != abi.DefaultLimits().FrameBytes:
			t.Errorf("%s.%s has %d bytes", f.Module, f.Name, most)
		}
		if f.Message != f.Call.IsMessage() {
			t.Errorf("%s.%s is a message: %v", f.Module, f.Name, f.Call.IsMessage())
		}
		_, answered := l.FromHost(f.Call)
		if want := f.Call != abi.CallReply && !f.Call.Pipelined(); answered != want {
			t.Errorf("%s.%s is answered: %v", f.Module, f.Name, answered)
		}
	}
	for _, c := range []abi.Call{0, abi.CallLoad, abi.CallCredit, 200, math.MaxUint16} {
		if _, ok := l.FromWorker(c); ok {
			t.Errorf("a worker may send call %d", c)
		}
	}
	for _, c := range []abi.Call{0, abi.CallHello, abi.CallEmit, 200, math.MaxUint16} {
		if _, ok := l.FromHost(c); ok {
			t.Errorf("a host may send call %d", c)
		}
	}
	if !l.Oversize(abi.CallEmit, 1<<32) || l.Oversize(abi.CallEmit, 0) || !l.Oversize(abi.CallReply, 0) {
		t.Error("sizes are compared wrongly")
	}
}

func TestSmallWireRequests(t *testing.T) {
	if h, n, err := abi.ParseRead(abi.AppendRead(nil, 5, abi.MaxReadChunk)); h != 5 ||
		n != abi.MaxReadChunk || err != nil {
		t.Errorf("read: %d %d %v", h, n, err)
	}
	if _, _, err := abi.ParseRead(abi.AppendRead(nil, 5, abi.MaxReadChunk+1)); !errors.Is(err, abi.ErrWire) {
		t.Errorf("a long read: %v", err)
	}
	if _, err := abi.ParseSleep(bytes.Repeat([]byte{255}, 8)); !errors.Is(err, abi.ErrWire) {
		t.Errorf("a negative sleep: %v", err)
	}
	if fd, text, err := abi.ParseDiag([]byte("\x02abc")); fd != 2 || string(text) != "abc" || err != nil {
		t.Errorf("diag: %d %q %v", fd, text, err)
	}
	for _, b := range []string{"", "\x00a", "\x03a"} {
		if _, _, err := abi.ParseDiag([]byte(b)); !errors.Is(err, abi.ErrWire) {
			t.Errorf("diag %q: %v", b, err)
		}
	}
}

// FuzzWire: whatever is accepted is the encoding of what was decoded.
func FuzzWire(f *testing.F) {
	for _, p := range wirePayloads() {
		f.Add(p.value.Append(nil))
	}
	f.Add(abi.WireHeader{Length: 3, ID: 1, Call: abi.CallEmit}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := abi.ParseWireHeader(b); err == nil && !bytes.Equal(h.Append(nil), b[:abi.WireHeaderBytes]) {
			t.Errorf("header %+v does not encode to what it was", h)
		}
		for name, p := range wirePayloads() {
			v, err := p.parse(b)
			if err != nil {
				continue
			}
			again := v.(interface{ Append([]byte) []byte }).Append(nil)
			if !bytes.Equal(again, b) {
				t.Errorf("%s %+v does not encode to what it was:\n% x\n% x", name, v, b, again)
			}
		}
		_, _, _ = abi.ParseRead(b)
		_, _ = abi.ParseClose(b)
		_, _ = abi.ParseStdin(b)
		_, _ = abi.ParseSleep(b)
		_, _, _ = abi.ParseDiag(b)
	})
}
