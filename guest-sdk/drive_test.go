//go:build !wasip1

package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A tape is a host that records what is called, and refuses what it is told to.
type tape struct {
	start  string
	calls  []string // name and message; frames as their records
	frames [][]byte
	refuse map[abi.Call]error
	reply  map[abi.Call]string
}

const tapeStart = `{"run_id":"run_1","connection_id":"c","connector_id":"https://c","collection_mode":"full_refresh",
 "scope":{"streams":[{"name":"a"},{"name":"b","fields":["id"]}]},"state":null,"bindings":{"interactive":{}},"detail_gaps":[]}`

func (h *tape) Call(call abi.Call, request []byte) ([]byte, error) {
	name := ""
	for _, f := range abi.Functions {
		if f.Call == call {
			name = f.Name
		}
	}
	if call == abi.CallEmit {
		h.frames = append(h.frames, slices.Clone(request))
		frame, err := abi.NewFrameReader(request)
		if err != nil {
			return nil, err
		}
		name += fmt.Sprintf(" %d records", frame.Count())
	}
	if call != abi.CallEmit && len(request) > 0 {
		name += " " + string(request)
	}
	h.calls = append(h.calls, name)
	if err := h.refuse[call]; err != nil {
		return nil, err
	}
	if call == abi.CallStart {
		if h.start == "" {
			h.start = tapeStart
		}
		return []byte(h.start), nil
	}
	return []byte(h.reply[call]), nil
}

func (h *tape) Read(int32, []byte) (int, error) { return 0, guest.NewError(abi.ENOENT, "", "") }
func (h *tape) Close(int32) error               { return guest.NewError(abi.ENOENT, "", "") }

// drive runs collect against h and returns the exit code.
func (h *tape) drive(t *testing.T, collect func(ctx context.Context, run *guest.Run) error) int {
	t.Helper()
	return guest.Drive(t.Context(), guest.Connector{Collect: collect}, h)
}

func (h *tape) last() string { return h.calls[len(h.calls)-1] }

// TestDone: what Collect returns becomes DONE and an exit code that agrees with
// it.
func TestDone(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		emitted int
		done    string
		exit    int
	}{
		{"succeeded", nil, 3, `done {"status":"succeeded","records_emitted":3}`, 0},
		{"error", errors.New("disk on fire"), 1,
			`done {"status":"failed","records_emitted":1,"error":{"message":"disk on fire"}}`, 1},
		{"blank error", errors.New(" "), 0,
			`done {"status":"failed","records_emitted":0,"error":{"message":"the connector failed without a message"}}`, 1},
		{"fail", fmt.Errorf("list: %w", guest.Fail("rate_limited", true, guest.RetryByRuntime, "status %d", 429)), 0,
			`done {"status":"failed","records_emitted":0,"error":{"message":"list: status 429","code":"rate_limited","retryable":true,"recovery_hint":{"action":"retry_by_runtime"}}}`, 1},
		{"fail without hint", guest.Fail("gone", false, "", "gone"), 0,
			`done {"status":"failed","records_emitted":0,"error":{"message":"gone","code":"gone","retryable":false}}`, 1},
		{"declined", fmt.Errorf("login: %w", guest.ErrCancelled), 0,
			`done {"status":"failed","records_emitted":0,"error":{"message":"login: guest: the owner cancelled the question","code":"interaction_cancelled","recovery_hint":{"action":"manual_action_required"}}}`, 1},
		{"own context", context.Canceled, 0,
			`done {"status":"failed","records_emitted":0,"error":{"message":"context canceled"}}`, 1},
		{"hostile message", errors.New("a\x00\xff\"" + strings.Repeat("é", 3000)), 0,
			`done {"status":"failed","records_emitted":0,"error":{"message":"a` + "\ufffd\ufffd" + `\"` +
				strings.Repeat("é", 1996) + `"}}`, 1},
	} {
		h := &tape{}
		exit := h.drive(t, func(_ context.Context, run *guest.Run) error {
			for i := range c.emitted {
				if err := run.Emit("a", fmt.Sprint(i), struct{}{}); err != nil {
					t.Error(err)
				}
			}
			return c.err
		})
		if exit != c.exit || h.last() != c.done {
			t.Errorf("%s: exit %d, %s\nwant %d, %s", c.name, exit, h.last(), c.exit, c.done)
		}
	}
}

// TestPanic: a panic is DONE failed with its stack in the log, and the
// records before it still arrive.
func TestPanic(t *testing.T) {
	h := &tape{}
	line := 0 // before that of the panic
	exit := h.drive(t, func(_ context.Context, run *guest.Run) error {
		if err := run.Emit("a", "1", struct{}{}); err != nil {
			return err
		}
		var m map[string]int
		_, _, line, _ = runtime.Caller(0)
		m["a"] = 1 //lint:ignore SA5000 the panic is the point
		return nil
	})
	if exit != 1 || len(h.calls) != 4 || h.calls[1] != "emit 1 records" {
		t.Fatalf("exit %d, calls %q", exit, h.calls)
	}
	message := fmt.Sprintf("panic: assignment to entry in nil map at guest-sdk/drive_test.go:%d", line+1)
	if !strings.HasPrefix(h.calls[2], `log {"level":"error","message":"`+message+`","fields":{"stack":"goroutine`) ||
		!strings.Contains(h.calls[2], "drive_test.go") {
		t.Errorf("log %s", h.calls[2])
	}
	want := `done {"status":"failed","records_emitted":1,"error":{"message":"` + message + `","code":"panic","retryable":false}}`
	if h.last() != want {
		t.Errorf("%s\nwant %s", h.last(), want)
	}
}

// panicky panics while it is encoded, that is within Emit.
type panicky struct{}

func (panicky) MarshalJSON() ([]byte, error) { panic("ouch") }

func TestPanicWithinEmit(t *testing.T) {
	h := &tape{}
	if exit := h.drive(t, func(_ context.Context, run *guest.Run) error {
		return run.Emit("a", "1", panicky{})
	}); exit != 1 || !strings.Contains(h.last(), "panic: ouch") {
		t.Errorf("exit %d, calls %q", exit, h.calls)
	}
}

// TestViolationEndsTheRun: after EPROTO nothing is sent any more, DONE included,
// and the context is done.
func TestViolationEndsTheRun(t *testing.T) {
	h := &tape{refuse: map[abi.Call]error{abi.CallProgress: guest.NewError(abi.EPROTO,
		"progress_invalid_message", "blank")}}
	exit := h.drive(t, func(ctx context.Context, run *guest.Run) error {
		err := run.Progress("")
		if e, ok := errors.AsType[*guest.Error](err); !ok || e.Code != "progress_invalid_message" ||
			!errors.Is(err, abi.EPROTO) || ctx.Err() == nil {
			t.Errorf("%v, ctx %v", err, ctx.Err())
		}
		for _, err := range []error{run.Emit("a", "1", struct{}{}), run.Checkpoint("a", nil), run.Flush()} {
			if !errors.Is(err, abi.EPROTO) {
				t.Errorf("afterwards: %v", err)
			}
		}
		return err
	})
	if diff := cmp.Diff([]string{"start", `progress {"message":""}`}, h.calls); exit != 1 || diff != "" {
		t.Errorf("exit %d\n%s", exit, diff)
	}
}

// TestCancellation: ECANCELED makes the context done; DONE says cancelled,
// whatever Collect returns.
func TestCancellation(t *testing.T) {
	for _, result := range []error{nil, context.Canceled, errors.New("other")} {
		cancelled := guest.NewError(abi.ECANCELED, "", "")
		h := &tape{refuse: map[abi.Call]error{abi.CallCheckpoint: cancelled, abi.CallDone: cancelled}}
		exit := h.drive(t, func(ctx context.Context, run *guest.Run) error {
			err := run.Checkpoint("a", nil)
			if !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(ctx), abi.ECANCELED) {
				t.Errorf("%v, cause %v", err, context.Cause(ctx))
			}
			return result
		})
		if exit != 1 || h.last() != `done {"status":"cancelled","records_emitted":0}` {
			t.Errorf("%v: exit %d, %s", result, exit, h.last())
		}
	}
}

// TestNoStart: without START there is nothing to do and nobody to tell.
func TestNoStart(t *testing.T) {
	for name, h := range map[string]*tape{
		"refused":   {refuse: map[abi.Call]error{abi.CallStart: guest.NewError(abi.EIO, "", "")}},
		"malformed": {start: `{"scope":`},
	} {
		exit := h.drive(t, func(context.Context, *guest.Run) error {
			t.Errorf("%s: Collect is called", name)
			return nil
		})
		if exit == 0 || len(h.calls) != 1 {
			t.Errorf("%s: exit %d, calls %q", name, exit, h.calls)
		}
	}
}

// TestDoneRefused: a host that does not take DONE gets no exit code 0.
func TestDoneRefused(t *testing.T) {
	h := &tape{refuse: map[abi.Call]error{abi.CallDone: guest.NewError(abi.EPROTO, "", "")}}
	if exit := h.drive(t, func(context.Context, *guest.Run) error { return nil }); exit == 0 {
		t.Error("exit 0")
	}
}

func TestNoCollect(t *testing.T) {
	h := &tape{}
	if exit := guest.Drive(t.Context(), guest.Connector{}, h); exit == 0 ||
		!strings.Contains(h.last(), "no Collect function") {
		t.Errorf("exit %d, %s", exit, h.last())
	}
}

// TestFailChecksItsWords: a code or hint outside of the vocabulary is found when
// it is written, not when a host refuses it.
func TestFailChecksItsWords(t *testing.T) {
	for _, f := range []func() error{
		func() error { return guest.Fail("", false, "", "x") },
		func() error { return guest.Fail("Upper", false, "", "x") },
		func() error { return guest.Fail("a-b", false, "", "x") },
		func() error { return guest.Fail(strings.Repeat("a", 65), false, "", "x") },
		func() error { return guest.Fail("ok", false, "try_harder", "x") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = f()
		}()
	}
	for _, action := range abi.RecoveryActions {
		_ = guest.Fail("ok_1", true, action, "x")
	}
}

// TestStart: all of START is readable, without encoding/json.
func TestStart(t *testing.T) {
	start := abi.Start{
		RunID: "run_1", ConnectionID: "mail", ConnectorID: "https://c/mail", CollectionMode: abi.Incremental,
		Scope: abi.Scope{Streams: []abi.ScopeStream{
			{Name: "a", Resources: []string{"x", "y"}, Fields: []string{},
				TimeRange: &abi.TimeRange{Since: "2026", Until: "2027"},
				Extra:     []abi.ScopeMember{{Name: "note", Value: json.RawMessage(`{"k":[1]}`)}}},
			{Name: "b", TimeRange: &abi.TimeRange{Until: "2027"}},
		}},
		State: map[string]json.RawMessage{"a": json.RawMessage(`{"after":"\"é"}`), "b": json.RawMessage("null")},
		Bindings: abi.Bindings{
			Network: &abi.NetworkBinding{Hosts: []string{"h:1"}}, Interactive: &struct{}{},
			Filesystem: &abi.FilesystemBinding{Mounts: []abi.GuestMount{{Path: "/data", Mode: "ro"}}},
		},
		DetailGaps: []abi.ServedGap{{GapID: "g", Stream: "b", ParentStream: "a", RecordKey: "k", Reason: "r",
			DetailLocator: json.RawMessage(`{"u":1}`), ListCursor: json.RawMessage(`{"p":2}`), AttemptCount: 3}},
		Config: json.RawMessage(`{"who":"Ada"}`), Secrets: map[string]string{"token": "t"},
		ABI: &abi.Version{Major: 1, Minor: 2},
	}
	raw, err := json.Marshal(start)
	if err != nil {
		t.Fatal(err)
	}
	h := &tape{start: string(raw)}
	h.drive(t, func(_ context.Context, run *guest.Run) error {
		if diff := cmp.Diff(&start, run.Start()); diff != "" {
			t.Error(diff)
		}
		var cursor struct{ After string }
		if found, err := run.State("a", &cursor); !found || err != nil || cursor.After != `"é` {
			t.Errorf("state %v %v %q", found, err, cursor.After)
		}
		if found, _ := run.State("b", &cursor); found {
			t.Error("null is a state")
		}
		if _, err := run.State("a", new(int)); err == nil {
			t.Error("an object fits an int")
		}
		var config struct{ Who string }
		if err := run.Config(&config); err != nil || config.Who != "Ada" {
			t.Errorf("config %v %v", config, err)
		}
		if dir, ok := run.Mount("data"); dir != "/data" || !ok {
			t.Errorf("mount %q %v", dir, ok)
		}
		if _, ok := run.Mount("other"); ok {
			t.Error("a mount that is not there")
		}
		s, ok := run.Stream("b")
		if run.Secret("token") != "t" || run.Secret("none") != "" || !run.InScope("b") || run.InScope("c") || !ok ||
			s.TimeRange.Until != "2027" {
			t.Error("secret or scope")
		}
		return nil
	})
}
