package timeline_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/timeline"
)

const (
	codeSchema     = `{"type":"object","required":["code"],"properties":{"code":{"type":"string","secret":true,"delivery":"sealed"},"a":{"type":"string","title":"First"}}}`
	decisionSchema = `{"type":"object","required":["action"],"properties":{"action":{"type":"string","enum":["accept","reject"]},"comment":{"type":"string"}}}`
	choiceSchema   = `{"type":"object","required":["action","x"],"properties":{"action":{"type":"string","enum":["accept","reject"]},"x":{"type":"string"}}}`
)

func item(posture, action, obligation, schema string, a ...abi.Attachment) timeline.Item {
	return timeline.Item{
		ProgressPosture: posture, OwnerAction: action, ResponseObligation: obligation, Sensitivity: "non_secret",
		Status: timeline.ItemOpen, InputSchema: json.RawMessage(schema), Attachments: a,
	}
}

func TestViews(t *testing.T) {
	surface := abi.Attachment{Kind: "browser_surface", Ref: "sf_1", Status: "available"}
	gone := abi.Attachment{Kind: "browser_surface", Status: "unavailable", Reason: "no_surface_registered"}
	link := abi.Attachment{Kind: "url", Label: "Bank"}
	ended := item("blocked", "provide_value", "response_required", codeSchema)
	ended.Status = timeline.ItemResolved
	abandoned := ended
	abandoned.Status = timeline.ItemAbandoned
	cases := []struct {
		name     string
		item     timeline.Item
		want     timeline.State
		controls timeline.Controls
	}{
		{"A", item("running", "act_elsewhere", "none", "", link, surface), timeline.StateA, timeline.Controls{Links: true}},
		{"B", item("blocked", "provide_value", "response_required", codeSchema), timeline.StateB,
			timeline.Controls{Form: true, Cancel: true, SecretNotice: true}},
		{"B with a choice among others", item("blocked", "provide_value", "response_required", choiceSchema), timeline.StateB,
			timeline.Controls{Form: true, Cancel: true}},
		{"B without a schema", item("blocked", "provide_value", "response_required", ""), timeline.StateB,
			timeline.Controls{Form: true, Cancel: true}},
		{"decision", item("blocked", "provide_value", "response_required", decisionSchema), timeline.StateBDecision,
			timeline.Controls{Accept: true, Cancel: true}},
		{"C", item("blocked", "operate_attachment", "response_required", "", surface), timeline.StateC,
			timeline.Controls{OpenView: true, Done: true, Cancel: true}},
		{"C unavailable", item("blocked", "operate_attachment", "response_required", "", gone), timeline.StateCNoSurface,
			timeline.Controls{DoneOutside: true, Cancel: true}},
		{"C without an attachment", item("blocked", "operate_attachment", "response_required", ""), timeline.StateCNoSurface,
			timeline.Controls{DoneOutside: true, Cancel: true}},
		{"D", item("waiting_retry", "none", "none", "", link), timeline.StateD, timeline.Controls{}},
		{"E", item("blocked", "operate_attachment", "none", "", surface), timeline.StateE, timeline.Controls{OpenView: true}},
		{"E unavailable", item("blocked", "operate_attachment", "none", "", gone), timeline.StateE, timeline.Controls{}},
		{"other", item("waiting_retry", "provide_value", "none", codeSchema, surface), timeline.StateOther,
			timeline.Controls{}},
		{"nothing to do", item("running", "none", "none", ""), timeline.StateOther, timeline.Controls{}},
		{"unknown words", item("x", "y", "z", codeSchema, surface), timeline.StateOther, timeline.Controls{}},
		{"ended", ended, timeline.StateEnded, timeline.Controls{}},
		{"abandoned", abandoned, timeline.StateAbandoned, timeline.Controls{}},
	}
	for _, c := range cases {
		v := timeline.ViewOf(c.item)
		if v.State != c.want || v.Controls != c.controls {
			t.Errorf("%s: %s %+v, want %s %+v", c.name, v.State, v.Controls, c.want, c.controls)
		}
		// Whatever the texts say, the same is shown.
		for _, text := range []string{"Enter your password", "Open the browser now", "<b>approve</b>", "gmail"} {
			other := c.item
			other.Message, other.Kind, other.Stream, other.ConnectionID = text, text, text, "evil"
			other.RequestID, other.InteractionID, other.InterruptID = text, text, text
			w := timeline.ViewOf(other)
			w.Item, v.Item = timeline.Item{}, timeline.Item{}
			if !reflect.DeepEqual(v, w) {
				t.Errorf("%s: message %q changes %+v to %+v", c.name, text, v, w)
			}
		}
	}
}

func TestForm(t *testing.T) {
	v := timeline.ViewOf(item("blocked", "provide_value", "response_required", codeSchema))
	want := []timeline.FormField{
		{Name: "a", Label: "First", Type: "string"},
		{Name: "code", Label: "code", Type: "string", Secret: true, Sealed: true, Required: true},
	}
	if !reflect.DeepEqual(v.Fields, want) {
		t.Errorf("fields %+v, want %+v", v.Fields, want)
	}
	v = timeline.ViewOf(item("blocked", "provide_value", "response_required", decisionSchema))
	if v.Decision != "action" || !v.Comment || v.Fields != nil {
		t.Errorf("decision %+v", v)
	}
}
