package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func TestChanges(t *testing.T) {
	base := page.Digests{Hierarchy: "h", Text: "t", State: "s"}
	for _, c := range []struct {
		now  page.Digests
		want []string
	}{
		{base, nil},
		{page.Digests{Hierarchy: "h2", Text: "t", State: "s"}, []string{"hierarchy_diff"}},
		{page.Digests{Hierarchy: "h", Text: "t2", State: "s"}, []string{"text_change"}},
		{page.Digests{Hierarchy: "h", Text: "t", State: "s2"}, []string{"state_change"}},
		{page.Digests{Hierarchy: "h2", Text: "t2", State: "s2"}, []string{"hierarchy_diff", "text_change", "state_change"}},
	} {
		if got := engine.Changes(base, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c.now, got)
		}
	}
}

// TestHistory: the last 16 revisions keep their digests.
func TestHistory(t *testing.T) {
	var h engine.History
	for i := range 20 {
		h.Add(&page.Observation{Revision: int64(i), Digests: page.Digests{Text: string(rune('a' + i))}})
		h.Add(&page.Observation{Revision: int64(i), Digests: page.Digests{Text: "later"}})
	}
	if _, ok := h.At(3); ok {
		t.Error("the 17th is remembered")
	}
	if d, ok := h.At(4); !ok || d.Text != "e" {
		t.Errorf("%+v %t", d, ok)
	}
	if _, ok := h.At(20); ok {
		t.Error("a revision that was never")
	}
}

// TestSettling: a change counts once it has stayed for the window, and one that is
// taken back does not count at all.
func TestSettling(t *testing.T) {
	base, text, both := page.Digests{Text: "a"}, page.Digests{Text: "b"}, page.Digests{Text: "b", State: "x"}
	type read struct {
		ms int
		d  page.Digests
	}
	for _, c := range []struct {
		name    string
		kind    string
		reads   []read
		at      int // of the read that settles it, -1 for none
		changed string
	}{
		{"stays", "", []read{{0, base}, {100, text}, {200, text}, {349, text}, {350, text}}, 4, "text_change"},
		{"goes on changing", "", []read{{0, text}, {200, both}, {400, both}, {450, both}}, 3, "text_change"},
		{"taken back", "", []read{{0, text}, {200, base}, {500, base}, {900, base}}, -1, ""},
		{"another kind", "state_change", []read{{0, text}, {300, text}, {400, both}, {650, both}}, 3, "state_change"},
		{"nothing", "", []read{{0, base}, {900, base}}, -1, ""},
	} {
		s := engine.Settling{Baseline: base, Kind: c.kind, Stable: 250 * time.Millisecond}
		start, settled := time.Unix(1000, 0), -1
		for i, r := range c.reads {
			kind, ok := s.Take(r.d, start.Add(time.Duration(r.ms)*time.Millisecond))
			if ok && settled < 0 {
				settled = i
				if kind != c.changed {
					t.Errorf("%s: %s", c.name, kind)
				}
			}
		}
		if settled != c.at {
			t.Errorf("%s: settled at read %d", c.name, settled)
		}
	}
}

// TestTurning: another fingerprint in two consecutive reads, those without one passed
// over.
func TestTurning(t *testing.T) {
	for _, c := range []struct {
		reads []string
		at    int
	}{
		{[]string{"a", "b", "b"}, 2},
		{[]string{"b", "", "c"}, 2},
		{[]string{"b", "a", "b", "a"}, -1},
		{[]string{"", "", ""}, -1},
	} {
		turn, at := engine.Turning{Previous: "a"}, -1
		for i, fp := range c.reads {
			if turn.Take(fp) && at < 0 {
				at = i
			}
		}
		if at != c.at {
			t.Errorf("%v: %d", c.reads, at)
		}
	}
}
