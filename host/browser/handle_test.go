package browser_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

// What is refused, with which code, and that it is JSON that names the verb and whether
// to try again.
func TestRefusals(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	for _, c := range []struct {
		request, code string
		errno         abi.Errno
	}{
		{``, "invalid_request", abi.EINVAL},
		{`[]`, "invalid_request", abi.EINVAL},
		{`{"verb":7}`, "invalid_request", abi.EINVAL},
		{`{"verb":"eval","script":"1"}`, "unknown_verb", abi.ENOTSUP},
		{`{"verb":"click","target":{"selector":{"role":"button"}}}`, "surface_not_open", abi.EINVAL},
		{`{"verb":"mark","phase":"x"}`, "surface_not_open", abi.EINVAL},
		{`{"verb":"close"}`, "surface_not_open", abi.EINVAL},
		{`{"verb":"click","target":{"selector":{"role":"button"}},"effect":"local_state"}`, "invalid_request", abi.EINVAL},
		{`{"verb":"click","target":{"selector":{"role":"button"}},"declared":"nothing"}`, "invalid_request", abi.EINVAL},
		{`{"verb":"upload","target":{"selector":{"role":"button"}},"files":[{"path":"/a"}]}`,
			"capability_denied", abi.EDENIED},
		{`{"verb":"open","profile":"../x"}`, "profile_name_invalid", abi.EINVAL},
		{`{"verb":"open","profile":""}`, "profile_name_invalid", abi.EINVAL},
		{`{"verb":"open","profile":"a b"}`, "profile_name_invalid", abi.EINVAL},
		{strings.Repeat(" ", 256<<10) + `{"verb":"open"}`, "invalid_request", abi.EINVAL},
	} {
		out := d.refused(t, c.request, c.code, c.errno)
		detail, _ := out["detail"].(map[string]any)
		if _, ok := detail["retryable"].(bool); !ok || out["message"] == "" {
			t.Errorf("%.60s: %v", c.request, out)
		}
	}
	entries, err := os.ReadDir(filepath.Join(d.data, "profiles"))
	if err != nil || len(entries) != 1 || entries[0].Name() != ".temporary" || len(d.fakes)+len(d.gates) != 0 {
		t.Errorf("something was touched: %v %v, %d browsers", entries, err, len(d.fakes))
	}
	if _, errno := d.Handle(context.Background(), abi.CallNetworkRequest, nil); errno != abi.ENOTSUP {
		t.Errorf("another call: %s", errno)
	}
}

// Open, use and close, and the events of it.
func TestOpenUseClose(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	if d.Registered() || d.Surface().Reason != fleet.CodeNoSurface {
		t.Errorf("before open: %+v", d.Surface())
	}
	out := d.ok(t, `{"verb":"open","profile":"work"}`)
	if out["profile"] != "work" || out["persistent"] != true || out["reused"] != false || out["navigation"] != nil ||
		out["session"].(map[string]any)["state"] != "not_probed" || out["engine"].(map[string]any)["major"] != 7.0 ||
		len(out["tabs"].([]any)) != 1 {
		t.Errorf("%v", out)
	}
	if !d.Registered() || d.Surface().Status != "available" || d.Surface().Ref != out["surface_id"] {
		t.Errorf("%+v", d.Surface())
	}
	if len(d.gates[0].got) != 1 || d.gates[0].got[0].Policy == nil {
		t.Errorf("the gate is not bound to the policy")
	}
	d.refused(t, `{"verb":"open","profile":"work"}`, "surface_already_open", abi.EINVAL)
	if out := d.ok(t, `{"verb":"click","target":{"selector":{"role":"button"}}}`); out["verb"] != "click" {
		t.Errorf("%v", out)
	}
	if out := d.ok(t, `{"verb":"close"}`); out["closed"] != "surface" || out["graceful"] != true {
		t.Errorf("%v", out)
	}
	d.refused(t, `{"verb":"click","target":{"selector":{"role":"button"}}}`, "surface_not_open", abi.EINVAL)
	for i, typ := range []string{fleet.EventRequested, fleet.EventStarting, fleet.EventReady, fleet.EventReleased} {
		if d.log.events[i].typ != typ || d.log.events[i].data["surface_id"] != out["surface_id"] ||
			d.log.events[i].data["profile"] != "work" {
			t.Errorf("event %d: %+v", i, d.log.events[i])
		}
	}
	if d.fakes[0].closed != 1 || len(d.log.losses()) != 0 {
		t.Errorf("closed %d times, lost %v", d.fakes[0].closed, d.log.losses())
	}
}

// The name of the profile, where a request has none.
func TestProfileName(t *testing.T) {
	for _, c := range [][3]string{{"", "", "c"}, {"", "m", "m"}, {"s", "m", "s"}} {
		d := newDesk(t, func(_ *browser.Options, o *browser.SessionOptions) { o.ProfileName, o.Request.Profile = c[0], c[1] })
		if out := d.ok(t, `{"verb":"open"}`); out["profile"] != c[2] {
			t.Errorf("%v: %v", c, out["profile"])
		}
		d.end(t)
	}
}

// Open loads a page through the engine, with all that it checks.
func TestOpenNavigates(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	var got *engine.Request
	d.do = func(_ context.Context, r *engine.Request) (any, *engine.Refusal) {
		got = r
		return map[string]any{"action": r.Verb}, nil
	}
	out := d.ok(t, `{"verb":"open","url":"https://a.example/x"}`)
	if got == nil || got.Verb != engine.Navigate || got.Navigate.URL != "https://a.example/x" ||
		got.Navigate.Until != "dom" || out["navigation"].(map[string]any)["action"] != "navigate" {
		t.Errorf("%+v %v", got, out)
	}
}

// One verb at a time.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		d.ok(t, `{"verb":"open"}`)
		hold := make(chan struct{})
		d.do = func(context.Context, *engine.Request) (any, *engine.Refusal) { <-hold; return map[string]any{}, nil }
		go d.call(t, `{"verb":"snapshot"}`)
		synctest.Wait()
		d.refused(t, `{"verb":"snapshot"}`, "surface_busy", abi.EBUSY)
		close(hold)
		synctest.Wait()
		d.ok(t, `{"verb":"snapshot"}`)
	})
}

// The limits table: actions per minute, which the manifest lowers and reads do not
// use up.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(_ *browser.Options, o *browser.SessionOptions) { o.Request.MaxActions = 3 })
		defer d.end(t)
		d.ok(t, `{"verb":"open"}`)
		click := `{"verb":"click","target":{"selector":{"role":"button"}}}`
		for range 3 {
			d.ok(t, click)
			time.Sleep(time.Second)
		}
		d.refused(t, click, "rate_limited", abi.ERATE)
		d.ok(t, `{"verb":"snapshot"}`)
		time.Sleep(57 * time.Second)
		d.ok(t, click)
		d.refused(t, click, "rate_limited", abi.ERATE)
	})
}

// A declared action is of its verb.
func TestDeclared(t *testing.T) {
	d := newDesk(t, func(_ *browser.Options, o *browser.SessionOptions) {
		o.Request.Actions = []abi.DeclaredAction{{Name: "save", Verb: "click", ActionType: "side_effect"}}
	})
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	d.ok(t, `{"verb":"click","target":{"selector":{"role":"button"}},"declared":"save"}`)
	d.refused(t, `{"verb":"hover","target":{"selector":{"role":"button"}},"declared":"save"}`,
		"invalid_request", abi.EINVAL)
	if got := d.worker.Declared("save"); got == nil || got.ActionType != engine.SideEffect {
		t.Errorf("%+v", got)
	}
	if d.worker.Declared("other") != nil {
		t.Error("an action that was not declared")
	}
}

// A browser that dies ends the surface for good, and says why.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		d.ok(t, `{"verb":"open"}`)
		d.fakes[0].kill()
		synctest.Wait()
		for _, request := range []string{`{"verb":"snapshot"}`, `{"verb":"open"}`, `{"verb":"close"}`,
			`{"verb":"mark","phase":"x"}`} {
			out := d.refused(t, request, "surface_lost", abi.EUNAVAIL)
			if reason := out["detail"].(map[string]any)["reason"]; reason != fleet.CodeDisconnected {
				t.Errorf("%s: %v", request, out)
			}
		}
		if len(d.log.losses()) != 1 || len(d.fakes) != 1 {
			t.Errorf("lost %v, %d browsers", d.log.losses(), len(d.fakes))
		}
		if a := d.Surface(); a.Status != "unavailable" || a.Reason != fleet.CodeDisconnected {
			t.Errorf("%+v", a)
		}
	})
}

// While the owner has control no verb reads, and what ids meant is forgotten at its
// end.
func TestOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end(t)
		if err := d.Taken(context.Background()); err == nil {
			t.Error("control of no browser")
		}
		d.ok(t, `{"verb":"open"}`)
		hold := make(chan struct{})
		d.do = func(context.Context, *engine.Request) (any, *engine.Refusal) { <-hold; return map[string]any{}, nil }
		go d.call(t, `{"verb":"click","target":{"selector":{"role":"button"}}}`)
		synctest.Wait()
		taken := make(chan error)
		go func() { taken <- d.Taken(context.Background()) }()
		synctest.Wait()
		if d.worker.Controlled() {
			t.Error("control was given within a verb")
		}
		close(hold)
		if err := <-taken; err != nil || !d.worker.Controlled() {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, verb := range []string{"snapshot", "screenshot", `cookies","to":"network","hosts":["a.example"],"x":"`} {
			d.refused(t, `{"verb":"`+verb+`"}`, "owner_in_control", abi.EBUSY)
		}
		d.refused(t, `{"verb":"extract","items":[{"name":"a","take":"links"}]}`, "owner_in_control", abi.EBUSY)
		d.Released()
		d.ok(t, `{"verb":"snapshot"}`)
		if len(d.worker.Calls) != 1 || d.worker.Calls[0] != "released" {
			t.Errorf("%v", d.worker.Calls)
		}
		if p := d.fakes[0].dialogs; len(p) != 2 || p[0] != page.DialogKeep || p[1] != page.DialogDismiss {
			t.Errorf("dialogs %v", p)
		}
		d.Asked("i1", "manual_action", time.Time{})
		if err := d.Taken(context.Background()); err != nil {
			t.Fatal(err)
		}
		d.Released() // the question is still open, and so is what the page asks
		d.fakes[0].dialog = &page.Dialog{Type: "confirm"}
		if p := d.fakes[0].dialogs; p[len(p)-1] != page.DialogKeep {
			t.Errorf("dialogs %v after a lease, within an interaction", p)
		}
		d.ok(t, `{"verb":"snapshot"}`)
		if d.fakes[0].dialog == nil {
			t.Error("a verb took the owner's dialog")
		}
		d.Answered("i1")
		d.ok(t, `{"verb":"snapshot"}`)
		if p := d.fakes[0].dialogs; p[len(p)-1] != page.DialogDismiss || d.fakes[0].dialog != nil {
			t.Errorf("dialogs %v after an interaction, open %v", p, d.fakes[0].dialog)
		}
		ctx, cancel := context.WithCancel(context.Background())
		hold = make(chan struct{})
		go d.call(t, `{"verb":"click","target":{"selector":{"role":"button"}}}`)
		synctest.Wait()
		cancel()
		if err := d.Taken(ctx); err == nil || d.worker.Controlled() {
			t.Errorf("a lease that was given up: %v", err)
		}
		close(hold)
	})
}

// Pictures are read by handle, once, and their handles are nobody else's.
func TestHandles(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	data := bytes.Repeat([]byte("picture"), 100_000)
	kept, refused := d.worker.Keep(page.Picture{MIME: "image/png", Width: 3, Height: 4, Data: data})
	if refused != nil {
		t.Fatal(refused)
	}
	text, _ := json.Marshal(kept)
	var k struct {
		Handle uint32
		Bytes  int
	}
	if err := json.Unmarshal(text, &k); err != nil || k.Bytes != len(data) || k.Handle < 1<<30 || !d.Owns(k.Handle) ||
		d.Owns(7) || d.Owns(0) || d.Owns(1<<31) {
		t.Fatalf("%s %v", text, err)
	}
	read := func(handle, most uint32) ([]byte, abi.Errno) {
		payload := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, handle), most)
		return d.Handle(context.Background(), abi.CallRead, payload)
	}
	var got []byte
	for {
		piece, errno := read(k.Handle, 100_000)
		if errno != abi.OK {
			t.Fatal(errno)
		}
		if len(piece) == 0 {
			break
		}
		got = append(got, piece...)
	}
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes came back", len(got))
	}
	if _, errno := read(k.Handle+1, 1); errno != abi.ENOENT {
		t.Errorf("an unknown handle: %s", errno)
	}
	if _, errno := d.Handle(context.Background(), abi.CallRead, []byte{1}); errno != abi.EINVAL {
		t.Errorf("a malformed read: %s", errno)
	}
	closing := binary.LittleEndian.AppendUint32(nil, k.Handle)
	for _, want := range []abi.Errno{abi.OK, abi.ENOENT} {
		if _, errno := d.Handle(context.Background(), abi.CallClose, closing); errno != want {
			t.Errorf("close: %s", errno)
		}
	}
	for n := 0; ; n++ {
		if _, refused = d.worker.Keep(page.Picture{Data: make([]byte, 4<<20)}); refused != nil {
			if refused.Code != "result_too_large" || n != 8 {
				t.Errorf("%v after %d pictures of 4 MiB", refused, n)
			}
			break
		}
	}
}

// The limits table: a reply has at most 1 MiB.
func TestReplyTooLarge(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	d.do = func(context.Context, *engine.Request) (any, *engine.Refusal) { return strings.Repeat("x", 1<<20), nil }
	d.refused(t, `{"verb":"snapshot"}`, "result_too_large", abi.ETOOBIG)
}

// Of a fault of the host a guest learns that there was one.
func TestInternal(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	d.do = func(context.Context, *engine.Request) (any, *engine.Refusal) {
		return nil, &engine.Refusal{Code: "odd", Message: "open /var/lib/sluice: no such file"}
	}
	out, errno := d.call(t, `{"verb":"snapshot"}`)
	if errno != abi.EIO || strings.Contains(out["message"].(string), "/var") {
		t.Errorf("%s %v", errno, out)
	}
	d.do = func(context.Context, *engine.Request) (any, *engine.Refusal) { return func() {}, nil }
	d.refused(t, `{"verb":"snapshot"}`, "internal", abi.EIO)
}

// A tab is closed alone while there is another, and the active one is another
// before.
func TestCloseTab(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	d.fakes[0].tabs = []string{"tab_1", "tab_2"}
	d.refused(t, `{"verb":"close","tab":"tab_9"}`, "invalid_request", abi.EINVAL)
	if out := d.ok(t, `{"verb":"close","tab":"tab_1"}`); out["closed"] != "tab" {
		t.Errorf("%v", out)
	}
	if out := d.ok(t, `{"verb":"close","tab":"tab_2"}`); out["closed"] != "surface" {
		t.Errorf("%v", out)
	}
}

// The end of a run releases the browser, in the middle of a verb too, once.
func TestCloseWhileCalling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.ok(t, `{"verb":"open"}`)
		d.do = func(ctx context.Context, r *engine.Request) (any, *engine.Refusal) {
			<-ctx.Done()
			return nil, &engine.Refusal{Code: "surface_lost", Verb: r.Verb}
		}
		go d.call(t, `{"verb":"snapshot"}`)
		synctest.Wait()
		for range 3 {
			if err := d.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		d.refused(t, `{"verb":"open"}`, "surface_not_open", abi.EINVAL)
		if d.fakes[0].closed != 1 || len(d.log.of(fleet.EventReleased)) != 1 {
			t.Errorf("closed %d times", d.fakes[0].closed)
		}
		d.end(t)
	})
}

// The clocks of the binding stand still with the run.
func TestPaused(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.Paused(true)
	d.ok(t, `{"verb":"open"}`)
	d.Paused(true)
	d.Paused(false)
	d.Paused(false)
	if got := strings.Join(d.worker.Calls, " "); got != "pause resume" {
		t.Errorf("%s", got)
	}
}

// What the timeline is told of an action.
func TestSignal(t *testing.T) {
	d := newDesk(t, nil)
	defer d.end(t)
	d.ok(t, `{"verb":"open"}`)
	d.worker.Signal(engine.Signal{ActionID: "act_1", Action: engine.Click, Verification: "verified", Role: "button",
		URLHost: "a.example"})
	d.worker.Signal(engine.Signal{ActionID: "act_2", Action: engine.Click, Verification: "inconclusive",
		Code: engine.VerificationFailed})
	got := d.log.of("run.browser_action")
	if len(got) != 2 || got[0].status != "succeeded" || got[1].status != "failed" || got[0].data["action_id"] != "act_1" ||
		got[0].data["role"] != "button" || got[1].data["runtime_code"] != "VERIFICATION_FAILED" {
		t.Errorf("%+v", got)
	}
}

// What a browser says that the library does not know is counted, within bounds.
func TestUndecodable(t *testing.T) {
	counts := map[string]int{}
	d := newDesk(t, func(o *browser.Options, _ *browser.SessionOptions) {
		o.Count = func(name string, _ ...string) { counts[name]++ }
	})
	defer d.end(t)
	d.host.Undecodable(0)
	if len(counts) != 0 {
		t.Errorf("%v", counts)
	}
	d.host.Undecodable(3)
	if counts["events_undecodable_total"] != 3 {
		t.Errorf("%v", counts)
	}
	d.host.Undecodable(1 << 40)
	if counts["events_undecodable_total"] != 1003 {
		t.Errorf("%v", counts)
	}
}
