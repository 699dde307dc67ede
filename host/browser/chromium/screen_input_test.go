package chromium_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// heard is a page that writes down the events that arrive at an element.
func heard(element, events string) string {
	return written(element + `<p id=log></p><script>for (const t of "` + events + `".split(" ")) document.getElementById("x").addEventListener(t,
		e => document.getElementById("log").append(t + (e.isTrusted ? "" : "!") + (e.touches ? e.touches.length : "") + " "), { passive: true })</script>`)
}

// logged waits until the page has written something down, and returns all of it.
func logged(t *testing.T, ctx context.Context, tab page.Tab, last string) string {
	t.Helper()
	for {
		text := nodeOf(t, ctx, tab, "#log").Text
		if strings.HasSuffix(strings.TrimSpace(text), last) {
			return strings.TrimSpace(text)
		}
		if ctx.Err() != nil {
			t.Fatalf("never %s; %q", last, text)
		}
	}
}

const plate = `<div id=x style="width:300px;height:100px;background:#ccc;touch-action:none"></div>`

// An owner's fingers arrive as fingers, in their order and trusted.
func TestOwnersFingers(t *testing.T) {
	screen, tab, ctx := watched(t, heard(plate, "touchstart touchmove touchend touchcancel mousedown"))
	at := nodeOf(t, ctx, tab, "#x").Bounds.Center()
	for _, in := range []page.Input{
		{Kind: "touchstart", At: at, TouchID: 1}, {Kind: "touchmove", At: page.Point{X: at.X + 40, Y: at.Y}, TouchID: 1},
		{Kind: "touchend", TouchID: 1},
	} {
		if err := screen.Input(ctx, in); err != nil {
			t.Fatalf("%+v: %v", in, err)
		}
	}
	if got := logged(t, ctx, tab, "touchend0"); got != "touchstart1 touchmove1 touchend0" {
		t.Errorf("%q", got)
	}
	// no tap
	for _, in := range []page.Input{{Kind: "touchstart", At: at, TouchID: 1}, {Kind: "touchcancel", TouchID: 1}} {
		if err := screen.Input(ctx, in); err != nil {
			t.Fatalf("%+v: %v", in, err)
		}
	}
	if got := logged(t, ctx, tab, "touchcancel0"); !strings.HasSuffix(got, "touchend0 touchstart1 touchcancel0") {
		t.Errorf("%q", got)
	}
}

// What an owner pasted is inserted at once, where the page has its cursor.
func TestOwnersPaste(t *testing.T) {
	screen, tab, ctx := watched(t, heard("<textarea id=x>one </textarea>", "keydown paste input"))
	n := nodeOf(t, ctx, tab, "#x")
	text := strings.Repeat("ä€ line\n", 500)
	for _, err := range []error{screen.FocusOn(ctx, n.Ref),
		screen.Input(ctx, page.Input{Kind: "keydown", Key: "End", Modifiers: 2}),
		screen.Input(ctx, page.Input{Kind: "keyup", Key: "End", Modifiers: 2}),
		screen.Input(ctx, page.Input{Kind: "text", Text: text})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// The one key is End: its text is set without a key.
	if got := logged(t, ctx, tab, "input"); strings.Count(got, "keydown") != 1 {
		t.Errorf("%q", got)
	}
	if got := nodeOf(t, ctx, tab, "#x").State.TextValue; got == nil || *got != "one "+text {
		t.Errorf("%.80q", *got)
	}
}

// A pointer that rests, also where the page has no doctype and :hover means links
// alone, and one that drags: move, press, moves, release.
func TestHoverAndDrag(t *testing.T) {
	_, tab, ctx := watched(t, heard(plate, "mouseenter mouseleave mousedown mousemove mouseup"))
	box := nodeOf(t, ctx, tab, "#x").Bounds
	at := func(x float64) page.Point { return page.Point{X: box.X + x, Y: box.Y + 50} }
	if d, err := tab.Hover(ctx, at(10)); err != nil || !d.Sent {
		t.Fatalf("%+v, %v", d, err)
	}
	if got := logged(t, ctx, tab, "mousemove"); got != "mouseenter mousemove" {
		t.Errorf("%q", got)
	}
	if n := nodeOf(t, ctx, tab, "#x"); !n.Hovered {
		t.Errorf("it is not hovered: %+v", n)
	}
	if d, err := tab.Drag(ctx, []page.Point{at(20), at(100), at(200)}); err != nil || !d.Sent {
		t.Fatalf("%+v, %v", d, err)
	}
	got := logged(t, ctx, tab, "mouseup")
	if !strings.HasPrefix(got, "mouseenter mousemove mousemove mousedown mousemove") || strings.Contains(got, "!") {
		t.Errorf("%q", got)
	}
}

// Focus brings a tab to the front: only there a page is drawn.
func TestFocus(t *testing.T) {
	tab, ctx := open(t, written(`<p id=log></p><script>const draw = () => requestAnimationFrame(() => { document.getElementById("log").textContent = "drawn" }); onmessage = draw;
		setTimeout(() => { document.getElementById("log").textContent = document.visibilityState; draw() }, 300)</script>`))
	_, _ = open(t, "form.html") // in front of it
	if err := tab.Focus(ctx); err != nil {
		t.Fatal(err)
	}
	if got := logged(t, ctx, tab, "drawn"); got != "drawn" {
		t.Errorf("%q", got)
	}
}

// A document that comes back from the browser's cache of pages is one that can be
// read and used, and what is known of it is its own.
func TestPageComesBack(t *testing.T) {
	screen, tab, ctx := watched(t,
		written(`<button id=x onclick="this.textContent='pressed'">Press</button><p id=log></p><script>onpageshow = e => { document.getElementById("log").textContent = "shown " + e.persisted }</script>`))
	first := nodeOf(t, ctx, tab, "#x")
	if err := screen.Click(ctx, first.Ref); err != nil {
		t.Fatal(err)
	}
	before := tab.Facts()
	if _, err := tab.Navigate(ctx, "http://two.test/html?body=second", "load"); err != nil {
		t.Fatal(err)
	}
	for _, do := range []string{"back", "forward", "back"} {
		if err := screen.Navigate(ctx, do); err != nil {
			t.Fatal(do, err)
		}
		want := map[string]string{"back": "one.test", "forward": "two.test"}[do]
		for end := time.Now().Add(2 * time.Minute); tab.Facts().Host != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the page is %s", do, tab.Facts().Host)
			}
		}
	}
	log := logged(t, ctx, tab, "e")
	back := nodeOf(t, ctx, tab, "#x")
	t.Logf("%s; %s", log, back.Text)
	if kept := log == "shown true"; kept != (back.Text == "pressed") {
		t.Errorf("%q and %q", log, back.Text)
	}
	if err := screen.Click(ctx, back.Ref); err != nil {
		t.Fatal(err)
	}
	for nodeOf(t, ctx, tab, "#x").Text != "pressed" {
		if ctx.Err() != nil {
			t.Fatal("a click did nothing")
		}
	}
	if now := tab.Facts(); now.URL != before.URL {
		t.Errorf("it is at %s", now.URL)
	}
}

// A frame of one site within a frame of another within the page: read, and clicked at
// the right place.
func TestNestedForeignFrames(t *testing.T) {
	of := func(site, body string) string { return "http://" + site + ".test/html?body=" + url.QueryEscape(body) }
	inner := of("three", `<button id=deep onclick="this.textContent='pressed'">Deep</button>`)
	middle := of("two", `<p>middle</p><iframe src="`+inner+`" style="border:7px solid;width:300px;height:150px"></iframe>`)
	tab, ctx := open(t, of("one",
		`<p>outer</p><iframe src="`+middle+`" style="margin:30px;width:500px;height:300px"></iframe>`))
	var deep page.Node
	for deep.Ref == "" {
		o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: "#deep"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range o.Nodes {
			if n.ID == "deep" {
				deep = n
			}
		}
	}
	if deep.Origin != "http://three.test" || deep.Bounds.X < 38 || deep.Bounds.Y < 38 {
		t.Errorf("%+v", deep)
	}
	r, err := tab.Ready(ctx, deep.Ref, page.Point{X: 0.5, Y: 0.5})
	if err != nil || r.Fault != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if d, err := tab.Click(ctx, page.Click{At: r.Point}); err != nil || d.Trusted == 0 {
		t.Errorf("%+v, %v", d, err)
	}
	for nodeOf(t, ctx, tab, "#deep").Text != "pressed" {
		if ctx.Err() != nil {
			t.Fatal("it was not pressed")
		}
	}
}

// A page that is laid out wider than a phone's screen, or shown larger, is touched
// where the owner touches its picture, and covered where the picture shows a secret.
func TestOwnersPhone(t *testing.T) {
	for name, head := range map[string]string{
		"no width of its own": "", "the phone's": `<meta name=viewport content="width=device-width">`,
		"twice as large": `<meta name=viewport content="width=390,initial-scale=2">`,
	} {
		t.Run(name, func(t *testing.T) {
			address := heard(head+`<div style="width:380px;height:680px"></div><input type=password id=x style="position:absolute;left:230px;top:500px;width:100px;height:40px">`, "touchstart mousedown")
			screen, tab, ctx := watched(t, address)
			if err := screen.SetViewport(ctx, page.Viewport{Width: 390, Height: 692, Scale: 2, Mobile: true}); err != nil {
				t.Fatal(err)
			}
			// The page settles its first size as it loads.
			if _, err := tab.Navigate(ctx, address, "load"); err != nil {
				t.Fatal(err)
			}
			eval := func(js string) string {
				t.Helper()
				got, err := shared.browser.Eval(ctx, js)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			place := func() (b page.Box) {
				t.Helper()
				if err := json.Unmarshal([]byte(eval(
					`(() => { const v = visualViewport, r = document.getElementById("x").getBoundingClientRect(); return { x: (r.x - v.offsetLeft) * v.scale, y: (r.y - v.offsetTop) * v.scale, w: r.width * v.scale, h: r.height * v.scale } })()`)), &b); err != nil {
					t.Fatal(err)
				}
				return b
			}
			if eval(`document.getElementById("x").scrollIntoView(), visualViewport.scale`) == "2" {
				if off := eval(`visualViewport.offsetLeft > 50`); off != "true" {
					t.Error("the screen shows the page's corner still")
				}
			} else if name == "twice as large" {
				t.Error("it is not shown larger")
			}
			want := place()
			boxes, err := screen.Secrets(ctx, nil)
			if err != nil || len(boxes) != 1 {
				t.Fatal(boxes, err)
			}
			if b := boxes[0]; math.Abs(b.X-want.X)+math.Abs(b.Y-want.Y)+math.Abs(b.W-want.W)+math.Abs(b.H-want.H) > 1 ||
				want.X < 0 || want.X > 390 || want.Y < 0 || want.Y > 692 {
				t.Fatalf("the secret is covered at %v, and is at %v", b, want)
			}
			for _, do := range []func() error{
				func() error { return screen.Input(ctx, page.Input{Kind: "click", At: place().Center()}) },
				func() error { return screen.Click(ctx, nodeOf(t, ctx, tab, "#x").Ref) },
				func() error { return screen.Input(ctx, page.Input{Kind: "touchstart", At: place().Center()}) },
			} {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
			if got := logged(t, ctx, tab, "touchstart1"); got != "mousedown mousedown touchstart1" {
				t.Errorf("%q", got)
			}
			if err := screen.Input(ctx, page.Input{Kind: "touchend"}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A picture that is being taken changes how the browser counts pixels for a moment.
// What an owner clicks meanwhile is hit all the same, and a new size stays.
func TestOwnersClickDuringPictures(t *testing.T) {
	screen, tab, ctx := watched(t,
		heard(`<div id=x style="position:absolute;left:600px;top:900px;width:120px;height:40px;background:#ccc"></div>`,
			"click"))
	stop := make(chan struct{})
	var pictures sync.WaitGroup
	pictures.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := screen.Still(ctx, 90); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	defer pictures.Wait()
	defer close(stop)
	for i := range 10 {
		// Without its own idea of a width the page is 980 wide.
		v := page.Viewport{Width: 390, Height: 692 + i, Scale: 2, Mobile: true}
		if err := screen.SetViewport(ctx, v); err != nil {
			t.Fatal(err)
		}
		// Who clicks has seen the page at its new size.
		if _, err := shared.browser.Eval(ctx,
			`new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(() => seen(1))))`); err != nil {
			t.Fatal(err)
		}
		n := nodeOf(t, ctx, tab, "#x")
		for range 3 {
			if err := screen.Click(ctx, n.Ref); err != nil {
				t.Fatal(err)
			}
		}
		until(t, shared.browser, fmt.Sprintf("all clicks of round %d arrived", i), func() bool {
			return strings.Count(logged(t, ctx, tab, "click"), "click") == 3*(i+1)
		})
		if got, err := shared.browser.Eval(ctx, `screen.width + " " + screen.height + " " + innerWidth`); err != nil ||
			got != fmt.Sprintf("%q", fmt.Sprintf("390 %d 980", v.Height)) {
			t.Fatalf("round %d: the page is %s, %v", i, got, err)
		}
	}
}
