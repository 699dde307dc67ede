package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
)

func (d *drive) pause(policy string) {
	d.t.Helper()
	if _, err := d.run.Pause(run.PauseRequest{Policy: policy, Reason: "for lunch", By: "key:k1"}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *drive) resume() {
	d.t.Helper()
	if _, err := d.run.Resume(run.ResumeRequest{Reason: "back"}); err != nil {
		d.t.Fatal(err)
	}
}

// runStatus is the status that a conflict names.
func runStatus(t *testing.T, err error) string {
	t.Helper()
	var refused *run.Refusal
	if !errors.As(err, &refused) || refused.Code != "conflict" {
		t.Fatalf("error %v, want a conflict", err)
	}
	return refused.Details["runStatus"].(string)
}

// A pause takes effect at a STATE: what was sent before it is durable, then comes
// run.paused, then the worker is suspended; the reply comes after run.resumed.
func TestPauseAtState(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	d.pause("")
	if live := d.run.Live(); !live.PauseRequested || live.Paused || live.Usage.HostCalls != 7 {
		t.Errorf("live %+v", live)
	}
	d.guest.does(say(abi.CallProgress, `{"message":"no drain point"}`))
	d.heard("reply 2 OK")
	d.guest.does(aRecord)
	d.heard("credit 1")
	d.guest.does(aState)
	paused := d.until("run.paused")
	d.heard("suspend")
	d.quiet()
	if live := d.run.Live(); live.PauseRequested || !live.Paused || live.Phase != "running" {
		t.Errorf("live %+v", live)
	}
	if paused.ActorType != "owner" || paused.ActorID != "key:k1" ||
		member(t, paused, "drainPolicy") != `"drain-current-node"` ||
		member(t, paused, "requestedBy") != `"key:k1"` || member(t, paused, "reason") != `"for lunch"` {
		t.Errorf("event %s %s %s", paused.ActorType, paused.ActorID, paused.Data)
	}
	if _, err := d.run.Pause(run.PauseRequest{}); runStatus(t, err) != "paused" {
		t.Error("a paused run is paused again")
	}
	d.resume()
	d.until("run.resumed")
	d.heard("resume")
	d.heard("reply 4 OK")
	d.guest.does(doneOne)
	d.heard("reply 5 OK")
	d.guest.leaves(0)
	p := d.end()
	if got, want := after(p), "run.progress_reported | run.batch_ingested | run.state_staged | run.paused | run.resumed"+
		" | run.state_advanced node.completed run.completed"; got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
	if p.result.Usage.Paused < 0 || p.result.RecordsFlushed != 1 {
		t.Errorf("result %+v", p.result)
	}
}

// An immediate pause takes effect at the next call, even one that does not wait for a
// reply. Credit is held back, and messages that arrive meanwhile keep their order.
func TestPauseImmediate(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	d.pause(run.DrainImmediate)
	d.guest.does(aRecord)
	d.until("run.paused")
	d.heard("suspend")
	d.guest.does(emit(0, "b", `{"id":"b"}`, false)) // it was under way
	d.guest.does(say(abi.CallProgress, `{"message":"late"}`))
	d.resume()
	d.heard("resume")
	d.heard("credit 1")
	d.heard("credit 1")
	d.heard("reply 4 OK")
	d.guest.does(say(abi.CallDone, `{"status":"succeeded","records_emitted":2}`))
	d.heard("reply 5 OK")
	d.guest.leaves(0)
	p := d.end()
	if got, want := after(p),
		"run.batch_ingested | run.paused | run.resumed | run.progress_reported | run.batch_ingested | node.completed run.completed"; got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
}

// A DONE at which a pause takes effect stays unprocessed until resume.
func TestPauseHoldsDone(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	d.pause("")
	d.guest.does(doneNone)
	d.until("run.paused")
	d.heard("suspend")
	if live := d.run.Live(); live.Phase != "running" {
		t.Errorf("phase %s: DONE was processed", live.Phase)
	}
	d.resume()
	d.heard("resume")
	d.heard("reply 2 OK")
	if _, err := d.run.Pause(run.PauseRequest{}); runStatus(t, err) != "running" {
		t.Error("a run past DONE is paused")
	}
	d.guest.leaves(0)
	if p := d.end(); p.result.Status != abi.Succeeded {
		t.Errorf("result %+v", p.result)
	}
	if _, err := d.run.Pause(run.PauseRequest{}); runStatus(t, err) != "completed" {
		t.Error("a run that is over is paused")
	}
	if _, err := d.run.Resume(run.ResumeRequest{}); runStatus(t, err) != "completed" {
		t.Error("a run that is over is resumed")
	}
}

// A guest that makes no call in time is suspended in the middle of its work.
func TestPauseWithoutCalls(t *testing.T) {
	d := faultStage(t).drive(t, func(in *run.Input, _ *run.Deps) { in.Budgets.Drain = time.Millisecond }).started()
	d.pause("")
	d.until("run.paused")
	d.heard("suspend")
	d.resume()
	d.until("run.resumed")
	d.heard("resume")
	d.guest.does(doneNone)
	d.heard("reply 2 OK")
	d.guest.leaves(0)
	d.end()
}

// Resume withdraws a pause that has not taken effect, without an event.
func TestPauseWithdrawn(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	if _, err := d.run.Resume(run.ResumeRequest{}); runStatus(t, err) != "running" {
		t.Error("a running run is resumed")
	}
	d.pause("")
	d.resume()
	d.guest.does(aState)
	d.heard("reply 2 OK")
	d.guest.does(doneNone)
	d.heard("reply 3 OK")
	d.guest.leaves(0)
	if got, want := after(d.end()), "run.state_staged | run.state_advanced node.completed run.completed"; got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
}

// A question is answered while the run is paused; the answer reaches
// the guest on resume, and node.resumed follows run.resumed.
func TestAnswerWhilePaused(t *testing.T) {
	owner := newDesk()
	g := faultStage(t)
	d := g.drive(t, func(_ *run.Input, deps *run.Deps) { deps.Owner = owner }).started()
	d.guest.does(question)
	d.until("node.suspended")
	<-owner.asked
	d.pause("") // a node that waits pauses at once
	d.until("run.paused")
	d.heard("suspend")
	owner.answers <- host.Answer{InteractionID: "q1", Status: "success", By: "key:k2",
		Data: map[string]json.RawMessage{"action": json.RawMessage(`"accept"`)}}
	if err := <-owner.settled; err != nil {
		t.Fatal(err)
	}
	received := d.until("approval.received")
	if member(t, received, "decidedBy") != `"key:k2"` || received.ActorID != "key:k2" {
		t.Errorf("approval %s by %s", received.Data, received.ActorID)
	}
	if !d.run.Live().Paused {
		t.Error("an answer ended the pause")
	}
	d.quiet()
	d.resume()
	d.heard("resume")
	d.heard("reply 2 OK")
	d.guest.does(doneNone)
	d.heard("reply 3 OK")
	d.guest.leaves(0)
	want := "interrupt.requested approval.requested run.interaction_required run.assistance_requested node.suspended | run.paused" +
		" | interrupt.resolved approval.received run.interaction_completed run.assistance_resolved | run.resumed node.resumed" +
		" | node.completed run.completed"
	if got := after(d.end()); got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
}

// Time-outs of questions stand still while the run is paused; the pending
// record says when it ends now.
func TestPausedQuestionKeepsItsTime(t *testing.T) {
	t.Parallel()
	owner := newDesk()
	g := faultStage(t)
	d := g.drive(t, func(_ *run.Input, deps *run.Deps) { deps.Owner = owner }).started()
	d.guest.does(say(abi.CallInteract, `{"request_id":"q1","kind":"approval","message":"May I?","timeout_seconds":3}`))
	d.until("node.suspended")
	before, err := g.host.Store.Pending(t.Context(), d.run.ID)
	if err != nil || len(before) != 1 || before[0].NodeID == "" || before[0].Interrupt == "" {
		t.Fatalf("pending %+v, %v", before, err)
	}
	d.pause("")
	d.until("run.paused")
	d.heard("suspend")
	paused := time.Now()
	<-time.After(time.Until(before[0].ExpiresAt.Add(300 * time.Millisecond))) // what is tested is that this passes
	stood := time.Since(paused)
	d.resume()
	d.until("run.resumed")
	d.heard("resume")
	pending, err := g.host.Store.Pending(t.Context(), d.run.ID)
	if err != nil || len(pending) != 1 {
		t.Fatalf("pending %+v, %v", pending, err)
	}
	// times are kept in milliseconds
	if more := pending[0].ExpiresAt.Sub(*before[0].ExpiresAt); more < stood-time.Millisecond {
		t.Errorf("a pause of %s gave the question %s more", stood, more)
	}
	d.heard("reply 2 OK") // now it timed out
	resolved := d.until("interrupt.resolved")
	if member(t, resolved, "status") != `"timeout"` || member(t, resolved, "resolvedBy") != `"host"` {
		t.Errorf("resolved %s", resolved.Data)
	}
	if end := pending[0].ExpiresAt.Add(-time.Millisecond); resolved.OccurredAt.Before(end) {
		t.Errorf("it had time until %s, and timed out at %s", end, resolved.OccurredAt)
	}
	if at := d.until("approval.received"); member(t, at, "action") != `"timeout"` {
		t.Errorf("received %s", at.Data)
	}
	d.guest.does(doneNone)
	d.heard("reply 3 OK")
	d.guest.leaves(0)
	d.end()
}

// A cancelled run that was paused runs on for its grace, and every call fails.
func TestCancelWhilePaused(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	d.guest.does(forever)
	d.pause("")
	d.until("run.paused")
	d.heard("suspend")
	d.run.Cancel(run.CancelRequest{Cause: "owner", By: "key:k1"})
	d.heard("resume")
	d.heard("end emits")
	d.heard("reply 2 ECANCELED")
	d.guest.leaves(0)
	p := d.end()
	if got, want := after(p), "run.paused | run.cancel_requested | node.cancelled run.cancelled"; got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
	last := p.events[len(p.events)-1]
	if member(t, last, "cancelledBy") != `"key:k1"` || member(t, last, "reason") != `"owner_cancelled"` {
		t.Errorf("end %s", last.Data)
	}
}

// Paused time has a budget of its own, and costs no other.
func TestPauseBudget(t *testing.T) {
	d := faultStage(t).drive(t, func(in *run.Input, _ *run.Deps) { in.Budgets.Pause = time.Second }).started()
	d.guest.does(forever)
	d.pause("")
	p := d.end()
	if p.result.Deadline != "pause" || *p.result.TerminalReason != "run_timed_out" || p.result.Usage.Paused < 1000 {
		t.Errorf("result %+v", p.result)
	}
}

// heldFiles answers when a test lets it.
type heldFiles struct{ asked, answer chan struct{} }

func (f *heldFiles) Handle(context.Context, abi.Call, []byte) ([]byte, abi.Errno) {
	f.asked <- struct{}{}
	<-f.answer
	return nil, abi.ENOENT
}

func (f *heldFiles) Takes(call abi.Call, _ []byte) bool {
	return call >= abi.CallFileOpen && call <= abi.CallFileTimes
}

func (f *heldFiles) Close(context.Context) error { return nil }

// A call in progress finishes, and its reply is held back.
func TestPauseDuringCall(t *testing.T) {
	files := &heldFiles{make(chan struct{}), make(chan struct{})}
	var d *drive
	d = faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) {
		deps.Launch = func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return d.guest, files, nil }
	})
	d.started()
	d.guest.does(fakeCall{abi.CallFileStat, []byte("x")})
	<-files.asked
	d.pause(run.DrainImmediate)
	d.until("run.paused")
	d.heard("suspend")
	files.answer <- struct{}{}
	d.quiet()
	d.resume()
	d.heard("resume")
	d.heard("reply 2 ENOENT")
	d.guest.does(doneNone)
	d.heard("reply 3 OK")
	d.guest.leaves(0)
	d.end()
}

// A request to pause lapses when the run ends first.
func TestPauseLapses(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	d.pause("")
	d.guest.does(say(abi.CallProgress, `{"message":1}`))
	if p := d.end(); after(p) != "node.failed run.failed" {
		t.Errorf("events %s", after(p))
	}
	if live := d.run.Live(); live.PauseRequested || live.Paused || live.Phase != "" {
		t.Errorf("live %+v", live)
	}
}
