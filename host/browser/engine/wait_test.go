package engine_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func toJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func (b *bench) wait(r *engine.Request) *engine.WaitReply {
	b.Helper()
	reply, refused := b.engine.Do(context.Background(), r)
	if refused != nil {
		b.Fatalf("wait was refused: %v", refused)
	}
	return reply.(*engine.WaitReply)
}

func waitFor(condition string, t *engine.Target) *engine.Request {
	r := request(engine.Wait, t)
	r.Wait.For, r.Deadline = condition, 20*time.Second
	return r
}

func TestWaitForAnElement(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.later(2*time.Second, func() { b.nodes[1].Visible = true })
		b.nodes[1].Visible = false
		w := b.wait(waitFor("visible", tested("status")))
		if w.Status != "success" || w.Element == nil || w.Metrics.Latency < 2000 || w.Count != 2 || !w.Observed.Satisfied {
			t.Errorf("%+v", w)
		}
		r := waitFor("visible", tested("nothing"))
		r.Wait.Timeout = time.Second
		w = b.wait(r)
		if w.Status != "timeout" || w.Error.Code != engine.ElementNotFound ||
			!strings.HasSuffix(w.Error.Message, "observed 0 match(es)") || w.Element != nil {
			t.Errorf("%+v", w.Error)
		}
		r.Wait.Attempts, r.Wait.Backoff = 3, time.Second
		if w = b.wait(r); w.Metrics.Attempts != 3 || w.Metrics.Latency < 5000 {
			t.Errorf("%+v", w.Metrics)
		}
		b.hook = func(string, int) error { return errHang }
		if w = b.wait(r); w.Error.Code != engine.Timeout {
			t.Errorf("%+v", w.Error)
		}
	})
}

func TestWaitForAPage(t *testing.T) {
	within(t, shop, func(b *bench) { // a change that beat the call is not missed
		b.act(click("Save", says("status", "Saved")))
		if w := b.wait(waitFor("page_change", nil)); !w.Matched {
			t.Errorf("%+v", w)
		}
		r := waitFor("page_change", nil)
		r.Wait.Timeout = time.Second
		if w := b.wait(r); w.Matched || w.Fingerprint == "" {
			t.Errorf("consumed: %+v", w)
		}
	})
}

func TestWaitForAChange(t *testing.T) {
	change := func(b *bench, r *engine.Request) *engine.ChangeReply {
		reply, refused := b.engine.Do(context.Background(), r)
		if refused != nil {
			t.Fatal(refused)
		}
		return reply.(*engine.ChangeReply)
	}
	within(t, shop, func(b *bench) {
		b.later(time.Second, func() { b.nodes[1].Text = "half" })
		b.later(1100*time.Millisecond, func() { b.nodes[1].Text = "done" })
		c := change(b, waitFor("ui_change", nil))
		if !c.Success || *c.Observed != "text_change" || c.Elapsed < 1350 {
			t.Errorf("%+v", c)
		}
		b.act(click("Save", says("status", "Saved")))
		if c = change(b, waitFor("ui_change", nil)); !c.Success {
			t.Errorf("a change that beat the call: %+v", c)
		}
		r := waitFor("ui_change", nil)
		r.Wait.Timeout = time.Second
		if c = change(b, r); c.Success || !c.Timeout {
			t.Errorf("nothing changed: %+v", c)
		}
	})
}

func TestReadsAreRefusedToGuestsOfAnOwner(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.owner = true
		for _, v := range []engine.Verb{engine.Snapshot, engine.Extract, engine.Screenshot, engine.Wait, engine.Expect} {
			r := request(v, nil)
			r.Wait.For, r.Expect = "load", says("status", "idle")
			if _, refused := b.engine.Do(context.Background(), r); refused == nil || refused.Code != "owner_in_control" {
				t.Errorf("%s: %v", v, refused)
			}
		}
		if b.calls["read"] != 0 {
			t.Error("the page was read")
		}
	})
}

func TestSnapshotAndPictures(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.engine = engine.New(engine.Options{Browser: b.site, Identity: b.identity,
			Keep: func(p page.Picture) (any, *engine.Refusal) {
				return map[string]int{"bytes": len(p.Data)}, nil
			}})
		r := request(engine.Snapshot, nil)
		r.Snapshot = engine.SnapshotArgs{Limit: 256, Include: []string{"screenshot", "console", "diagnostics"}}
		reply, refused := b.engine.Do(context.Background(), r)
		if refused != nil {
			t.Fatal(refused)
		}
		s := reply.(*engine.SnapshotReply)
		if len(s.Elements) != 2 || toJSON(t, s.Screenshot) != `{"bytes":1000}` || s.DiagnosticsError != "unknown_action" {
			t.Errorf("%s", toJSON(t, s))
		}
		r = request(engine.Screenshot, named("button", "Save"))
		r.Screenshot = engine.ScreenshotArgs{Format: "jpeg", Quality: 90}
		if reply, refused = b.engine.Do(context.Background(), r); refused != nil || toJSON(t, reply) != `{"bytes":1000}` {
			t.Errorf("%v %v", reply, refused)
		}
		r.Screenshot.Format = "png"
		if _, refused = b.engine.Do(context.Background(), r); refused == nil || refused.Code != "result_too_large" {
			t.Errorf("%v", refused)
		}
		r.Screenshot = engine.ScreenshotArgs{Format: "jpeg", Full: true}
		if _, refused = b.engine.Do(context.Background(), r); refused == nil || refused.Code != "surface_busy" ||
			!strings.Contains(refused.Message, "no size") {
			t.Errorf("a page without a layout: %v", refused)
		}
	})
}

// TestAwait: the conditions that one look decides.
func TestAwait(t *testing.T) {
	hidden, disabled := buttonNode("h", "", "Later"), buttonNode("d", "", "Off")
	hidden.Type, disabled.Disabled = "hidden", true
	l := lay(page.Query{}, buttonNode("a", "", "Go"), buttonNode("b", "", "Go"), hidden, disabled,
		page.Node{Ref: "p", Tag: "p", Text: "Text"}, buttonNode("own", "", "Buy now"),
		page.Node{Ref: "in", Up: "own", Tag: "i", Text: "Buy"})
	name := func(s string) *engine.Target { return by(page.Selector{Text: s}) }
	for _, c := range []struct {
		condition, text string
		index           *int
		met             bool
		matched         int
		found           page.Ref
	}{
		{"exists", "Go", nil, true, 2, "a"},
		{"exists", "Go", pointer(1), true, 2, "b"},
		{"exists", "Go", pointer(2), false, 2, ""},
		{"exists", "Later", nil, true, 1, "h"},
		{"exists", "None", nil, false, 0, ""},
		{"not_exists", "Go", nil, false, 2, ""},
		{"not_exists", "Go", pointer(2), true, 2, ""},
		{"not_exists", "Go", pointer(1), false, 2, ""},
		{"not_exists", "None", nil, true, 0, ""},
		{"visible", "Go", nil, true, 2, "a"},
		{"visible", "Later", nil, false, 1, ""},
		{"hidden", "Later", nil, true, 1, ""},
		{"hidden", "None", nil, true, 0, ""},
		{"hidden", "Go", nil, false, 2, ""},
		{"clickable", "Go", nil, true, 2, "a"},
		{"clickable", "Off", nil, false, 1, ""},
		{"clickable", "Later", nil, false, 1, ""},
		{"clickable", "Text", nil, false, 1, ""},
		{"clickable", "Buy", nil, true, 1, "own"}, // through its owner
		{"visible", "Buy", nil, true, 1, "in"},
	} {
		s := &engine.Scene{Now: l, Identity: engine.NewIdentity()}
		got := s.Await(&engine.WaitArgs{For: c.condition, Index: c.index}, name(c.text))
		if got.Met != c.met || got.Matched != c.matched {
			t.Errorf("%s %s: met %t of %d", c.condition, c.text, got.Met, got.Matched)
		}
		if ref := foundRef(got.Found); ref != c.found {
			t.Errorf("%s %s: found %q", c.condition, c.text, ref)
		}
		if c.index != nil && (got.SelectedIndex == nil) != (*c.index >= c.matched) {
			t.Errorf("%s %s: selected %v", c.condition, c.text, got.SelectedIndex)
		}
		if (got.Last == nil) != (c.matched == 0) {
			t.Errorf("%s %s: last %v", c.condition, c.text, got.Last)
		}
	}
}

func foundRef(f *engine.Found) page.Ref {
	if f == nil {
		return ""
	}
	return f.Node.Ref
}

// TestAwaitPage: conditions that are about the page.
func TestAwaitPage(t *testing.T) {
	s := &engine.Scene{Now: lay(page.Query{}), Identity: engine.NewIdentity()}
	met := func(condition string) bool { return s.Await(&engine.WaitArgs{For: condition}, nil).Met }
	if !met("load") || met("navigation") || met("exists") {
		t.Error("a page at rest")
	}
	s.Now.Loading, s.Happened.Loaders = &page.Loading{Signal: "document_loading"}, []string{"l"}
	if met("load") || !met("navigation") {
		t.Error("a page that loads")
	}
	s.Now.Loading.Signal = "requests_in_flight"
	if !met("load") {
		t.Error("traffic is a hint only")
	}
}
