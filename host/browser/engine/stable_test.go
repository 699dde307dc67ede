package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestStableID: made of what a developer wrote, never of what looks generated.
func TestStableID(t *testing.T) {
	for _, c := range []struct {
		n    page.Node
		want string
	}{
		{page.Node{TestID: "Save-Button ", NameAtt: "save", ID: "s"}, "Save-Button "}, // verbatim
		{page.Node{NameAtt: "email", ID: "e"}, "email"},
		{page.Node{ID: "login-form"}, "login-form"},
		{page.Node{ID: "step-2-of-3"}, "step-2-of-3"},
		{page.Node{ID: "year2026"}, "year2026"},
		{page.Node{ID: "facade12"}, "facade12"},
		{page.Node{ID: "panel-48213"}, ""},
		{page.Node{ID: "x12345y"}, ""},
		{page.Node{ID: "ember123"}, ""},
		{page.Node{ID: ":r1a:"}, ""},
		{page.Node{ID: "radix-:r3:"}, ""},
		{page.Node{ID: "react-select-2-input"}, ""},
		{page.Node{ID: "a3f9c2d1"}, ""},
		{page.Node{ID: "b-7f3a9c2e81d04b5f"}, ""},
		{page.Node{ID: "k9x2m4q8z1"}, ""},
		{page.Node{Name: "Save", Text: "Save"}, ""},
	} {
		if got := engine.StableID(&c.n); got != c.want {
			t.Errorf("%+v: %q", c.n.ID, got)
		}
	}
}
