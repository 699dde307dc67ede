package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

var (
	verb   = say(abi.CallBrowser, `{"verb":"click"}`)
	manual = say(abi.CallInteract, `{"request_id":"q1","kind":"manual_action","message":"Sign in"}`)
	oneUse = say(abi.CallInteract, `{"request_id":"q1","kind":"otp","message":"The code"}`)
	done   = say(abi.CallDone, `{"status":"succeeded","records_emitted":0}`)
)

// Without the binding every verb fails with browser_not_granted, and the timeline tells
// the owner.
func TestBrowserNotGranted(t *testing.T) {
	d := faultStage(t).drive(t, nil).started()
	d.guest.does(verb)
	d.heard("reply 2 EDENIED")
	d.guest.does(handleOf(abi.CallRead, binding.HandlesOf))
	d.heard("reply 3 ENOENT")
	d.guest.leaves(1)
	if p := d.end(); counted(p, "log.appended") != 1 {
		t.Errorf("events %s", types(p.events))
	}
}

// Verbs, and the streams that they return, go to the browser; other streams go
// elsewhere. What the browser reports during a call is recorded before the reply.
func TestBrowserCalls(t *testing.T) {
	b := newFakeBrowser()
	b.handle = func(_ context.Context, c abi.Call, payload []byte) ([]byte, abi.Errno) {
		if c == abi.CallBrowser {
			b.back.Event("run.browser_action", "succeeded", map[string]any{"action": "click"})
			b.back.SealedUsed("otp.code", "https://shop.example", "browser_fill")
			b.back.SealedUsed("otp.code", "https://shop.example", "browser_fill")
			b.back.Progress("browser trace started: browser-trace-x.zip")
			b.back.Artifact(binding.Artifact{Type: "browser-trace", Summary: "Browser trace, 1 action",
				MediaType: "application/zip", Size: 7, Digest: "sha256:ab"})
			b.back.Event("run.completed", "succeeded", nil) // not for a browser to say
		}
		return []byte(`{}`), abi.OK
	}
	d := faultStage(t).drive(t, browses(t, b, nil)).started()
	d.guest.does(verb)
	d.heard("reply 2 OK")
	d.guest.does(handleOf(abi.CallRead, binding.HandlesOf))
	d.heard("reply 3 OK")
	d.guest.does(handleOf(abi.CallClose, binding.HandlesOf+1)) // nobody's
	d.heard("reply 4 ENOENT")
	d.guest.does(handleOf(abi.CallClose, 1)) // the network's, which there is not
	d.heard("reply 5 ENOENT")
	d.guest.does(done)
	d.heard("reply 6 OK")
	d.guest.leaves(0)
	p := d.end()
	b.over(t)
	if got, want := after(p),
		"run.browser_action | run.sealed_value_used | run.progress_reported | artifact.created | node.completed run.completed"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	for _, e := range p.events {
		if e.Type == "run.progress_reported" && (member(t, e, "origin") != `"host"` || e.ActorType != "runtime") {
			t.Errorf("progress %s %s", e.ActorType, e.Data)
		}
		if e.Type == "artifact.created" &&
			(!strings.HasPrefix(member(t, e, "artifactId"), `"art_`) || member(t, e, "size") != "7" || e.NodeID == "") {
			t.Errorf("artifact %s", e.Data)
		}
	}
}

// START has the browser binding exactly when it is approved and offered, with its
// profile and manifest members.
func TestBrowserBinding(t *testing.T) {
	for _, c := range []struct {
		name, members, profile string
		offered, approved      bool
		refused                string
		want                   string
	}{
		{name: "no engine", members: `{}`, approved: true},
		{name: "not approved", members: `{}`, offered: true},
		{name: "required, no engine", members: `{"required":true}`, approved: true, refused: "binding_unsatisfied"},
		{name: "required, not approved", members: `{"required":true}`, offered: true, refused: "binding_not_approved"},
		{name: "default profile", members: `{"required":true}`, offered: true, approved: true, want: "fault"},
		{name: "of the manifest", members: `{"profile":"Shop"}`, offered: true, approved: true, want: "Shop"},
		{name: "of the owner", members: `{"profile":"Shop"}`, profile: "Mine", offered: true, approved: true, want: "Mine"},
		{name: "no name", members: `{}`, profile: "../other", offered: true, approved: true, refused: "profile_name_invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := faultStage(t)
			absent := map[string]string{}
			if !c.offered {
				absent["browser"] = "sluice doctor says what is missing"
			}
			plan, err := run.Prepare(context.Background(), g.host.Store, run.Input{
				Connector: store.Connector{ID: "player", Name: "player"},
				Connection: store.Connection{ID: g.connection, Enabled: true, ProfileName: c.profile,
					Approved: store.Approved{Browser: c.approved, Hosts: []string{"shop.example"}}},
				Manifest: browserManifest(t, c.members), Transport: "abi", Limits: abi.DefaultLimits(),
				Budgets: run.DefaultBudgets(), Kinds: app.Kinds, Absent: absent,
			})
			var refused *run.Refusal
			if errors.As(err, &refused) != (c.refused != "") || refused != nil && refused.Code != c.refused {
				t.Fatalf("refused %v, want %q", err, c.refused)
			}
			if refused != nil {
				return
			}
			b := plan.PartialStart().Bindings.Browser
			if c.want == "" && b != nil || c.want != "" && (b == nil || b.Profile != c.want || len(b.Hosts) != 1) {
				t.Errorf("START has %+v, want profile %q", b, c.want)
			}
		})
	}
}

// The host asks a question of its own. The guest does not see it and waits meanwhile;
// the time counts as the owner's.
func TestBrowserAsks(t *testing.T) {
	for status, want := range map[string]string{abi.AnswerSuccess: "approval.received run.interaction_completed run.assistance_resolved node.resumed",
		abi.AnswerCancelled: "approval.received run.interaction_completed run.assistance_cancelled node.resumed"} {
		t.Run(status, func(t *testing.T) {
			b, owner := newFakeBrowser(), newDesk()
			b.handle = func(ctx context.Context, _ abi.Call, _ []byte) ([]byte, abi.Errno) {
				id, got, err := b.back.Ask(ctx, "Sign in again", time.Minute)
				if err != nil || got != status || !strings.HasPrefix(id, "host_") {
					t.Errorf("the owner's answer is %q %q %v", id, got, err)
				}
				return []byte(`{}`), abi.OK
			}
			d := faultStage(t).drive(t, browses(t, b, func(_ *run.Input, d *run.Deps) { d.Owner = owner })).started()
			d.guest.does(verb)
			q := <-owner.asked
			if q.Kind != abi.KindManualAction || q.Undeclared || q.Timeout <= 0 {
				t.Errorf("question %+v", q)
			}
			if q.Page.Host != "bank.example" || !strings.HasPrefix(q.Page.Title, "Sign in") ||
				strings.Contains(q.Page.Title, "\x1b") {
				t.Errorf("its page is %+v", q.Page)
			}
			b.told(t, "probe")
			b.told(t, "asked manual_action")
			d.quiet()
			owner.answers <- host.Answer{InteractionID: q.InteractionID, Status: status}
			b.told(t, "answered")
			d.heard("reply 2 OK")
			d.guest.does(done)
			d.heard("reply 3 OK")
			d.guest.leaves(0)
			p := d.end()
			b.over(t)
			if got := after(p); !strings.Contains(got, "node.suspended | interrupt.resolved "+want+" | node.completed") {
				t.Errorf("events %s", got)
			}
			for _, e := range p.events {
				if strings.Contains(string(e.Data), "bank.example") {
					t.Errorf("%s has the page: %s", e.Type, e.Data)
				}
			}
			if p.result.Usage.OwnerWait < 0 || counted(p, "run.interaction_required") != 1 {
				t.Errorf("usage %+v", p.result.Usage)
			}
		})
	}
}

// Nobody can be asked in a run without an owner, nor in a run that is ending.
func TestBrowserCannotAsk(t *testing.T) {
	b := newFakeBrowser()
	asked := make(chan error, 1)
	b.handle = func(ctx context.Context, _ abi.Call, _ []byte) ([]byte, abi.Errno) {
		_, _, err := b.back.Ask(ctx, "Sign in again", time.Minute)
		asked <- err
		return []byte(`{}`), abi.OK
	}
	d := faultStage(t).drive(t, browses(t, b, func(in *run.Input, _ *run.Deps) { in.Interactive = false })).started()
	d.guest.does(verb)
	d.heard("reply 2 OK")
	if err := <-asked; !errors.Is(err, binding.ErrNotInteractive) {
		t.Errorf("without an owner: %v", err)
	}
	d.guest.leaves(1)
	d.end()
	b.over(t)
	if _, _, err := b.back.Ask(context.Background(), "Anybody?", time.Minute); !errors.Is(err, binding.ErrEnding) {
		t.Errorf("after the end: %v", err)
	}
}

// A cancel ends the host's own question, and the call that waits for
// it.
func TestCancelEndsBrowserQuestion(t *testing.T) {
	b, owner := newFakeBrowser(), newDesk()
	asked := make(chan error, 1)
	b.handle = func(ctx context.Context, _ abi.Call, _ []byte) ([]byte, abi.Errno) {
		_, status, err := b.back.Ask(ctx, "Sign in again", 0)
		if err == nil && status != abi.AnswerCancelled {
			err = errors.New(status)
		}
		asked <- err
		return []byte(`{}`), abi.OK
	}
	d := faultStage(t).drive(t, browses(t, b, func(_ *run.Input, d *run.Deps) { d.Owner = owner })).started()
	d.guest.does(verb)
	<-owner.asked
	d.run.Cancel(run.CancelRequest{Cause: "owner"})
	if err := <-asked; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the question ended with %v", err)
	}
	d.heard("end emits")
	d.heard("reply 2 ECANCELED")
	d.guest.leaves(1)
	p := d.end()
	b.over(t)
	if p.result.CancelCause != "owner" || counted(p, "run.assistance_cancelled") != 1 {
		t.Errorf("%+v, events %s", p.result, types(p.events))
	}
}

// The browser can end collection, whatever reply the guest gets.
func TestBrowserEndsRun(t *testing.T) {
	b := newFakeBrowser()
	b.handle = func(context.Context, abi.Call, []byte) ([]byte, abi.Errno) {
		b.back.End(binding.Failure{Code: "session_not_live", Message: "Nobody is signed in.", Hint: abi.ManualActionRequired})
		return []byte(`{}`), abi.OK
	}
	d := faultStage(t).drive(t, browses(t, b, nil)).started()
	d.guest.does(verb)
	p := d.end()
	d.quiet()
	b.over(t)
	r := p.result
	if r.Status != abi.Failed || *r.TerminalReason != "connector_reported_failed" || r.ConnectorError == nil ||
		r.ConnectorError.Code != "session_not_live" ||
		*r.ConnectorError.Retryable || r.ConnectorError.RecoveryHint.Action != abi.ManualActionRequired ||
		r.Failure.Message != "Nobody is signed in." {
		t.Errorf("result %+v %+v %+v", r, r.Failure, r.ConnectorError)
	}
	if r.ReportedRecordsEmitted != nil {
		t.Error("the guest reported nothing")
	}
}

// A question says whether there is a surface to look at, and is updated when that
// changes.
func TestSurfaceOfQuestion(t *testing.T) {
	b, owner := newFakeBrowser(), newDesk()
	b.surface = abi.Attachment{Status: "unavailable", Reason: "browser_surface_probe_timeout"}
	d := faultStage(t).drive(t, browses(t, b, func(_ *run.Input, d *run.Deps) { d.Owner = owner })).started()
	d.guest.does(manual)
	asked := d.until("run.assistance_requested")
	if got, want := member(t, asked, "attachments"),
		`[{"kind":"browser_surface","role":"streaming_companion","status":"unavailable","reason":"browser_surface_probe_timeout"}]`; got != want {
		t.Errorf("attachments %s, want %s", got, want)
	}
	q := <-owner.asked
	now := abi.Attachment{Kind: "browser_surface", Ref: "sf_1", Status: "available", Reason: "https://x.example"}
	b.back.Attachment(now)
	b.back.Attachment(now) // nothing new
	updated := d.until("run.assistance_updated")
	if got, want := member(t, updated, "attachments"),
		`[{"kind":"browser_surface","role":"streaming_companion","ref":"sf_1","status":"available"}]`; got != want ||
		updated.InteractionID != "q1" {
		t.Errorf("attachments %s of %q, want %s", got, updated.InteractionID, want)
	}
	owner.answers <- host.Answer{InteractionID: q.InteractionID, Status: abi.AnswerSuccess}
	d.heard("reply 2 OK")
	d.guest.leaves(1)
	p := d.end()
	b.over(t)
	if n := counted(p, "run.assistance_updated"); n != 1 {
		t.Errorf("%d updates", n)
	}
}

// A question for a code offers the surface if there is one; otherwise the surface is
// neither shown nor watched.
func TestSurfaceOfCode(t *testing.T) {
	for registered, want := range map[bool]string{
		true: `[{"kind":"browser_surface","role":"streaming_companion","ref":"sf_1","status":"available"}]`, false: `[]`,
	} {
		b, owner := newFakeBrowser(), newDesk()
		b.registered = registered
		d := faultStage(t).drive(t, browses(t, b, func(_ *run.Input, d *run.Deps) { d.Owner = owner })).started()
		d.guest.does(oneUse)
		if got := member(t, d.until("run.assistance_requested"), "attachments"); got != want {
			t.Errorf("attachments %s, want %s", got, want)
		}
		q := <-owner.asked
		owner.answers <- host.Answer{InteractionID: q.InteractionID, Status: abi.AnswerSuccess, Data: codeData("48151623")}
		d.heard("reply 2 OK")
		d.guest.leaves(1)
		d.end()
		b.over(t)
		if len(b.sealed) != 1 || b.sealed[0] != "otp.code sluice-sealed-v1- https://shop.example browser_fill" {
			t.Errorf("sealed %q", b.sealed)
		}
	}
}

// The loss of a surface during a question is one commit, in order, and happens once.
func TestSurfaceLost(t *testing.T) {
	b, owner := newFakeBrowser(), newDesk()
	d := faultStage(t).drive(t, browses(t, b, func(_ *run.Input, d *run.Deps) { d.Owner = owner })).started()
	d.guest.does(oneUse)
	<-owner.asked
	probe := binding.Probe{OK: true, Code: "browser_surface_cdp_unreachable",
		Detail: "process exited, see https://x.example/"}
	b.back.Lost("sf_1", probe)
	b.back.Lost("sf_1", probe)
	lost := d.until("run.browser_surface_lost")
	if got, want := member(t, lost, "browser_surface_probe"),
		`{"code":"browser_surface_cdp_unreachable","detail":"process exited, see [REDACTED_URL]","ok":false}`; got != want ||
		lost.Status != "surface_failed" || lost.InteractionID != "q1" || member(t, lost, "kind") != `"otp"` {
		t.Errorf("%s %s, want %s", lost.Status, lost.Data, want)
	}
	d.heard("reply 2 OK")
	cancelled := d.until("run.assistance_cancelled")
	if member(t, cancelled, "reason") != `"browser_surface_lost"` {
		t.Errorf("%s", cancelled.Data)
	}
	d.guest.does(manual)
	<-owner.asked
	d.guest.leaves(1)
	p := d.end()
	b.over(t)
	if got, want := after(p),
		" | run.browser_surface_lost interrupt.resolved run.interaction_completed run.assistance_cancelled node.resumed | "; !strings.Contains(got, want) {
		t.Errorf("events %s", got)
	}
	if counted(p, "run.browser_surface_lost") != 1 || counted(p, "run.browser_surface_failed") != 0 {
		t.Error("a surface is lost once")
	}
}

// The browser is told of a pause, and learns of an answer only when the pause is over.
func TestBrowserPaused(t *testing.T) {
	b, owner := newFakeBrowser(), newDesk()
	answered := make(chan string, 1)
	b.handle = func(ctx context.Context, _ abi.Call, _ []byte) ([]byte, abi.Errno) {
		_, status, _ := b.back.Ask(ctx, "Sign in again", 0)
		answered <- status
		return []byte(`{}`), abi.OK
	}
	d := faultStage(t).drive(t, browses(t, b, func(_ *run.Input, d *run.Deps) { d.Owner = owner })).started()
	d.guest.does(verb)
	q := <-owner.asked
	b.told(t, "probe")
	b.told(t, "asked manual_action")
	d.pause("")
	d.heard("suspend")
	b.told(t, "paused true")
	owner.answers <- host.Answer{InteractionID: q.InteractionID, Status: abi.AnswerSuccess}
	b.told(t, "answered")
	d.until("run.assistance_resolved")
	if len(answered) != 0 {
		t.Error("the browser was answered while the run stood still")
	}
	d.resume()
	b.told(t, "paused false")
	d.heard("resume")
	d.heard("reply 2 OK")
	if got := <-answered; got != abi.AnswerSuccess {
		t.Errorf("answered %s", got)
	}
	d.guest.leaves(1)
	d.end()
	b.over(t)
}

// The timeline of a long run stays bounded.
func TestBrowserEventsBounded(t *testing.T) {
	b := newFakeBrowser()
	b.handle = func(context.Context, abi.Call, []byte) ([]byte, abi.Errno) {
		for n := range 1250 {
			status := "succeeded"
			if n == 1100 {
				status = "failed"
			}
			b.back.Event("run.browser_action", status, map[string]any{"n": n})
			if n < 300 {
				b.back.Event("run.browser_egress_denied", "denied", map[string]any{"n": n})
			}
		}
		return []byte(`{}`), abi.OK
	}
	d := faultStage(t).drive(t, browses(t, b, func(_ *run.Input, d *run.Deps) { d.Watch = nil })).started()
	d.guest.does(verb)
	d.heard("reply 2 OK")
	d.guest.leaves(1)
	p := d.end()
	if a, e := counted(p, "run.browser_action"), counted(p, "run.browser_egress_denied"); a != 1000+2+1 || e != 200 {
		t.Errorf("%d actions and %d denials", a, e)
	}
}

// However a run ends, its browser is closed once, before the terminal event, and what
// the browser reports while it closes is on the timeline.
func TestBrowserClosedOnEveryPath(t *testing.T) {
	launch := errors.New("no worker")
	for name, c := range map[string]struct {
		change func(*run.Input, *run.Deps)
		end    func(d *drive)
	}{
		"success":     {end: func(d *drive) { d.guest.does(done); d.heard("reply 2 OK"); d.guest.leaves(0) }},
		"exit":        {end: func(d *drive) { d.guest.leaves(3) }},
		"violation":   {end: func(d *drive) { d.guest.does(say(abi.CallProgress, `[]`)) }},
		"worker lost": {end: func(d *drive) { d.guest.Kill() }},
		"cancel": {end: func(d *drive) {
			d.run.Cancel(run.CancelRequest{Cause: "owner"})
			d.heard("end emits")
			d.guest.leaves(1)
		}},
		"grant revoked": {end: func(d *drive) {
			d.run.Cancel(run.CancelRequest{Cause: "grant_revoked"})
			d.heard("end emits")
			d.guest.leaves(1)
		}},
		"host stop": {end: func(d *drive) { d.run.Cancel(run.CancelRequest{Cause: run.CauseShutdown}) }},
		"budget": {change: func(in *run.Input, _ *run.Deps) { in.Budgets.Total = 50 * time.Millisecond },
			end: func(*drive) {}},
		"launch": {change: func(_ *run.Input, d *run.Deps) {
			d.Launch = func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return nil, nil, launch }
		}},
		"in a call":  {end: func(d *drive) { d.guest.does(verb); d.guest.Kill() }},
		"a question": {end: func(d *drive) { d.guest.does(manual); d.until("run.assistance_requested"); d.guest.leaves(1) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeBrowser()
			b.handle = func(ctx context.Context, _ abi.Call, _ []byte) ([]byte, abi.Errno) {
				<-ctx.Done()
				return nil, abi.ECANCELED
			}
			b.closing = func(context.Context) error {
				b.back.Event("run.browser_surface_released", "succeeded", map[string]any{"surface_id": "sf_1"})
				return nil
			}
			d := faultStage(t).drive(t, browses(t, b, func(in *run.Input, d *run.Deps) {
				d.Owner = newDesk()
				if c.change != nil {
					c.change(in, d)
				}
			}))
			if c.end == nil {
				d.begin()
			} else {
				c.end(d.started())
			}
			p := d.end()
			b.over(t)
			released := false
			for _, e := range p.events {
				released = released || e.Type == "run.browser_surface_released"
			}
			if !released {
				t.Errorf("events %s", types(p.events))
			}
		})
	}
}

func codeData(code string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"code": json.RawMessage(`"` + code + `"`)}
}
