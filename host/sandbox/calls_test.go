package sandbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

func TestBadPointersAreFaults(t *testing.T) {
	s := open(t)
	fault := func(c abi.Call, k abi.FaultKind, n uint64) string {
		return fmt.Sprintf("%d %q", abi.CallFault, abi.RequestFault{Call: c, Kind: k, Length: n}.Append(nil))
	}
	tests := []struct {
		name string
		code []byte
		want []string
	}{
		{"past the end", calling(rawProgress, 65535, 2), []string{fault(abi.CallProgress, abi.FaultPointer, 2)}},
		{"the last byte", calling(rawProgress, 65535, 1), []string{`4 "\x00"`}},
		{"nothing at the end", calling(rawProgress, 65536, 0), []string{`4 ""`}},
		{"nothing past the end", calling(rawProgress, 65537, 0), []string{fault(abi.CallProgress, abi.FaultPointer, 0)}},
		{"the sum wraps to zero", calling(rawProgress, -16, 16), []string{fault(abi.CallProgress, abi.FaultPointer, 16)}},
		{"the corner of the square", calling(rawEmit, -1, -1), []string{fault(abi.CallEmit, abi.FaultPointer, 1<<32-1)}},
		{"reply past the end", calling(rawReply, 65536, 1), []string{fault(abi.CallReply, abi.FaultPointer, 1)}},
		{"a message over its limit", join(i32(40), []byte{opGrow, 0, opDrop}, calling(rawProgress, 0, 2<<20)),
			[]string{fault(abi.CallProgress, abi.FaultTooBig, 2<<20)}},
		{"a frame over its limit", join(i32(40), []byte{opGrow, 0, opDrop}, calling(rawEmit, 0, 2<<20)),
			[]string{fault(abi.CallEmit, abi.FaultTooBig, 2<<20)}},
		{"a request over its limit stays inside", join(i32(40), []byte{opGrow, 0, opDrop}, calling(rawBrowser, 0, 2<<20)),
			nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// After a violation every further call fails without reaching the host.
			g := started(t, s, prepared(t, s, raw(join(tt.code, calling(rawProgress, 0, 9), calling(rawEmit, 0, 9))...).bytes()))
			refuse := func(c abi.Call, _ string) (abi.Errno, string) {
				if c == abi.CallFault {
					return abi.EPROTO, `{"code":"EPROTO","message":"m"}`
				}
				return abi.OK, ""
			}
			want := tt.want
			if len(want) == 0 || !strings.HasPrefix(want[0], "132 ") {
				nine := strings.Repeat("\x00", 9)
				want = append(want, fmt.Sprintf("4 %q", nine), fmt.Sprintf("2 %q", nine))
			}
			if diff := cmp.Diff(want, transcript(t, g, refuse)); diff != "" {
				t.Error(diff)
			}
			if e := g.Exit(); e.Kind != sandbox.ExitExited {
				t.Errorf("ended as %+v", e)
			}
		})
	}
}

func TestHandlesAndErrors(t *testing.T) {
	s := open(t)
	g := doing(t, s, "handle")
	got := transcript(t, g, func(c abi.Call, p string) (abi.Errno, string) {
		switch c {
		case abi.CallRead:
			if handle, most, err := abi.ParseRead([]byte(p)); handle != 7 || most != 8 || err != nil {
				t.Errorf("read of %d, %d, %v", handle, most, err)
			}
			return abi.OK, "eightbyt"
		case abi.CallClose:
			return abi.ENOENT, `{"code":"ENOENT","message":"gone"}`
		case abi.CallFault:
			return abi.EPROTO, ""
		}
		return abi.OK, ""
	})
	want := []string{
		`15 "\a\x00\x00\x00\b\x00\x00\x00"`, `12 "8 \"eightbyt\""`, `16 "\a\x00\x00\x00"`, `12 "-12"`,
		fmt.Sprintf("%d %q", abi.CallFault,
			abi.RequestFault{Call: abi.CallProgress, Kind: abi.FaultTooBig, Length: 2 << 20}.Append(nil)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEmitWaitsForCredit(t *testing.T) {
	s := open(t)
	g := doing(t, s, "emit 10 1000000")
	for range abi.CreditFrames { // 4 frames are under way, 4 MiB are not yet used up
		in := <-g.Calls()
		if in.Call != abi.CallEmit || len(in.Payload) != 1_000_000 {
			t.Fatalf("call %d with %d bytes", in.Call, len(in.Payload))
		}
		in.Release()
	}
	select {
	case in := <-g.Calls():
		t.Fatalf("call %d without credit", in.Call)
	case <-time.After(100 * time.Millisecond):
	}
	for i := range 6 {
		if err := g.Credit(1, 1_000_000); err != nil {
			t.Fatal(err)
		}
		in := <-g.Calls()
		if in.Call != abi.CallEmit {
			t.Fatalf("after credit %d: call %d", i, in.Call)
		}
		in.Release()
	}
	if err := g.Credit(5, 0); err == nil {
		t.Error("more credit than was used")
	}
}

// TestSmallCredit: credit for small frames waits for the next message, and never for so long
// that a guest that only emits stands still.
func TestSmallCredit(t *testing.T) {
	s := open(t)
	g := doing(t, s, "emit 40 1000")
	for range 40 {
		in := <-g.Calls()
		in.Release()
		if err := g.Credit(1, 1000); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmitEnds(t *testing.T) {
	s := open(t)
	for _, errno := range []abi.Errno{abi.ECANCELED, abi.EPROTO} {
		t.Run(errno.String(), func(t *testing.T) {
			g := doing(t, s, "emit 6 1000")
			for range abi.CreditFrames {
				in := <-g.Calls()
				in.Release()
			}
			if err := g.EndEmit(errno); err != nil {
				t.Fatal(err)
			}
			got := transcript(t, g, nil)
			want := []string{`12 "emit -7"`, `12 "emit -7"`, `4 "flush"`}
			if errno == abi.EPROTO {
				want = nil // every call fails and none reaches the host
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStdio(t *testing.T) {
	s := open(t)
	start := `{"type":"START","pad":"` + strings.Repeat("z", 5000) + `"}` + "\n"
	served := 0
	g := doing(t, s, "lines", func(spec *sandbox.Spec) { spec.Module.Transport = sandbox.TransportStdio })
	var out, diag strings.Builder
	var ends int
	transcript(t, g, func(c abi.Call, p string) (abi.Errno, string) {
		switch c {
		case abi.CallStdin:
			most, err := abi.ParseStdin([]byte(p))
			if err != nil || most < 64<<10 {
				t.Errorf("stdin of %d, %v; want at least 64 KiB", most, err)
			}
			if served++; served == 1 {
				return abi.OK, start
			}
		case abi.CallStdout:
			if len(p) > abi.MaxStdoutChunk {
				t.Errorf("a write of %d", len(p))
			}
			out.WriteString(p)
		case abi.CallDiag:
			diag.WriteString(p)
		case abi.CallStdinEnd:
			ends++
		}
		return abi.OK, ""
	})
	if got, want := out.String(), start+strings.Repeat("y", 150_000)+"\n"; got != want {
		t.Errorf("%d bytes written, want %d", len(got), len(want))
	}
	if diag.String() != "\x02EOF" {
		t.Errorf("diagnostics %q", diag.String())
	}
	if ends != 1 {
		t.Errorf("%d ends of stdin", ends)
	}
	if e := g.Exit(); e.Kind != sandbox.ExitExited || e.Code != 0 {
		t.Errorf("ended as %+v", e)
	}
}

// TestStdioBytewise: a connector that writes byte by byte crosses to the host once a
// line, so that its writes are not most of its compute budget.
func TestStdioBytewise(t *testing.T) {
	s := open(t)
	var lines []string
	transcript(t, doing(t, s, "bytes", func(spec *sandbox.Spec) { spec.Module.Transport = sandbox.TransportStdio }),
		func(c abi.Call, p string) (abi.Errno, string) {
			if c == abi.CallStdout {
				lines = append(lines, p)
			}
			return abi.OK, ""
		})
	if want := []string{strings.Repeat("b", 1000) + "\n"}; !slices.Equal(lines, want) {
		t.Errorf("%d writes arrived; want one of a whole line", len(lines))
	}
}
