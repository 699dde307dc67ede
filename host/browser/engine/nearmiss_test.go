package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// What may have been meant is named, the likest first, and nothing that is unlike.
func TestNearMisses(t *testing.T) {
	node := func(ref page.Ref, role, name string) page.Node {
		return page.Node{Ref: ref, Tag: "div", Role: role, Name: name, Visible: true, Bounds: page.Box{W: 10, H: 10}}
	}
	o := &page.Observation{Document: "d", Nodes: []page.Node{
		node("1", "textbox", "Username:"), node("2", "button", "Sign in now"), node("3", "link", "Help"), node("4", "button", "Sing in"),
	}}
	l := engine.NewLook(o, page.Query{})
	for want, names := range map[string][]string{
		"Username": {"Username:"}, "Usernane": {"Username:"}, "Sign in": {"Sign in now", "Sing in"}, "Sign in now!": {"Sign in now"},
		"Logout": nil, "x": nil,
	} {
		var got []string
		for _, a := range l.NearMisses(engine.NewIdentity(), &engine.Selector{Selector: page.Selector{Name: want}}) {
			got = append(got, a.Text)
		}
		if len(got) != len(names) || len(got) > 0 && got[0] != names[0] {
			t.Errorf("%q: %q, want %q", want, got, names)
		}
	}
}
