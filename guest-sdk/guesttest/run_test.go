//go:build !wasip1

package guesttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

var manifest = []byte(`{
 "protocol_version": "0.1.0", "connector_id": "https://connectors.example/notebook", "version": "1.0.0", "display_name": "Notebook",
 "runtime_requirements": {"bindings": {"interactive": {"required": false}, "network": {"hosts": ["api.example.org"]},
  "filesystem": {"mounts": [{"name": "notes", "mode": "ro", "purpose": "Reads notes"}]}}},
 "capabilities": {"human_interaction": ["otp", "approval"]},
 "streams": [
  {"name": "notes", "semantics": "append_only", "primary_key": ["id"], "incremental": true, "consent_time_field": "at",
   "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}}},
  {"name": "pages", "semantics": "append_only", "primary_key": ["id"], "coverage_strategy": "parent_detail_accounting", "parent_streams": ["notes"],
   "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}],
 "sluice": {"settings": {"type": "object", "required": ["who"], "properties": {"who": {"type": "string"}}}}}`)

type note struct {
	ID   string     `json:"id"`
	Text string     `json:"text,omitempty"`
	At   *time.Time `json:"at,omitempty"`
}

func options() guesttest.Options {
	return guesttest.Options{Manifest: manifest, Config: map[string]string{"who": "Ada"}}
}

func collects(f func(ctx context.Context, run *guest.Run) error) guest.Connector {
	return guest.Connector{Collect: f}
}

// whole uses nearly every call there is.
func whole(ctx context.Context, run *guest.Run) error {
	var config struct{ Who string }
	if err := run.Config(&config); err != nil {
		return err
	}
	code, err := run.OTP(ctx, "Code for "+config.Who, guest.OnStream("notes"), guest.Timeout(time.Minute))
	if err != nil {
		return err
	}
	id, err := run.Assist(guest.Assistance{Posture: guest.PostureWaitingRetry, Action: guest.ActionNone,
		Message: "Backing off"})
	if err != nil {
		return err
	}
	if err := run.AssistStatus(id, guest.Resolved, ""); err != nil {
		return err
	}
	for i := range 3 {
		if err := run.Emit("notes", fmt.Sprint("n", i),
			note{ID: fmt.Sprint("n", i), Text: fmt.Sprint(len(code))}); err != nil {
			return err
		}
	}
	return errors.Join(
		run.Delete("notes", "n9"),
		run.EmitKey("pages", []string{"n1", "p1"}, map[string]any{"id": "p1"}),
		run.Gap(guest.Gap{Stream: "pages", ParentStream: "notes", RecordKey: "n2", Reason: "http_404"}),
		run.Recovered(abi.ServedGap{GapID: "gap_1", Stream: "pages"}),
		run.Cover(guest.Coverage{StateStream: "notes", Stream: "pages", RequiredKeys: []string{"n1", "n2"},
			HydratedKeys: []string{"n1"}, GapKeys: []string{"n2"}}),
		run.Progress("Half way", guest.OnStream("notes"), guest.Count(3), guest.Total(6)),
		run.Skip(guest.Skip{Stream: "notes", Reason: "rate_limited", Message: "Later",
			RecoveryHint: &guest.Hint{Action: guest.RetryByRuntime},
			Continuation: &guest.Continuation{Boundary: "2026", SliceEnd: 3, Considered: 3, Covered: 3}}),
		run.Message("Dear owner", guest.Last()),
		run.Log(0, "a line", "n", 3, "who", config.Who),
		run.Checkpoint("notes", struct {
			After string `json:"after"`
		}{"n2"}),
	)
}

const wholeTranscript = `START full_refresh notes,pages
INTERACTION otp otp-1 notes "Code for Ada" -> success
ASSISTANCE asst_0000000000000001 waiting_retry/none "Backing off"
ASSISTANCE_STATUS asst_0000000000000001 resolved
RECORD notes "n0" {"id":"n0","text":"6"}
RECORD notes "n1" {"id":"n1","text":"6"}
RECORD notes "n2" {"id":"n2","text":"6"}
DELETE notes "n9"
RECORD pages ["n1","p1"] {"id":"p1"}
DETAIL_GAP pages notes n2 http_404
DETAIL_GAP_RECOVERED pages gap_1
DETAIL_COVERAGE pages of notes required=2 hydrated=1 gaps=1
PROGRESS notes "Half way" 3/6
SKIP_RESULT notes rate_limited "Later" hint=retry_by_runtime
MESSAGE "Dear owner"
LOG info "a line"
STATE notes {"after":"n2"}
DONE succeeded 5
EXIT 0
`

func TestWholeProtocol(t *testing.T) {
	o := options()
	o.Answers = []guesttest.Answer{guesttest.Code("424242")}
	res := guesttest.Run(t, collects(whole), o)
	if diff := cmp.Diff(wholeTranscript, res.Transcript); diff != "" {
		t.Error(diff)
	}
	if res.Status != abi.Succeeded || res.ExitCode != 0 || string(res.States["notes"]) != `{"after":"n2"}` {
		t.Errorf("status %s, exit %d, states %s", res.Status, res.ExitCode, res.States)
	}
	if got := res.Logs[0]; got.Level != "info" || string(got.Fields) != `{"n":3,"who":"Ada"}` {
		t.Errorf("log %+v %s", got, got.Fields)
	}
	if q := res.Interactions[0]; q.Status != "success" || *q.TimeoutSeconds != 60 {
		t.Errorf("interaction %+v", q)
	}
	if s := res.Skips[0]; !s.Continuation.Remaining || s.Continuation.Owner != "runtime" {
		t.Errorf("continuation %+v", s.Continuation)
	}
}

// TestViolations: what would end a run of a real host shows up in go test.
func TestViolations(t *testing.T) {
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		want    abi.Subtype
		scope   string
		collect func(ctx context.Context, run *guest.Run) error
	}{
		{abi.VRecordFieldsOutsideScope, `{"streams":[{"name":"notes","fields":["id"]}]}`,
			func(_ context.Context, run *guest.Run) error {
				return run.Emit("notes", "a", note{ID: "a", Text: "b"})
			}},
		{abi.VRecordOutsideTimeRange, `{"streams":[{"name":"notes","time_range":{"since":"2021-01-01"}}]}`,
			func(_ context.Context, run *guest.Run) error {
				return run.Emit("notes", "a", note{ID: "a", At: &at})
			}},
		{abi.VStateForDependentStream, "", func(_ context.Context, run *guest.Run) error {
			return run.Checkpoint("pages", nil)
		}},
		{abi.VProgressInvalidMessage, "", func(_ context.Context, run *guest.Run) error {
			return run.Progress(" ")
		}},
		{abi.VAssistanceStatusUnknownId, "", func(_ context.Context, run *guest.Run) error {
			return run.AssistStatus("asst_none", guest.Resolved, "")
		}},
		{abi.VMessageLimitExceeded, "", func(_ context.Context, run *guest.Run) error {
			return errors.Join(run.Checkpoint("notes", nil), run.Checkpoint("notes", nil))
		}},
	} {
		o := options()
		o.Scope, o.WantViolation = c.scope, c.want
		if c.want == abi.VMessageLimitExceeded {
			l := abi.DefaultLimits()
			l.StatePerRun = 1
			o.Limits = &l
		}
		res := guesttest.Run(t, guest.Connector{Collect: c.collect, Verbatim: true}, o)
		if res.Status != abi.Failed || res.Done != nil || res.ExitCode == 0 {
			t.Errorf("%s: status %s, exit %d, done %v", c.want, res.Status, res.ExitCode, res.Done)
		}
	}
}

// recorder stands in for a test, to see it fail.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Helper() {}

func TestUnexpectedViolationFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	guesttest.Run(r, collects(func(_ context.Context, run *guest.Run) error { return run.Progress("") }), options())
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], string(abi.VProgressInvalidMessage)) {
		t.Errorf("reported %q", r.errors)
	}
	o := options()
	o.WantViolation = abi.VProgressInvalidMessage
	r.errors = nil
	guesttest.Run(r, collects(func(context.Context, *guest.Run) error { return nil }), o)
	if len(r.errors) != 1 {
		t.Errorf("a missing violation is not reported: %q", r.errors)
	}
}

func TestUnansweredQuestionFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	res := guesttest.Run(r, collects(func(ctx context.Context, run *guest.Run) error {
		_, err := run.Approve(ctx, "Sure?")
		if !errors.Is(err, guest.ErrCancelled) {
			t.Errorf("unanswered question: %v", err)
		}
		return nil
	}), options())
	if len(r.errors) != 1 || res.Interactions[0].Status != abi.AnswerCancelled {
		t.Errorf("reported %q, %+v", r.errors, res.Interactions)
	}
}

func TestCancel(t *testing.T) {
	o := options()
	o.Cancel = func(call abi.Call) bool { return call == abi.CallCheckpoint }
	res := guesttest.Run(t, collects(func(ctx context.Context, run *guest.Run) error {
		if err := run.Emit("notes", "a", note{ID: "a"}); err != nil {
			return err
		}
		err := run.Checkpoint("notes", nil)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, abi.ECANCELED) || ctx.Err() == nil {
			t.Errorf("cancelled checkpoint: %v, ctx %v", err, ctx.Err())
		}
		return ctx.Err()
	}), o)
	if res.Status != abi.Cancelled || res.ExitCode == 0 || len(res.Records["notes"]) != 1 {
		t.Errorf("%s, exit %d\n%s", res.Status, res.ExitCode, res.Transcript)
	}
}

func TestStateConfigAndMode(t *testing.T) {
	o := options()
	o.State = map[string]any{"notes": map[string]string{"after": "n7"}, "pages": nil}
	res := guesttest.Run(t, collects(func(_ context.Context, run *guest.Run) error {
		var cursor struct{ After string }
		found, err := run.State("notes", &cursor)
		if !found || err != nil || cursor.After != "n7" || !run.Incremental() || run.Mode() != abi.Incremental {
			t.Errorf("state %v %v %v %s", found, err, cursor, run.Mode())
		}
		if found, _ := run.State("pages", &cursor); found {
			t.Error("a null cursor counts as a state")
		}
		return nil
	}), o)
	if res.Status != abi.Succeeded {
		t.Error(res.Transcript)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Files = map[string]string{"notes": dir}
	guesttest.Run(t, collects(func(_ context.Context, run *guest.Run) error {
		mount, ok := run.Mount("notes")
		b, err := os.ReadFile(filepath.Join(mount, "a.txt"))
		if !ok || err != nil || string(b) != "hello" {
			t.Errorf("mount %q %v: %q, %v", mount, ok, b, err)
		}
		return nil
	}), o)
}

// TestNetwork: requests go to the handler, and to no host that the manifest does not list.
func TestNetwork(t *testing.T) {
	o := options()
	o.Network = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
		w.WriteHeader(http.StatusTeapot)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("X-Word"), body)
	})
	guesttest.Run(t, collects(func(_ context.Context, run *guest.Run) error {
		q := guest.Request{Method: "POST", URL: "https://api.example.org/a", Header: [][2]string{{"X-Word", "<hello>"}},
			Body: []byte("all")}
		res, err := run.Fetch(q)
		if err != nil || res.Status != http.StatusTeapot || res.URL != q.URL || res.Get("x-path") != "/a" ||
			res.Get("x-other") != "" {
			t.Fatalf("%+v, %v", res, err)
		}
		body, err := io.ReadAll(res.Body)
		if string(body) != "POST <hello> all" || err != nil {
			t.Errorf("body %q, %v", body, err)
		}
		if err := run.CloseHandle(1); !errors.Is(err, abi.ENOENT) {
			t.Errorf("the handle is open behind the end: %v", err)
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
		if n, err := res.Body.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("a closed body: %d, %v", n, err)
		}
		if res, err = run.Fetch(guest.Request{URL: "https://api.example.org/b"}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(res.Body.Close(), res.Body.Close()); err != nil {
			t.Errorf("closed unread: %v", err)
		}
		if _, err := run.Fetch(guest.Request{URL: "https://evil.example/"}); !errors.Is(err, abi.EDENIED) {
			t.Errorf("another host: %v", err)
		}
		return nil
	}), o)
}

// TestProjection: records keep to the fields of the scope, whatever the
// connector emits.
func TestProjection(t *testing.T) {
	o := options()
	o.Scope = `{"streams":[{"name":"notes","fields":["id"]}]}`
	res := guesttest.Run(t, collects(func(_ context.Context, run *guest.Run) error {
		return errors.Join(
			run.Emit("notes", "a", note{ID: "a", Text: "left out"}),
			run.Emit("notes", "b", map[string]any{"text": "left out", "id": "b", "more": []int{1}}),
			run.Delete("notes", "c"),
		)
	}), o)
	if len(res.Records["notes"]) != 3 || string(res.Records["notes"][0].Data) != `{"id":"a"}` ||
		string(res.Records["notes"][1].Data) != `{"id":"b"}` {
		t.Error(res.Transcript)
	}
}
