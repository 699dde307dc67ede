package browser_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// evidence are the files of the archive of a desk's run.
func (d *desk) evidence(t *testing.T) map[string]string {
	t.Helper()
	return unpack(t, filepath.Join(d.data, "traces", "browser-trace-run_1.zip"))
}

// The archive has the lines of what came of each verb, and evidence from before the
// first one, after each, and of checkpoints. Nothing that was typed is in it, sealed or
// plain.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		const handle = "sluice-sealed-v1-abc"
		d.Seal("password", handle, "correct-horse", [][]byte{[]byte("correct-horse")}, nil)
		d.do = func(_ context.Context, r *engine.Request) (any, *engine.Refusal) {
			f := d.fakes[0]
			f.mu.Lock()
			f.facts.Loader += "x"
			f.mu.Unlock()
			result := &engine.Result{ActionID: "act_1",
				Details: map[string]any{"dialog": map[string]any{"type": "alert", "message_length": 5, "answer": "dismissed"}}}
			d.worker.Trace(engine.Record{Verb: r.Verb, Trace: engine.Trace{ActionID: "act_1", Outcome: "success", Attempts: 1},
				Result: result})
			return result, nil
		}
		typed := "Ann's diary"
		d.ok(t, `{"verb":"open","trace":true}`)
		synctest.Wait()
		f := d.fakes[0]
		f.mu.Lock()
		f.nodes = []page.Node{
			{Ref: "field", Tag: "input", Role: "textbox", Name: "Title", Editable: true, Native: true, Visible: true,
				State: page.State{TextValue: &typed}, Bounds: page.Box{W: 9, H: 9}},
			{Ref: "around", Tag: "button", Role: "button", Name: "Keep " + typed, Native: true, Visible: true,
				Bounds: page.Box{W: 9, H: 9}},
			{Ref: "said", Tag: "button", Role: "button", Name: "It is correct-horse", Native: true, Visible: true,
				Bounds: page.Box{W: 9, H: 9}},
		}
		f.mu.Unlock()
		d.ok(t, `{"verb":"click","target":{"selector":{"id":"b"}}}`)
		synctest.Wait()
		d.ok(t, `{"verb":"mark","phase":"email-submit"}`)
		synctest.Wait()
		d.end(t)
		files := d.evidence(t)
		var kinds, pictures []string
		for text := range strings.Lines(files["trace.jsonl"]) {
			var l struct {
				Kind string
				Data map[string]any
			}
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatal(err)
			}
			if l.Kind != "event" {
				kinds = append(kinds, l.Kind)
			}
			if name, ok := l.Data["picture"].(string); ok {
				pictures = append(pictures, l.Data["phase"].(string)+" "+files[name+".jpg"])
			}
		}
		if want := []string{"checkpoint", "trace", "navigation", "dialog", "checkpoint"}; !slices.Equal(kinds, want) {
			t.Errorf("%v, want %v", kinds, want)
		}
		if want := []string{"open JPEG", "email-submit JPEG"}; !slices.Equal(pictures, want) || files["act_1.jpg"] != "JPEG" {
			t.Errorf("%q and act_1: %q", pictures, files["act_1.jpg"])
		}
		if !strings.Contains(files["act_1.json"], "Title") || !strings.Contains(files["act_1.json"], handle) ||
			!slices.Contains(f.covered, "field") {
			t.Errorf("the page was %s, covered %v", files["act_1.json"], f.covered)
		}
		for name, text := range files {
			if strings.Contains(text, typed) || strings.Contains(text, "correct-horse") {
				t.Errorf("%s tells what was typed: %s", name, text)
			}
		}
	})
}

// Of a page that cannot answer nothing is taken, and the run does not notice.
func TestTraceOfDialog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.ok(t, `{"verb":"open","trace":true}`)
		synctest.Wait()
		f := d.fakes[0]
		f.mu.Lock()
		f.facts.Dialog = &page.Dialog{Type: "alert"}
		f.mu.Unlock()
		d.ok(t, `{"verb":"mark","phase":"x"}`)
		synctest.Wait()
		d.end(t)
		n := 0
		for name := range d.evidence(t) {
			if strings.HasSuffix(name, ".jpg") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d pictures, want that of open alone", n)
		}
	})
}
