package run

import (
	"context"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
)

// A lent binding takes some calls and notes what it is told.
type lent struct {
	takes []abi.Call
	heard []string
}

func (l *lent) Takes(call abi.Call, _ []byte) bool                           { return slices.Contains(l.takes, call) }
func (l *lent) Handle(context.Context, abi.Call, []byte) ([]byte, abi.Errno) { return nil, abi.OK }
func (l *lent) Close(context.Context) error {
	l.heard = append(l.heard, "close")
	return nil
}
func (l *lent) Seal(field, _, _ string, _ [][]byte, _ []abi.Destination) {
	l.heard = append(l.heard, "seal "+field)
}

// A speaking binding has a way back into the run.
type speaking struct{ lent }

func (s *speaking) Begin(string, binding.Run) { s.heard = append(s.heard, "begin") }

// TestBindings: a call goes to the first binding that takes it, a role to all that have
// it, and nothing to a speaker that is closed.
func TestBindings(t *testing.T) {
	speaker := &speaking{lent{takes: []abi.Call{abi.CallBrowser, abi.CallRead}}}
	other := &lent{takes: []abi.Call{abi.CallRead, abi.CallClose}}
	all := &parts{ctx: t.Context(), deps: Deps{Bindings: []binding.Binding{nil, speaker, other}}}
	bs := newBindings(all)
	for call, want := range map[abi.Call]binding.Binding{abi.CallBrowser: speaker, abi.CallRead: speaker,
		abi.CallClose: other, abi.CallEmit: nil} {
		if got := bs.bindingFor(call, nil); got != want {
			t.Errorf("call %d goes to %v", call, got)
		}
	}
	if !has[binding.Sealer](bs) || has[binding.Screen](bs) || bs.screen() != nil {
		t.Error("roles are not those of the bindings")
	}
	seal := func(b binding.Sealer) { b.Seal("pin", "", "", nil, nil) }
	each(bs, seal)
	bs.speakersClosed = true
	each(bs, seal)
	if got := bs.bindingFor(abi.CallRead, nil); got != binding.Binding(other) {
		t.Errorf("a read goes to %v once the speaker is closed", got)
	}
	bs.close()
	if want := []string{"begin", "seal pin"}; !slices.Equal(speaker.heard, want) {
		t.Errorf("the speaker heard %q", speaker.heard)
	}
	if want := []string{"seal pin", "seal pin", "close"}; !slices.Equal(other.heard, want) {
		t.Errorf("the other heard %q", other.heard)
	}
}
