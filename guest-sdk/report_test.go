//go:build !wasip1

package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// TestMessages is the wire form of every message that no question is.
func TestMessages(t *testing.T) {
	h := &tape{reply: map[abi.Call]string{abi.CallAssist: `{"assistance_request_id":"asst_1"}`}}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		id, err := run.Assist(guest.Assistance{
			Posture: guest.PostureRunning, Action: guest.ActionActElsewhere, Message: "Approve", Stream: "a",
			Timeout: time.Minute, Attachments: []abi.Attachment{{Kind: "url", URL: "https://x/?a=1&b=2"}},
		})
		if id != "asst_1" {
			t.Errorf("id %q", id)
		}
		n := int64(3)
		return errors.Join(err,
			run.AssistStatus(id, guest.Resolved, ""),
			run.Checkpoint("a", map[string]int{"n": 1}), run.Checkpoint("a", nil),
			run.Checkpoint("a", json.RawMessage(`{ "n" : 2 }`)),
			run.Progress("p", guest.OnStream("a"), guest.Count(0.5), guest.Total(3)),
			run.Skip(guest.Skip{Stream: "a", Reason: "r", ResourceIDs: []string{"x"}, TimeRange: &guest.TimeRange{Since: "2026"},
				Diagnostics:  json.RawMessage(`{"d":1}`),
				Continuation: &guest.Continuation{Boundary: "b"}, RecoveryHint: &guest.Hint{Action: guest.NotRetriable}}),
			run.Gap(guest.Gap{Stream: "a", RecordKey: "k", DetailLocator: json.RawMessage(`{"u":1}`)}),
			run.Recovered(abi.ServedGap{GapID: "g", Stream: "a", Reason: "not sent"}),
			run.Cover(guest.Coverage{StateStream: "a", Stream: "b", Considered: &n}),
			run.Message("chunk", guest.Node("n"), guest.Last(), guest.Meta(map[string]int{"m": 1})),
		)
	})
	want := []string{
		"start",
		`assist {"progress_posture":"running","owner_action":"act_elsewhere","response_obligation":"none","message":"Approve","timeout_seconds":60,"attachments":[{"kind":"url","url":"https://x/?a=1&b=2"}],"stream":"a"}`,
		`assist_status {"assistance_request_id":"asst_1","status":"resolved"}`,
		`checkpoint {"stream":"a","cursor":{"n":1}}`, `checkpoint {"stream":"a","cursor":null}`,
		`checkpoint {"stream":"a","cursor":{"n":2}}`, `progress {"stream":"a","message":"p","count":0.5,"total":3}`,
		`skip {"stream":"a","reason":"r","recovery_hint":{"action":"not_retriable"},"continuation":{"boundary":"b","slice_start":0,"slice_end":0,"considered":0,"covered":0,"remaining":true,"owner":"runtime"},"resource_ids":["x"],"time_range":{"since":"2026"},"diagnostics":{"d":1}}`,
		`gap {"stream":"a","record_key":"k","detail_locator":{"u":1}}`,
		`recovered {"gap_id":"g","stream":"a","reference_only":true}`,
		`coverage {"reference_only":true,"state_stream":"a","stream":"b","required_keys":[],"hydrated_keys":[],"considered":3}`,
		`message {"node":"n","chunk":"chunk","is_last":true,"meta":{"m":1}}`,
		`done {"status":"succeeded","records_emitted":0}`,
	}
	if diff := cmp.Diff(want, h.calls); diff != "" {
		t.Error(diff)
	}
}

// TestBadMeta: what cannot be encoded is an error and sends nothing.
func TestBadMeta(t *testing.T) {
	h := &tape{}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		if run.Message("x", guest.Meta(make(chan int))) == nil ||
			run.Skip(guest.Skip{Diagnostics: json.RawMessage("{")}) == nil {
			t.Error("no error")
		}
		return nil
	})
	if len(h.calls) != 2 {
		t.Errorf("calls %q", h.calls)
	}
}

// TestLog: Log and the slog handler write the same lines.
func TestLog(t *testing.T) {
	h := &tape{}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		log := slog.New(run.LogHandler()).With("run", 1)
		log.WithGroup("g").With("a", true).Warn("grouped", slog.Group("sub", "x", 1.5), "err", errors.New("oops"))
		log.Debug("twice", "k", 1, "k", 2, slog.Group("", "in", "line"), slog.Attr{})
		log.WithGroup("").Log(context.Background(), slog.LevelError+1, "above")
		return errors.Join(
			run.Log(slog.LevelInfo, "plain"),
			run.Log(slog.LevelDebug-4, "args", "n", 3, "at", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), "d", time.Second),
		)
	})
	want := []string{
		"start",
		`log {"level":"warn","message":"grouped","fields":{"run":1,"g.a":true,"g.sub.x":"1.5","g.err":"oops"}}`,
		`log {"level":"debug","message":"twice","fields":{"run":1,"k":1,"in":"line"}}`,
		`log {"level":"error","message":"above","fields":{"run":1}}`,
		`log {"level":"info","message":"plain"}`,
		`log {"level":"debug","message":"args","fields":{"n":3,"at":"2026-01-02T00:00:00Z","d":"1s"}}`,
		`done {"status":"succeeded","records_emitted":0}`,
	}
	if diff := cmp.Diff(want, h.calls); diff != "" {
		t.Error(diff)
	}
}

// TestErrors: a refused call is a typed error that names number and code.
func TestErrors(t *testing.T) {
	h := &tape{refuse: map[abi.Call]error{abi.CallNetworkExchange: guest.NewError(abi.EDENIED,
		"sealed_destination_denied", "not there")}}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		_, err := run.NetworkRequest([]byte("{}"))
		e, ok := errors.AsType[*guest.Error](err)
		if !ok || !errors.Is(err, abi.EDENIED) || errors.Is(err, context.Canceled) ||
			e.Error() != "sluice: EDENIED sealed_destination_denied: not there" {
			t.Errorf("%v", err)
		}
		if _, err := run.ReadHandle(1, make([]byte, 1)); !errors.Is(err, abi.ENOENT) || err.Error() != "sluice: ENOENT" {
			t.Errorf("%v", err)
		}
		if n, err := run.ReadHandle(1, nil); n != 0 || err != nil {
			t.Errorf("nothing to read into: %d, %v", n, err)
		}
		return nil
	})
	if h.last() != `done {"status":"succeeded","records_emitted":0}` {
		t.Errorf("a refused call ends the run: %s", h.last())
	}
}
