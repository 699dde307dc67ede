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
		lines = append(lines, fmt.Sprintf("%d %q", in.Call, line))
		in.Release()
		if in.Call == abi.CallEmit {
			if err := g.Credit(1, len(text)); err != nil {
				t.Error(err)
			}
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
				if err != nil || d > 30*time.Millisecond {
					t.Errorf("sleep of %v, %v", d, err)
				}
				<-time.After(d + 5*time.Millisecond)
			}
			return abi.OK, ""
		}, []string{`67 "\x80\xc3\xc9\x01\x00\x00\x00\x00"`, `12 "slept true"`}},
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
