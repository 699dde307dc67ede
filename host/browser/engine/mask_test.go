package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestMask: nothing of an observation that a guest can ask about has the value, and
// none of the questions that would spell it out is answered by it.
func TestMask(t *testing.T) {
	const secret, handle = "hunter22", "sluice-sealed-v1-a"
	hide := func(s string) string { return strings.ReplaceAll(s, secret, handle) }
	in := "my " + secret
	l := sheet()
	o := l.Observation
	o.URL, o.Title, o.Frames = "https://"+secret+".example/"+secret+"?q="+secret, in, []page.Subframe{{ID: "f", Name: in}}
	o.Nodes = append(o.Nodes, page.Node{
		Ref: "echo", Tag: "p", ID: in, TestID: in, NameAtt: in, Role: "note", Name: in, AriaLabel: in, Label: in, Placeholder: in, Description: in, Text: in,
		Classes: []string{in}, Files: []string{in}, URL: "https://a.example/" + secret, Attributes: map[string]string{"title": in},
		Options: []page.Option{{ID: in, Label: in}}, State: page.State{RawValue: pointer(in), TextValue: pointer(secret), Selected: &page.Option{ID: in, Label: in}}, Visible: true,
		Bounds: page.Box{W: 1, H: 1},
	})
	engine.Mask(o, hide)
	if !strings.HasPrefix(o.URL, "https://"+secret+".example/"+handle+"?") {
		t.Errorf("address %s", o.URL)
	}
	o.URL = strings.Replace(o.URL, secret, "", 1)
	if raw, err := json.Marshal(o); err != nil || strings.Contains(string(raw), secret) {
		t.Errorf("%v %s", err, raw)
	}
	s := &engine.Scene{Now: engine.NewLook(o, page.Query{}), Self: "echo", Identity: engine.NewIdentity()}
	for delta, want := range map[string]engine.Truth{
		`{"kind":"text","op":"contains","value":"hunter"}`:                       no,
		`{"kind":"text","op":"matches","value":"my h"}`:                          no,
		`{"kind":"title","op":"contains","value":"hunt"}`:                        no,
		`{"kind":"url","op":"contains","value":"/hunt"}`:                         no,
		`{"kind":"attribute","name":"title","op":"contains","value":"hunt"}`:     no,
		`{"kind":"exists","target":{"selector":{"query":"hunter"}}}`:             no,
		`{"kind":"exists","target":{"selector":{"label":"hunt","exact":false}}}`: no,
		`{"kind":"text_value","equals":"` + secret + `"}`:                        no,
		`{"kind":"text_value","equals":"` + handle + `"}`:                        yes,
		`{"kind":"text","op":"contains","value":"` + handle + `"}`:               yes,
		`{"kind":"exists","target":{"selector":{"query":"` + handle + `"}}}`:     yes,
	} {
		if got := s.Evaluate(word(t, delta)).Truth; got != want {
			t.Errorf("%s: %d", delta, got)
		}
	}
}

// TestMaskPieces: letters of a value that stand in elements or fields of their own are
// nothing that a guest can ask about.
func TestMaskPieces(t *testing.T) {
	const secret, handle = "hunter22", "sluice-sealed-v1-a"
	hide := func(s string) string { return strings.ReplaceAll(s, secret, handle) }
	o := &page.Observation{Nodes: []page.Node{{Ref: "all", Text: "my h u n t e r 2 2"}, {Ref: "first", Up: "all", Text: "my"}}}
	for _, c := range secret {
		o.Nodes = append(o.Nodes, page.Node{Ref: page.Ref(string(c)), Up: "all", Text: string(c), Name: string(c), State: page.State{RawValue: pointer(string(c))}})
	}
	engine.Mask(o, hide)
	for _, n := range o.Nodes[2:] {
		if n.Text != handle || n.Name != handle || *n.State.RawValue != handle {
			t.Errorf("%s: %q, %q, %q", n.Ref, n.Text, n.Name, *n.State.RawValue)
		}
	}
	if all := o.Nodes[0].Text; strings.Contains(all, "h u") || !strings.Contains(all, handle) || o.Nodes[1].Text != "my" {
		t.Errorf("around them: %q, %q", all, o.Nodes[1].Text)
	}
}
