package sandbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

// transcript answers every call with OK, or as answer says, and returns what the
// guest sent, one line a call.
func transcript(t *testing.T, g *sandbox.Guest, answer func(abi.Call, string) (abi.Errno, string)) []string {
	t.Helper()
	var lines []string
	for in := range g.Calls() {
		text := string(in.Payload)
		line := text
		if len(line) > 60 {
			line = fmt.Sprintf("%s… %d", line[:20], len(text))
		}
		if in.Call == abi.CallSleep {
			line = "…" // what is left of the time, as the guest's clock has it
		}
		lines = append(lines, fmt.Sprintf("%d %q", in.Call, line))
		in.Release()
		if in.Call == abi.CallEmit {
			_ = g.Credit(1, len(text)) // it does not wait for it, and may be gone by now
			continue
		}
		errno, reply := abi.OK, ""
		if answer != nil {
			errno, reply = answer(in.Call, text)
		}
		if err := g.Reply(in.ID, errno, []byte(reply)); err != nil {
			t.Error(err)
		}
	}
	return lines
}

func TestGuestSpeaks(t *testing.T) {
	s := open(t)
	start := `{"scope":"` + strings.Repeat("s", 500) + `"}`
	tests := []struct {
		task   string
		answer func(abi.Call, string) (abi.Errno, string)
		want   []string
	}{
		{"echo", func(c abi.Call, _ string) (abi.Errno, string) {
			if c == abi.CallStart {
				return abi.OK, start
			}
			return abi.OK, ""
		}, []string{`1 ""`, `12 "512 bytes"`, fmt.Sprintf("4 %q", start[:20]+"… 512"), `13 "{}"`}},
		{"world", nil, []string{
			`66 "\x01[test] [DO=world TZ=UTC]\n"`, `66 "\x02to fd 2\n"`,
			`66 "\x01open /: Bad file number\n"`,
		}},
		{"emit 3 100", nil, []string{
			`2 "xxxxxxxxxxxxxxxxxxxx… 100"`, `2 "xxxxxxxxxxxxxxxxxxxx… 100"`, `2 "xxxxxxxxxxxxxxxxxxxx… 100"`, `4 "flush"`,
		}},
		{"sleep", func(c abi.Call, payload string) (abi.Errno, string) {
			if c == abi.CallSleep { // the Go runtime asks again until the time has come
				d, err := abi.ParseSleep([]byte(payload))
				if err != nil || d <= 0 || d > 300*time.Millisecond {
					t.Errorf("sleep of %v, %v", d, err)
				}
				<-time.After(d + 5*time.Millisecond)
			}
			return abi.OK, ""
		}, []string{`67 "…"`, `12 "slept true"`}},
	}
	for _, tt := range tests {
		t.Run(tt.task, func(t *testing.T) {
			g := doing(t, s, tt.task)
			if diff := cmp.Diff(tt.want, transcript(t, g, tt.answer)); diff != "" {
				t.Error(diff)
			}
			if e := g.Exit(); e.Kind != sandbox.ExitExited || e.Code != 0 {
				t.Errorf("ended as %+v", e)
			} else {
				t.Logf("%+v", e)
			}
		})
	}
}

func TestNothingIsFaked(t *testing.T) {
	s := open(t)
	seen := map[string]bool{}
	for range 2 {
		var text string
		before := time.Now().Add(-time.Millisecond) // the guest's clock is rounded down to that
		transcript(t, doing(t, s, "fakes"), func(_ abi.Call, p string) (abi.Errno, string) {
			text += p[1:]
			return abi.OK, ""
		})
		var ns int64
		var random string
		if _, err := fmt.Sscan(text, &ns, &random); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if at := time.Unix(0, ns); at.Before(before) || at.After(time.Now()) {
			t.Errorf("the guest's clock said %v in a run from %v to %v", at, before, time.Now())
		}
		if ns%int64(time.Millisecond) != 0 {
			t.Errorf("the guest's clock steps by less than 1 ms: %d", ns)
		}
		if seen[random] {
			t.Errorf("random bytes came twice: %s", random)
		}
		seen[random] = true
	}
}

func TestRefusalsReachWASI(t *testing.T) {
	s := open(t)
	refusals := []abi.Errno{abi.EDENIED, abi.ENOENT, abi.ETOOBIG, abi.ENOSPC, abi.ECANCELED, abi.EINVAL,
		abi.ENOTSUP, abi.EBUSY}
	task := "files " + strings.Repeat(",", len(refusals)-1)
	g := doing(t, s, task, func(spec *sandbox.Spec) { spec.Mounts = []abi.Mount{{ID: 1, Path: "/data"}} })
	var asked int
	var text strings.Builder
	transcript(t, g, func(c abi.Call, p string) (abi.Errno, string) {
		switch c {
		case abi.CallFileOpen:
			asked++
			return refusals[asked-1], ""
		case abi.CallDiag:
			text.WriteString(p[1:])
		case abi.CallFileStat, abi.CallFileLstat:
			return abi.ENOENT, ""
		}
		return abi.OK, ""
	})
	want := "Permission denied\nNo such file or directory\nFile too large\nNo space left on device\nOperation canceled.\n" +
		"Invalid argument\nNot supported\nI/O error\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSocketsDoNotExist(t *testing.T) {
	s := open(t)
	code := join(i32(0), i32(0), []byte{opCall, 0}, []byte{opCall, 1})
	wasm := minimal().
		with(1, vec([]byte{0x60, 0, 0}, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7f}, []byte{0x60, 1, 0x7f, 0})).
		with(2, vec(imported(abi.ModuleWASI, "sock_shutdown", 0, 1), imported(abi.ModuleWASI, "proc_exit", 0, 2))).
		with(7, vec(export("memory", 2, 0), export("_start", 0, 2))).
		with(10, vec(body(append(code, opEnd)...)))
	g := started(t, s, prepared(t, s, wasm.bytes()))
	drain(g)
	if e := g.Exit(); e.Code != 58 {
		t.Errorf("sock_shutdown returned %d, want notsup", e.Code)
	}
}
