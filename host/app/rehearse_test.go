package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// A cheat makes another call than it made before.
type cheat struct {
	run.Guest
	calls chan sandbox.Inbound
}

func (c *cheat) Calls() <-chan sandbox.Inbound { return c.calls }

func newCheat(g run.Guest, call int) run.Guest {
	c := &cheat{g, make(chan sandbox.Inbound)}
	go func() {
		defer close(c.calls)
		n := 0
		for in := range g.Calls() {
			if n++; n == call {
				in.Payload = append([]byte(nil), in.Payload...)
				in.Payload[len(in.Payload)-1] ^= 1
			}
			c.calls <- in
		}
	}()
	return c
}

// recordedRun is a run of a module, its recording, and what it was answered.
func recordedRun(t *testing.T, h *app.Host, module []byte, config string) (l *app.Loaded, recording []byte, said map[string]host.Answer) {
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
	r, err := h.Start(t.Context(), app.RunRequest{Connector: l, Record: tape, Owner: owner, Config: json.RawMessage(config)})
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
	l, recording, said := recordedRun(t, h, module, `{"pause_ms": 1, "ask": [{"kind": "back_off", "message": "A moment."}]}`)
	got, err := h.Rehearse(t.Context(), l, recording, said)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("from call %d on: it asks for something that it does not wait for", got.Tried+1); got.Bound != want || got.Tried < 2 ||
		got.Tried >= got.Places || got.Differs+got.Untried != "" {
		t.Errorf("%+v, want %s", got, want)
	}
}

// A connector that does something else once it is resumed is told from one that does not, and so is the call.
func TestRehearseCheat(t *testing.T) {
	h := serviceHost(t)
	l, recording, said := recordedRun(t, h, askModule(t), oneCode)
	for _, c := range []struct {
		cheats, call int // which guest, at which call
		want         string
	}{
		{0, 0, ""},
		// The first does it all, the second is stopped, the third is that one resumed.
		{2, 2, "Stopped at question 1 and resumed, it did not end as it did before: The run was resumed from its journal, and call 2 of the connector is"},
		{2, 3, "Stopped at question 1 and resumed, it did not end as it did before: "},
	} {
		begun := 0
		got, err := app.RehearseAs(t.Context(), h, l, recording, said, func(g run.Guest) run.Guest {
			if begun++; c.cheats > 0 && begun == c.cheats+1 {
				return newCheat(g, c.call)
			}
			return g
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Tried != 1 || got.At != "question" || (got.Differs == "") != (c.want == "") || !strings.Contains(got.Differs, c.want) {
			t.Errorf("%+v", got)
		}
	}
}
