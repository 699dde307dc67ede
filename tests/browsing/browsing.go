// Package browsing is for tests that use the browser binding as a run does: JSON in,
// JSON out, a real Chromium behind it, and nothing of the guest in between.
package browsing

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/egress"
)

// A Run records what a binding tells its run, for the test to check.
type Run struct {
	mu     sync.Mutex // guards what follows
	events []Event
	ended  []binding.Failure
	// Owner answers the host's questions; nil means that nobody is there.
	Owner func(message string) (status string)
}

// An Event is an event that the binding recorded.
type Event struct {
	Type, Status string
	Data         map[string]any
}

func (r *Run) Event(typ, status string, data map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, Event{typ, status, data})
}

// Events returns the events of a type so far; "" means all.
func (r *Run) Events(typ string) (out []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if typ == "" || e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

func (r *Run) SealedUsed(field, origin, placement string) {
	r.Event("run.sealed_value_used", "succeeded", map[string]any{"field": field, "origin": origin, "placement": placement})
}

func (r *Run) Progress(message string) {
	r.Event("run.progress_reported", "", map[string]any{"message": message})
}

func (r *Run) Artifact(a binding.Artifact) {
	r.Event("artifact.created", "succeeded", map[string]any{"artifactType": a.Type, "size": a.Size, "digest": a.Digest})
}

func (r *Run) Lost(id string, p binding.Probe) {
	r.Event("lost", "", map[string]any{"surface_id": id, "code": p.Code, "detail": p.Detail})
}

func (r *Run) Attachment(a abi.Attachment) {
	r.Event("attachment", a.Status, map[string]any{"reason": a.Reason})
}

func (r *Run) Ask(_ context.Context, message string, _ time.Duration) (id, status string, err error) {
	if r.Owner == nil {
		return "", "", binding.ErrNotInteractive
	}
	return "int_1", r.Owner(message), nil
}

func (r *Run) End(f binding.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, f)
}

// Ended returns the reasons for which the run was told to end.
func (r *Run) Ended() []binding.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// A Session is one run's use of a browser.
type Session struct {
	*browser.Session
	Run *Run
	tb  testing.TB
}

// Host opens the browsers of a host for the length of the test. An event of a browser
// that the host does not know fails the test.
func Host(tb testing.TB, o browser.Options) *browser.Host {
	tb.Helper()
	if o.Data == "" {
		o.Data = Dir(tb)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(tb.Output(), nil))
	}
	if o.Count == nil {
		o.Count = func(name string, _ ...string) {
			if name == "events_undecodable_total" {
				tb.Error("a browser sent an event that is not known")
			}
		}
	}
	h, err := browser.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return h
}

// Dir is a directory for the test that other users can pass through, as the browsers of
// a host that is root have to.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sluice-browsing-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil { // #nosec G302 -- that is its purpose
		tb.Fatal(err)
	}
	return dir
}

// Begin begins a run whose owner approved the hosts, including addresses of this
// machine.
func Begin(tb testing.TB, h *browser.Host, o browser.SessionOptions, hosts ...string) *Session {
	tb.Helper()
	var entries []egress.Entry
	for _, text := range hosts {
		e, err := egress.ParseEntry(text)
		if err != nil {
			tb.Fatal(err)
		}
		e.Private = !e.Wildcard && egress.Special(e.Host)
		entries = append(entries, e)
	}
	o.Policy = egress.NewPolicy(entries...)
	if o.Connection == "" {
		o.Connection, o.Name, o.Connector = "one", "one", "test"
	}
	s := &Session{h.Session(o), &Run{}, tb}
	s.Begin("run_1", s.Run)
	tb.Cleanup(func() { s.End() })
	return s
}

// End closes the session, as the end of a run does; it may be repeated.
func (s *Session) End() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		s.tb.Errorf("close: %v", err)
	}
}

// A Reply is the answer to a call.
type Reply struct {
	Errno abi.Errno
	Raw   json.RawMessage
	// Of actions and refusals.
	ID          string `json:"action_id"`
	State       string `json:"lifecycle_state"`
	Dispatched  bool   `json:"dispatched"`
	Success     bool   `json:"success"`
	Code        string `json:"failure_code"`
	Reason      string `json:"failure_reason"`
	Detail      any    `json:"detail"`
	Refusal     string `json:"code"`
	Message     string `json:"message"`
	Status      string `json:"status"`
	Transitions []struct {
		State string `json:"state"`
		At    int64  `json:"at"`
	} `json:"transitions"`
	Recovery *struct {
		Attempts int `json:"recovery_attempts"`
	} `json:"recovery"`
	Terminal map[string]any             `json:"terminal"`
	Details  map[string]any             `json:"details"`
	Items    map[string]json.RawMessage `json:"items"`
}

func (r Reply) String() string {
	return fmt.Sprintf("%v %s %s %s %v %s", r.Errno, r.State, r.Code, r.Reason, r.Detail, r.Refusal+r.Message)
}

// M is a request, or a part of one.
type M = map[string]any

// Call makes a call and returns its reply, be it a success or not.
func (s *Session) Call(request M) Reply {
	s.tb.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		s.tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	raw, errno := s.Handle(ctx, abi.CallBrowser, text)
	r := Reply{Errno: errno, Raw: raw}
	if err := json.Unmarshal(raw, &r); err != nil {
		s.tb.Fatalf("%s: %v: %s", text, err, raw)
	}
	return r
}

// Must makes a call that has to succeed: an action is verified, or waits for its proof.
func (s *Session) Must(request M) Reply {
	s.tb.Helper()
	r := s.Call(request)
	if r.Errno != abi.OK || r.State == "failed" || r.Status == "timeout" {
		s.tb.Fatalf("%v: %s", request, r.Raw)
	}
	return r
}

// Selector is a target by description.
func Selector(pairs ...any) M {
	m := M{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return M{"selector": m}
}

// TextIs is the condition that an element shows a text.
func TextIs(target M, text string) M {
	return M{"kind": "text", "target": target, "op": "equals", "value": text}
}
