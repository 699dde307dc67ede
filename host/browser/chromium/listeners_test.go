package chromium_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// hears reads the element .a of a page once, and reports whether it listens.
func hears(t *testing.T, ctx context.Context, tab page.Tab, again bool) bool {
	t.Helper()
	o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: ".a"}}, Again: again})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range o.Nodes {
		if len(n.Matches) > 0 {
			return n.OwnHear
		}
	}
	t.Fatal("there is no .a")
	return false
}

// Listeners in an open shadow tree, and in one within it, make elements executable.
func TestListenersInShadowTrees(t *testing.T) {
	tab, ctx := open(t, written(`<div id=host></div><script>
		const inner = host.attachShadow({mode: "open"}); inner.innerHTML = "<p>text</p><section></section>";
		const deep = inner.querySelector("section").attachShadow({mode: "open"}); deep.innerHTML = "<div class=a>one</div>";
		deep.firstChild.addEventListener("click", () => {});</script>`))
	if !hears(t, ctx, tab, false) {
		t.Error("a listener in a shadow tree is not known")
	}
}

// A look at what was looked at before asks of new elements alone what listens.
func TestListenersAgain(t *testing.T) {
	tab, ctx := open(t, written(`<div class=a onmousedown="" id=n>one</div><button onclick="document.querySelector('.a').addEventListener('click',()=>{})">add</button>
		<button onclick="n.outerHTML='<div class=a>two</div>';document.querySelector('.a').addEventListener('click',()=>{})">new</button><script>n.removeAttribute("onmousedown")</script>`))
	if hears(t, ctx, tab, false) {
		t.Fatal("it listens from the start")
	}
	push := func(css string) {
		n := look(t, ctx, tab, css)[0]
		if _, err := tab.Click(ctx, page.Click{At: n.Bounds.Center()}); err != nil {
			t.Fatal(err)
		}
	}
	push("button:nth-of-type(1)")
	if hears(t, ctx, tab, true) {
		t.Error("an element that was known was asked of again")
	}
	if !hears(t, ctx, tab, false) {
		t.Error("a look of its own does not know the listener")
	}
	push("button:nth-of-type(2)")
	if !hears(t, ctx, tab, true) {
		t.Error("the listener of a new element is not known")
	}
}

// A page whose script does not end is left for another one of its site.
func TestNavigateFromHungPage(t *testing.T) {
	tab, ctx := open(t, written(`<p>one<script>setTimeout(()=>{for(;;);},50)</script>`))
	time.Sleep(200 * time.Millisecond)
	begun := time.Now()
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := tab.Navigate(limit, written(`<p class=a>two`), "dom"); err != nil {
		t.Fatalf("after %v: %v", time.Since(begun), err)
	}
	look(t, ctx, tab, ".a")
}

// While the next document is awaited the host knows it without asking the page, which
// could not answer, and a click that began it does not wait for that document.
func TestLeaving(t *testing.T) {
	tab, ctx := open(t, written(`<a href="/slow">go</a>`))
	n := look(t, ctx, tab, "a")[0]
	if tab.Facts().Leaving {
		t.Fatal("it is leaving from the start")
	}
	if _, err := tab.Ready(ctx, n.Ref, page.Point{X: 0.5, Y: 0.5}); err != nil {
		t.Fatal(err)
	}
	d, err := tab.Click(ctx, page.Click{At: n.Bounds.Center()})
	if err != nil || !d.Sent {
		t.Fatalf("%v, %v", d, err)
	}
	for end := time.Now().Add(2 * time.Minute); !tab.Facts().Leaving; {
		if time.Now().After(end) {
			t.Fatal("nobody knows that it is leaving")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := tab.Navigate(ctx, written(`<p class=a>two`), "dom"); err != nil {
		t.Fatal(err)
	}
	if look(t, ctx, tab, ".a"); tab.Facts().Leaving {
		t.Error("it is leaving for ever")
	}
}
