package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A pair is a browser with a page and, for a time, other tabs. It is its own first
// tab, and remembers what became of the others.
type pair struct {
	*site
	others []page.Tab
	past   []page.Popup
}

func (p *pair) Tabs() []page.Tab { return append([]page.Tab{p}, p.others...) }
func (p *pair) Mark() page.Mark  { return page.Mark(len(p.past)) }
func (p *pair) Happened(since page.Mark) page.Happened {
	return page.Happened{Popups: slices.Clone(p.past[since:])}
}

// An other is a tab in the background.
type other struct {
	*site
	id string
}

func (o other) ID() string { return o.id }

// The next reply lists what was closed since the last one, once, and why:
// between two verbs as well.
func TestClosedTabs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{site: newSite(button("Save"))}
		e := engine.New(engine.Options{Browser: p, Identity: engine.NewIdentity()})
		defer e.Close()
		tabs := func() (out []string) {
			r, refused := engine.Parse([]byte(`{"verb":"click","target":{"selector":{"role":"button","name":"Save"}}}`))
			if refused != nil {
				t.Fatal(refused)
			}
			got, refused := e.Do(context.Background(), r)
			if refused != nil {
				t.Fatal(refused)
			}
			for _, tab := range got.(*engine.Result).Tabs {
				out = append(out, tab.TabID+" "+tab.Closed)
			}
			return out
		}
		check := func(when string, want ...string) {
			t.Helper()
			if got := tabs(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		p.others = []page.Tab{other{p.site, "tab_2"}, other{p.site, "tab_3"}}
		check("at first", "tab_1 ", "tab_2 ", "tab_3 ")
		p.others = nil
		p.past = append(p.past, page.Popup{Tab: "tab_2", Closed: "it crashed"}, page.Popup{Closed: "too many tabs"}, page.Popup{Tab: "tab_4"}, page.Popup{Tab: "tab_4", Closed: "it crashed"})
		check("after a crash", "tab_1 ", "tab_2 it crashed", "tab_3 closed", "tab_4 it crashed", " too many tabs")
		check("later", "tab_1 ")
	})
}
