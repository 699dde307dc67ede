package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// coder answers every question with a code.
type coder struct{ said map[string]host.Answer }

func (c coder) Ask(_ context.Context, q run.Question) (host.Answer, error) {
	a := host.Answer{RunID: store.RunID(q.RunID), InteractionID: q.InteractionID, Status: abi.AnswerSuccess,
		Data: map[string]json.RawMessage{"code": json.RawMessage(`"424242"`)}}
	c.said[q.InteractionID] = a.Clone()
	return a, nil
}

// A cheat does something else at one of its calls than it did before: it makes another one, none
// or two, or ends there.
type cheat struct {
	run.Guest
	how   string
	calls chan sandbox.Inbound
}

func (c *cheat) Calls() <-chan sandbox.Inbound { return c.calls }

func (c *cheat) Exit() sandbox.Exit {
	if c.how == "end" {
		return sandbox.Exit{Kind: sandbox.ExitExited}
	}
	return c.Guest.Exit()
}

func (c *cheat) cheatAt(call int) {
	defer close(c.calls)
	n := 0
	for in := range c.Guest.Calls() {
		if n++; n == call {
			own := sandbox.Inbound{ID: in.ID, Call: in.Call, Payload: bytes.Clone(in.Payload)}
			switch c.how {
			case "other":
				own.Payload = append(own.Payload[:len(own.Payload)-1], own.Payload[len(own.Payload)-1]^1)
				c.calls <- own
			case "another":
				own.Call++
				c.calls <- own
			case "none":
				_ = c.Guest.Reply(in.ID, abi.OK, nil) // the guest goes on, or is confused
			case "two":
				c.calls <- own
				c.calls <- in
				continue
			case "end":
				c.Guest.Kill()
			}
			in.Release()
			continue
		}
		c.calls <- in
	}
}

// recordedRun is a run of a module, its recording, and what it was answered.
func recordedRun(t *testing.T, h *app.Host, module []byte,
	config string) (l *app.Loaded, recording []byte, said map[string]host.Answer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ask.wasm")
	if err := os.WriteFile(file, module, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := h.Load(t.Context(), file, "")
	if err != nil {
		t.Fatal(err)
	}
	tape, owner := app.NewRecorder(), coder{map[string]host.Answer{}}
	r, err := h.Start(t.Context(),
		app.RunRequest{Connector: l, Record: tape, Owner: owner, Config: json.RawMessage(config)})
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	recording, _, err = tape.Finish(result)
	if err != nil {
		t.Fatal(err)
	}
	return l, recording, owner.said
}

// A connector that is resumable no more from some call on is stopped up to there, and not failed.
func TestRehearseBound(t *testing.T) {
	h := serviceHost(t)
	module := askModule(t, `"sluice": {`, `"sluice": {"resumable": true,`)
	l, recording, said := recordedRun(t, h, module,
		`{"pause_ms": 1, "ask": [{"kind": "back_off", "message": "A moment."}]}`)
	got, err := h.Rehearse(t.Context(), l, recording, said, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("from call %d on: it asks for something that it does not wait for",
		got.Tried+1); got.Bound != want || got.Tried < 2 ||
		got.Tried >= got.Places || got.Differs+got.Untried != "" {
		t.Errorf("%+v, want %s", got, want)
	}
}

// A connector that does something else once it is resumed is told from one that does not, and so is the call.
func TestRehearseCheat(t *testing.T) {
	h := serviceHost(t)
	l, recording, said := recordedRun(t, h, askModule(t), oneCode)
	const differs = "Stopped at question 1 and resumed, it did not end as it did before: The run was resumed from its journal, and "
	for _, c := range []struct {
		how  string
		call int
		want string
	}{
		{"", 0, ""},
		{"other", 2, differs + "call 2 of the connector is"},
		{"another", 2, differs + "call 2 of the connector is"},
		{"none", 2, differs + "call 2 of the connector "},
		{"two", 2, differs + "call 3 of the connector is"},
		{"end", 1, differs + "the connector ended after call 0"},
		{"end", 2, differs + "the connector ended after call 1"},
		{"other", 3, "Stopped at question 1 and resumed, it did not end as it did before: "}, // once it goes on by itself
	} {
		begun := 0
		got, err := app.RehearseAs(t.Context(), h, l, recording, said, func(g run.Guest) run.Guest {
			if begun++; c.how == "" || begun < 3 { // the first does it all, the second is stopped, the third is that one resumed
				return g
			}
			x := &cheat{g, c.how, make(chan sandbox.Inbound)}
			go x.cheatAt(c.call)
			return x
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Tried != 1 || got.At != "question" || (got.Differs == "") != (c.want == "") ||
			!strings.Contains(got.Differs, c.want) {
			t.Errorf("%s at call %d: %+v", c.how, c.call, got)
		}
	}
}
