package chromium_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/host/browser/page"
)

// What goes and comes back between two looks is counted; what is drawn anew with the
// same content, what goes and stays away, and what is elsewhere are not.
func TestWaves(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		want   bool
	}{
		"text that comes back":      {`n.textContent = "two"; setTimeout(() => n.textContent = "one")`, true},
		"a state that comes back":   {`n.ariaPressed = "true"; setTimeout(() => n.ariaPressed = "false")`, true},
		"within the element":        {`n.firstElementChild.firstChild.data = "two"; setTimeout(() => n.firstElementChild.firstChild.data = "one")`, true},
		"in a shadow tree":          {`s.textContent = "two"; setTimeout(() => s.textContent = "one")`, true},
		"drawn anew":                {`n.innerHTML = n.innerHTML; setTimeout(() => n.innerHTML = n.innerHTML)`, false},
		"text that stays away":      {`n.textContent = "two"; setTimeout(() => n.textContent = "three")`, false},
		"what is somewhere else":    {`clock.textContent = "13"; setTimeout(() => clock.textContent = "12")`, false},
		"a style that nobody reads": {`n.style.color = "red"; setTimeout(() => n.style.color = "")`, false},
	} {
		t.Run(name, func(t *testing.T) {
			tab, ctx := open(t, written(`<div class=a id=n aria-pressed=false><b>one</b></div><p id=clock>12</p><div id=host></div><title>before</title><script>
				const s = document.createElement("div"); s.className = "a"; s.textContent = "one"; host.attachShadow({mode: "open"}).append(s)</script>`))
			if got := waves(t, ctx, tab); got != 0 {
				t.Fatalf("%d from the start", got)
			}
			if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
				t.Fatal(err)
			}
			eval(t, shared.browser, `(() => { `+c.change+
				`; setTimeout(() => setTimeout(() => document.title = "after")) })(), 1`)
			until(t, shared.browser, "the change is over", func() bool {
				o, err := tab.Read(ctx, page.Query{})
				return err == nil && o.Title == "after"
			})
			if got := waves(t, ctx, tab); (got > 0) != c.want {
				t.Errorf("%d waves", got)
			}
		})
	}
}

// waves looks at the elements .a of a page, as one looks again and again.
func waves(t *testing.T, ctx context.Context, tab page.Tab) (n int) {
	t.Helper()
	o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: ".a"}}, Again: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range o.Nodes {
		if len(e.Matches) > 0 {
			n += e.Waves
		}
	}
	return n
}

// What is in the middle of something says so: marked busy, or moved or faded by an
// animation that ends. What only changes its colour, or never ends, is not.
func TestWorking(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		want   bool
	}{
		"still":             {``, false},
		"busy":              {`n.ariaBusy = "true"`, true},
		"in something busy": {`document.body.ariaBusy = "true"`, true},
		"moved":             {`n.animate([{transform: "none"}, {transform: "translateX(9px)"}], 6e4)`, true},
		"moved for ever":    {`n.animate([{transform: "none"}, {transform: "translateX(9px)"}], {duration: 6e4, iterations: Infinity})`, false},
		"coloured":          {`n.animate([{color: "red"}, {color: "blue"}], 6e4)`, false},
		"faded by a transition": {`n.style.transition = "opacity 60s"; getComputedStyle(n).opacity; n.style.opacity = .1`,
			true},
		"coloured by one": {`n.style.transition = "color 60s"; getComputedStyle(n).color; n.style.color = "red"`,
			false},
		"methods that were taken": {`Element.prototype.getAnimations = () => []; n.animate([{opacity: 0}, {opacity: 1}], 6e4)`, true},
	} {
		t.Run(name, func(t *testing.T) {
			tab, ctx := open(t, written(`<div class=a id=n>one</div>`))
			if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
				t.Fatal(err)
			}
			eval(t, shared.browser, `(() => { `+c.change+` })(), 1`)
			o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: ".a"}}, Again: true})
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(o.Nodes, func(n page.Node) bool { return len(n.Matches) > 0 }); i < 0 ||
				o.Nodes[i].Working != c.want {
				t.Errorf("working: %+v", o.Nodes)
			}
		})
	}
}

// Text that is different from one look to the next says so.
func TestChanged(t *testing.T) {
	tab, ctx := open(t, written(`<div class=a id=n>0</div>`))
	for i, want := range []bool{false, false, true, false} {
		if want {
			eval(t, shared.browser, `n.textContent = "1", 1`)
		}
		o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: ".a"}}, Again: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range o.Nodes {
			if len(n.Matches) > 0 && n.Changed != want {
				t.Errorf("look %d: changed %t", i, n.Changed)
			}
		}
	}
}
