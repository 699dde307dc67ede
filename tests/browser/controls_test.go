package browser_test

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
)

func TestControls(t *testing.T) {
	b := newBench(t)
	b.on("controls")
	adjust := func(name string, value float64, more string) *engine.Result {
		return b.act(fmt.Sprintf(`{"verb":"adjust","target":{"selector":{"label":%q}},"value":%g,"deadline_ms":20000%s}`,
			name, value, more))
	}
	mode := func(r *engine.Result, want string) {
		t.Helper()
		b.is(r, "", "")
		if got := r.Details.(map[string]any)["adjustment_mode"]; got != want {
			t.Errorf("adjustment mode %v, want %s", got, want)
		}
	}
	mode(adjust("Volume", 33, ""), "semantic")
	mode(adjust("Volume", 70, `,"modes":["gesture"]`), "gesture")
	b.is(adjust("Volume", 12, `,"modes":["coordinate"],"actionable_timeout_ms":0`), engine.SemanticMismatch, "no_mode")
	mode(adjust("Count", 7, ""), "semantic")
	mode(adjust("Aria", 30, ""), "gesture")
	mode(adjust("Track", 60, `,"tolerance":1`), "coordinate")
	b.is(adjust("Steps", 33, ""), engine.ConvergenceFailed, "")
	mode(adjust("Steps", 52, `,"tolerance":2`), "semantic")
	b.is(adjust("Volume", 200, `,"actionable_timeout_ms":0`), engine.ActionRejected, "out_of_range")

	b.is(b.act(`{"verb":"select","target":{"selector":{"label":"Theme"}},"option":{"label":"Dark"}}`), "", "")
	b.is(b.act(`{"verb":"select","target":{"selector":{"label":"Colour"}},"option":{"label":"Blue"}}`), "", "")
	for range 2 {
		b.is(b.act(`{"verb":"check","target":{"selector":{"label":"Terms"}},"checked":true}`), "", "")
	}
	b.is(b.act(`{"verb":"fill","target":{"selector":{"label":"Mail"}},"value":{"plain":"a@b.test"}}`), "", "")
	b.is(b.act(`{"verb":"type","target":{"selector":{"label":"Mail"}},"value":{"plain":"c@d.test"},"mode":"keys"}`), "",
		"")
	b.is(b.act(`{"verb":"fill","target":{"selector":{"label":"Note"}},"value":{"plain":"one\ntwo"}}`), "", "")
	b.is(b.act(`{"verb":"clear","target":{"selector":{"label":"Mail"}}}`), "", "")
	b.is(b.act(`{"verb":"hover","target":{"selector":{"label":"Mail"}}}`), "", "")
	b.is(b.act(`{"verb":"press","keys":"Tab","expect":{"kind":"focused","equals":true,"target":{"selector":{"label":"Note"}}}}`), "", "")
}

func TestLazyRows(t *testing.T) {
	b := newBench(t)
	b.on("lazy")
	r := b.act(`{"verb":"scroll","target":{"selector":{"test_id":"row90"}},"within":{"selector":{"role":"group","name":"Rows"}},"max_scrolls":40,"deadline_ms":30000}`)
	b.is(r, "", "")
}

func TestReading(t *testing.T) {
	b := newBench(t)
	b.on("honest")
	click := b.act(`{"verb":"click","target":{"selector":{"text":"Save"}}}`)
	if click.State != engine.Pending {
		t.Fatalf("a click without expect must stay pending: %s", show(t, click))
	}
	x := b.do(`{"verb":"expect","expect":{"kind":"text","target":{"selector":{"test_id":"status"}},"op":"equals","value":"Saved"}}`).(*engine.ExpectReply)
	if !x.Success || x.ActionID != click.ActionID {
		t.Errorf("%s", show(t, x))
	}
	w := b.do(`{"verb":"wait","for":"clickable","target":{"selector":{"text":"Save"}}}`).(*engine.WaitReply)
	if !w.Matched || w.Element.Role != "button" {
		t.Errorf("%s", show(t, w))
	}
	e := b.do(`{"verb":"extract","items":[{"name":"s","take":"text","target":{"selector":{"test_id":"status"}}}]}`).(*engine.ExtractReply)
	if string(e.Items["s"]) != `"Saved"` {
		t.Errorf("%s", show(t, e))
	}
}
