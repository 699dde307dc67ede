package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// places are slots that record how they are used.
type places struct {
	free chan struct{} // Acquire takes one

	mu    sync.Mutex // guards calls
	calls []string
}

func (p *places) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, what)
}

func (p *places) Acquire(ctx context.Context) error {
	select {
	case <-p.free:
		p.note("acquire")
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *places) Leave()   { p.note("leave") }
func (p *places) Return()  { p.note("return") }
func (p *places) Release() { p.note("release") }

// The run's row and everything with it are durable before there is a guest. The run is
// pending until there is a free place, renews its lease meanwhile, and the wait does
// not count against its preparation time.
func TestAccept(t *testing.T) {
	g := faultStage(t)
	slots := &places{free: make(chan struct{})}
	renewed := &renewals{Store: g.host.Store, seen: make(chan struct{}, 100)}
	var deadline time.Time // of the preparation
	d := g.drive(t, func(in *run.Input, deps *run.Deps) {
		launch := deps.Launch
		deps.Launch = func(ctx context.Context, l run.Launch) (run.Guest, binding.Binding, error) {
			deadline, _ = ctx.Deadline()
			return launch(ctx, l)
		}
		in.Request = store.Request{By: "key:k1", Transport: "rest", WorkflowID: "player", Tags: []string{"a"}}
		deps.Slots, deps.Store, deps.EngineVersion = slots, renewed, "v1.2.3"
		deps.LeaseTTL, deps.LeaseRenew = time.Minute, time.Millisecond
	})
	ctx := t.Context()
	row, err := d.run.Accept(ctx, func(r store.Run) []store.Write {
		return []store.Write{{Kind: store.Replies, ID: "key", Data: json.RawMessage(`{"run":"` + string(r.ID) + `"}`),
			If: store.Absent()}}
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := g.host.Store.Run(ctx, d.run.ID)
	if err != nil || stored.Status != "active" || stored.Phase != "preparing" || stored.Request.By != "key:k1" ||
		row.ID != stored.ID {
		t.Errorf("row %+v, %v", stored, err)
	}
	if doc, err := g.host.Store.Document(ctx, store.Replies, "key"); err != nil ||
		string(doc.Data) != `{"run":"`+string(d.run.ID)+`"}` {
		t.Errorf("document %s, %v", doc.Data, err)
	}
	if _, err := d.run.Pause(run.PauseRequest{}); runStatus(t, err) != "pending" {
		t.Error("a pending run is paused")
	}
	d.begin()
	for range 3 {
		<-renewed.seen
	}
	if live := d.run.Live(); live.Phase != "preparing" || !live.Queued {
		t.Errorf("live %+v", live)
	}
	freed := time.Now()
	slots.free <- struct{}{}
	e := d.until("run.started")
	if left := deadline.Sub(freed); left < run.DefaultBudgets().Prepare {
		t.Errorf("when its place was free the preparation had %s left", left)
	}
	for name, want := range map[string]string{"workflowId": `"player"`, "transport": `"rest"`,
		"engineVersion": `"v1.2.3"`} {
		if got := member(t, e, name); got != want {
			t.Errorf("run.started has %s %s, want %s", name, got, want)
		}
	}
	if e := d.until("node.started"); member(t, e, "typeId") != `"`+itemsManifest(t).Name()+`"` ||
		member(t, e, "attempt") != "0" {
		t.Errorf("node.started %s", e.Data)
	}
	d.guest.does(fakeCall{call: abi.CallStart})
	d.heard("reply 1 OK")
	d.guest.does(doneNone)
	d.heard("reply 2 OK")
	d.guest.leaves(0)
	d.end()
	if want := []string{"acquire", "release"}; !slices.Equal(slots.calls, want) {
		t.Errorf("slots %v", slots.calls)
	}
}

type renewals struct {
	store.Store
	seen chan struct{}
}

func (s *renewals) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	select {
	case s.seen <- struct{}{}:
	default:
	}
	return s.Store.Renew(ctx, l, ttl)
}

// A run that is cancelled while pending ends at once, in one commit, and launches
// nothing.
func TestCancelWhilePending(t *testing.T) {
	for _, c := range []string{"queued", "launching", "launched"} {
		t.Run(c, func(t *testing.T) {
			slots := &places{free: make(chan struct{}, 1)}
			if c != "queued" {
				slots.free <- struct{}{}
			}
			var d *drive
			d = faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) {
				deps.Slots = slots
				deps.Launch = func(ctx context.Context, _ run.Launch) (run.Guest, binding.Binding, error) {
					d.run.Cancel(run.CancelRequest{Cause: "owner"})
					<-ctx.Done()
					if c == "launched" { // too late for it
						return d.guest, nil, nil
					}
					return nil, nil, ctx.Err()
				}
			})
			if c == "queued" {
				d.run.Cancel(run.CancelRequest{Cause: "owner"})
			}
			d.begin()
			<-d.ended
			events := d.stage.events(t, d.run.ID)
			if got, want := types(events), "run.cancel_requested run.cancelled"; got != want {
				t.Errorf("events %s, want %s", got, want)
			}
			if d.err != nil || *d.result.TerminalReason != "owner_cancelled" || d.guest.killed != (c == "launched") {
				t.Errorf("result %+v, %v, guest killed %v", d.result, d.err, d.guest.killed)
			}
			if leases, err := d.stage.host.Store.Leases(t.Context()); err != nil || len(leases) != 0 {
				t.Errorf("leases %v, %v", leases, err)
			}
			if n := len(slots.calls); (c == "queued") != (n == 0) {
				t.Errorf("slots %v", slots.calls)
			}
		})
	}
}

// A lease that lapsed and that nobody took is renewed with an event.
func TestLapsedLease(t *testing.T) {
	d := faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) {
		deps.LeaseTTL, deps.LeaseRenew = time.Millisecond, 50*time.Millisecond
	}).started()
	d.guest.does(forever)
	if e := d.until("lease.renewed"); member(t, e, "leaseId") == "" {
		t.Errorf("event %s", e.Data)
	}
	d.guest.Kill()
	d.end()
}

// A run that waits for its owner gives its place to another, and continues at once when
// it is answered.
func TestPlaceIsFreeWhileWaiting(t *testing.T) {
	slots := &places{free: make(chan struct{}, 1)}
	slots.free <- struct{}{}
	owner := newDesk()
	d := faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) { deps.Slots, deps.Owner = slots, owner }).started()
	d.guest.does(question)
	<-owner.asked
	owner.answers <- host.Answer{InteractionID: "q1", Status: "cancelled"}
	d.heard("reply 2 OK")
	d.guest.does(forever)
	d.pause("")
	d.heard("suspend")
	d.guest.Kill() // it ends while paused
	d.end()
	if diff := cmp.Diff([]string{"acquire", "leave", "return", "leave", "return", "release"}, slots.calls); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}

// stubborn is an owner who answers even when the question is closed.
type stubborn struct{ *desk }

func (s stubborn) Ask(_ context.Context, q run.Question) (host.Answer, error) {
	s.asked <- q
	return <-s.answers, nil
}

// An answer to a question that is already closed is refused as too late, also after the
// run's end.
func TestAnswerTooLate(t *testing.T) {
	for _, last := range []string{"interrupt.resolved", "run.cancelled"} {
		t.Run(last, func(t *testing.T) {
			owner := stubborn{newDesk()}
			d := faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) { deps.Owner = owner }).started()
			d.guest.does(say(abi.CallInteract, `{"request_id":"q1","kind":"manual_action","message":"Click"}`))
			q := <-owner.asked
			if q.InterruptID == "" || q.NodeID != itemsManifest(t).Node() {
				t.Errorf("question %+v", q)
			}
			d.run.Cancel(run.CancelRequest{Cause: "owner"})
			if last == "run.cancelled" {
				d.guest.leaves(0)
			}
			d.until(last)
			owner.answers <- host.Answer{InteractionID: "q1", Status: "success"}
			if err := <-owner.settled; !errors.Is(err, run.ErrTooLate) {
				t.Errorf("settled with %v", err)
			}
			d.guest.leaves(0)
			want := "interrupt.requested approval.requested run.interaction_required run.assistance_requested node.suspended | run.cancel_requested" +
				" | interrupt.resolved run.interaction_completed run.assistance_cancelled | node.cancelled run.cancelled"
			if got := after(d.end()); got != want {
				t.Errorf("events\n%s, want\n%s", got, want)
			}
		})
	}
}

// Rejecting a manual action is a decision of the owner.
func TestManualActionRejected(t *testing.T) {
	owner := newDesk()
	d := faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) { deps.Owner = owner }).started()
	d.guest.does(say(abi.CallInteract, `{"request_id":"q1","kind":"manual_action","message":"Click"}`))
	<-owner.asked
	owner.answers <- host.Answer{InteractionID: "q1", Status: "cancelled"}
	e := d.until("approval.received")
	if member(t, e, "action") != `"reject"` || member(t, e, "decidedBy") != `"owner"` {
		t.Errorf("received %s", e.Data)
	}
}

// A run that its host stops fails with controller_restarted.
func TestShutdown(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	d.run.Cancel(run.CancelRequest{Cause: run.CauseShutdown})
	p := d.end()
	if *p.result.TerminalReason != "controller_restarted" || after(p) != "node.failed run.failed" {
		t.Errorf("result %+v, events %s", p.result, after(p))
	}
}

// The desk shows what no event may hold, while the request is open.
func TestLiveAssistance(t *testing.T) {
	owner := newDesk()
	d := faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) { deps.Owner = owner }).started()
	d.guest.does(say(abi.CallAssist, `{"assistance_request_id":"a1","progress_posture":"running","owner_action":"act_elsewhere","response_obligation":"none",
		"message":"Scan","attachments":[{"kind":"qr","payload":"otpauth-1"}]}`))
	if got, want := <-owner.live,
		`open {"ID":"a1","Message":"Scan","Schema":null,"Attachments":[{"kind":"qr","payload":"otpauth-1"}]}`; got != want {
		t.Errorf("desk %s, want %s", got, want)
	}
	d.guest.leaves(1)
	d.end()
	if got := <-owner.live; got != "close a1" {
		t.Errorf("desk %s", got)
	}
}

// A scheduled start that is refused leaves a run with one event.
func TestRecordRefusal(t *testing.T) {
	g := faultStage(t)
	in := run.Input{
		Connector: store.Connector{ID: "player"}, Connection: store.Connection{ID: g.connection, ConnectorID: "player"},
		Trigger: "scheduled", Limits: abi.DefaultLimits(), Attempt: 2, RetryOf: "run_0",
	}
	tick := store.Write{Kind: store.Ticks, ID: "t1", Data: json.RawMessage(`{}`)}
	row, err := run.RecordRefusal(t.Context(), g.host.Store, in, "host_test", "boot_test",
		&run.Refusal{Code: "secret_missing", Message: "secret password is required"},
		func(store.Run) []store.Write { return []store.Write{tick} })
	if err != nil {
		t.Fatal(err)
	}
	if row.Status != abi.Failed || row.Attempt != 2 || row.RetryOf != "run_0" || row.FinishedAt == nil {
		t.Errorf("row %+v", row)
	}
	events := g.events(t, row.ID)
	if types(events) != "run.failed" || member(t, events[0], "reason") != `"launch_failed"` ||
		member(t, events[0], "failure_code") != `"secret_missing"` ||
		member(t, events[0], "records_emitted") != "0" {
		t.Errorf("events %s: %s", types(events), events[0].Data)
	}
	if _, err := g.host.Store.Document(t.Context(), store.Ticks, "t1"); err != nil {
		t.Error(err)
	}
	if leases, err := g.host.Store.Leases(t.Context()); err != nil || len(leases) > 0 {
		t.Errorf("leases %v, %v", leases, err)
	}
}

// spans records the names of spans that began and ended.
type spans struct {
	mu    sync.Mutex // guards open and names
	open  int
	attrs map[string]map[string]any
}

func (s *spans) Start(ctx context.Context, name string, attrs map[string]any) (context.Context, func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.attrs[name] = attrs
	return ctx, func(error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	}
}

// Every part of a run is a span with ids, and every span ends.
func TestSpans(t *testing.T) {
	owner, seen := newDesk(), &spans{attrs: map[string]map[string]any{}}
	d := faultStage(t).drive(t, func(in *run.Input, deps *run.Deps) {
		in.Request.TraceParent, deps.Owner, deps.Spans = "00-asked", owner, seen
	}).started()
	d.guest.does(question)
	q := <-owner.asked
	owner.answers <- host.Answer{InteractionID: "q1", Status: "success",
		Data: map[string]json.RawMessage{"action": json.RawMessage(`"accept"`)}}
	d.heard("reply 2 OK")
	d.guest.does(doneNone)
	d.heard("reply 3 OK")
	d.guest.leaves(0)
	p := d.end()
	if link := seen.attrs["openwop.run"]["openwop.link"]; link != "00-asked" {
		t.Errorf("the run is linked to %v", link)
	}
	node, last := itemsManifest(t).Name(), seen.attrs["openwop.event.append"]
	if seen.open != 0 || seen.attrs["openwop.run"]["openwop.run_id"] != string(d.run.ID) ||
		seen.attrs["openwop.node."+node]["openwop.node_type"] != node ||
		seen.attrs["openwop.interrupt"]["openwop.interrupt_id"] != q.InterruptID {
		t.Errorf("%d spans are open; %v", seen.open, seen.attrs)
	}
	if want := uint64(len(p.events) - 2); last["openwop.event_seq"] != want ||
		last["openwop.event_type"] != "node.completed" {
		t.Errorf("the last commit is %v, want number %d", last, want)
	}
}

// TestRetriedAttempt: a retry says so before its node begins, and every run says which
// module it runs.
func TestRetriedAttempt(t *testing.T) {
	g := faultStage(t)
	d := g.drive(t, func(in *run.Input, _ *run.Deps) { in.Attempt, in.RetryOf = 3, "run_0" }).begin()
	if e := d.until("version.pinned"); member(t, e, "version") == `""` ||
		!strings.HasPrefix(member(t, e, "moduleDigest"), `"sha256:`) {
		t.Errorf("version.pinned %s", e.Data)
	}
	if e := d.until("node.retried"); member(t, e, "attempt") != "2" || member(t, e, "retryOf") != `"run_0"` {
		t.Errorf("node.retried %s", e.Data)
	}
	if e := d.until("node.started"); member(t, e, "attempt") != "2" {
		t.Errorf("node.started %s", e.Data)
	}
	d.guest.does(fakeCall{call: abi.CallStart})
	d.heard("reply 1 OK")
	d.guest.does(doneNone)
	d.heard("reply 2 OK")
	d.guest.leaves(0)
	d.end()
}
