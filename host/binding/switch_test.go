package binding_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// A gadget is a kind of nothing but a switch, with a part of the manifest.
type gadget struct{ binding.Switch }

var (
	_ binding.Kind   = gadget{}
	_ binding.Reader = gadget{}
)

func (gadget) Check(b abi.Binding) error {
	if string(b.Members) != `{"required": true}` {
		return &abi.ManifestError{Path: "/gadget", Rule: "value_unknown", Want: "nothing else"}
	}
	return nil
}

func (gadget) Open(*abi.Manifest, store.Connection) (binding.Binding, error) { return nothing{}, nil }

type nothing struct{}

func (nothing) Takes(abi.Call, []byte) bool                                  { return false }
func (nothing) Handle(context.Context, abi.Call, []byte) ([]byte, abi.Errno) { return nil, abi.OK }
func (nothing) Close(context.Context) error                                  { return nil }

var kinds = binding.Kinds{gadget{binding.Switch{Binding: "gadget", Words: "use the gadget",
	Module: "sluice_v1_gadget"}}}

func asking(part string) *abi.Manifest {
	return &abi.Manifest{Bindings: map[string]abi.Binding{"gadget": {Required: true, Members: json.RawMessage(part)}}}
}

// TestSwitch: a switch is asked for, approved, shown, added, compared and taken back, and
// leaves alone what is another's.
func TestSwitch(t *testing.T) {
	m, k := asking(`{"required": true}`), kinds[0]
	other := map[string]json.RawMessage{"widget": json.RawMessage("true")}
	if err := kinds.Check(m); err != nil {
		t.Error(err)
	}
	if err := kinds.Check(asking(`{}`)); err == nil {
		t.Error("a part that is not valid passed")
	}
	asks := kinds.Asks(m, store.Approved{})
	if len(asks) != 1 || asks[0].Lacks == "" || asks[0].Flag != "--gadget" || len(asks[0].Missing) != 1 {
		t.Fatalf("asks %+v", asks)
	}
	words, offered := k.Offer(m, store.Approved{})
	given, err := k.ParseFlag(binding.FlagValues{Manifest: m, Values: []string{"gadget"}})
	if words != "use the gadget" || err != nil || kinds.Narrower(offered, given) || kinds.Narrower(given, offered) {
		t.Errorf("offer %q %v, given %v, %v", words, offered, given, err)
	}
	if _, err := k.ParseFlag(binding.FlagValues{Manifest: &abi.Manifest{}, Values: []string{"gadget"}}); err == nil {
		t.Error("a flag for what is not asked for was taken")
	}
	for text, want := range map[string]bool{`true`: true, `false`: true, `1`: false} {
		var c store.Connection
		q := host.Bindings{Other: map[string]json.RawMessage{"gadget": json.RawMessage(text)}}
		if err := kinds.Approve(binding.Approval{Manifest: m, Bindings: q}, &c); (err == nil) != want {
			t.Errorf("approve %s: %v", text, err)
		}
		if text == "true" {
			if err := kinds.Approve(binding.Approval{Manifest: &abi.Manifest{}, Bindings: q}, &c); err == nil {
				t.Error("what is not asked for was approved")
			}
		}
	}
	c := store.Connection{Approved: store.Approved{Other: other}}
	kinds.Merge(&c.Approved, given)
	var shown host.Bindings
	kinds.Show(c, m, &shown)
	var read store.Approved
	kinds.Read(shown, &read)
	if asks := kinds.Asks(m, read); asks[0].Lacks != "" || len(asks[0].Missing) > 0 || len(kinds.Granted(m, read)) != 1 {
		t.Errorf("read %v, asks %+v", read, asks)
	}
	if len(other) != 1 {
		t.Error("an approval was changed in place")
	}
	before := c.Approved
	if missing := kinds.Withdraw(&c.Approved, map[string][]string{"gadget": {"gadget"}}); len(missing) > 0 ||
		!kinds.Narrower(before, c.Approved) || len(c.Approved.Other) != 1 {
		t.Errorf("taken back: %v, %v", missing, c.Approved)
	}
	if missing := kinds.Withdraw(&c.Approved, map[string][]string{"gadget": {"gadget"}}); len(missing) != 1 {
		t.Errorf("taken back twice: %v", missing)
	}
}
