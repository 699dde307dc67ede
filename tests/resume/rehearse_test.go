//go:build unix

package resume

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A client answers what the connectors of this package ask, and keeps what was said.
type client struct{ said map[string]host.Answer }

func (c client) Ask(_ context.Context, q run.Question) (host.Answer, error) {
	field, value := "answer", `"autumn"`
	if q.Kind == abi.KindOTP {
		field, value = "code", `"`+plantedCode+`"`
	}
	a := host.Answer{RunID: store.RunID(q.RunID), InteractionID: q.InteractionID, Status: abi.AnswerSuccess,
		Data: map[string]json.RawMessage{field: json.RawMessage(value)}}
	c.said[q.InteractionID] = a.Clone()
	return a, nil
}

// TestRehearse stops connectors of Go and C, in the ways in which their hosts may end, and has them end with
// the same records each time, without a server.
func TestRehearse(t *testing.T) {
	t.Parallel()
	h, err := app.Open(t.Context(), options("memory:"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		name, kind string
		made       func(*testing.T, string) string
	}{{"clerk", "call", resumable}, {"clerk", "question", connector}, {"teller", "question", connector},
		{"cashier", "call", resumable}} {
		t.Run(c.name+" at each "+c.kind, func(t *testing.T) {
			l, err := h.Load(t.Context(), c.made(t, c.name), "")
			if err != nil {
				t.Fatal(err)
			}
			w, owner, tape := newWitness(t), client{map[string]host.Answer{}}, app.NewRecorder()
			config, _ := json.Marshal(map[string]string{"server": w.URL + "/one"})
			started, err := h.Start(t.Context(),
				app.RunRequest{Connector: l, Connection: store.ConnectionID(c.name + c.kind), Owner: owner, Record: tape,
					Config: config, Approved: store.Approved{Hosts: []string{w.URL}}})
			if err != nil {
				t.Fatal(err)
			}
			result, err := started.Do(t.Context())
			if err != nil || result.Status != abi.Succeeded {
				t.Fatalf("%v %+v", err, result)
			}
			recording, _, err := tape.Finish(result)
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			got, err := h.Rehearse(t.Context(), l, recording, owner.said, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if got.At != c.kind || got.Tried != got.Places || got.Tried < 2 ||
				got.Bound+got.Untried+got.Differs != "" {
				t.Errorf("%+v", got)
			}
			if c.kind == "question" && got.Places != 2 {
				t.Errorf("it asked %d times", got.Places)
			}
		})
	}
}
