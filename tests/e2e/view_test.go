//go:build unix

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// A drawn is a page that the test draws: one colour, 800 by 600. It has only the
// methods that are called.
type drawn struct {
	page.Screen
	filming  sync.Mutex // held while a picture is sent, which is one at a time
	mu       sync.Mutex // guards what follows
	color    color.RGBA
	facts    page.Facts
	viewport page.Viewport
	choosing bool
	sent     func(page.Frame)
	did      []string
	changed  chan struct{}
}

func (d *drawn) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, fmt.Sprintf(format, args...))
	return nil
}

// happened waits until an action was done, and forgets it.
func (d *drawn) happened(t *testing.T, what string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		d.mu.Lock()
		for i, did := range d.did {
			if did == what {
				d.did = d.did[i+1:]
				d.mu.Unlock()
				return
			}
		}
		did := strings.Join(d.did, "\n")
		d.mu.Unlock()
		if time.Now().After(end) {
			t.Fatalf("never: %s; but\n%s", what, did)
		}
	}
}

func (d *drawn) set(f func(*drawn)) {
	d.filming.Lock()
	d.mu.Lock()
	f(d)
	sent, p := d.sent, d.frame()
	d.mu.Unlock()
	if sent != nil {
		sent(p)
	}
	d.filming.Unlock()
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// frame returns the present picture. The caller holds mu.
func (d *drawn) frame() page.Frame {
	m := image.NewRGBA(image.Rect(0, 0, d.viewport.Width, d.viewport.Height))
	draw.Draw(m, m.Bounds(), image.NewUniform(d.color), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		panic(err)
	}
	return page.Frame{At: time.Now(), Viewport: d.viewport, Scale: 1, Data: b.Bytes()}
}

func (d *drawn) Cast(ctx context.Context, _ page.Cast, sent func(page.Frame)) error {
	d.mu.Lock()
	d.sent = sent
	d.mu.Unlock()
	<-ctx.Done()
	d.filming.Lock()
	defer d.filming.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = nil
	return nil
}

func (d *drawn) Still(context.Context, int) (page.Frame, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.frame(), nil
}

func (d *drawn) Facts() page.Facts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts
}

func (d *drawn) Title(context.Context) (string, error) { return "<b>Bank</b>", nil }
func (d *drawn) Changed() <-chan struct{}              { return d.changed }
func (d *drawn) OnDialog(page.DialogPolicy)            {}

func (d *drawn) Viewport() page.Viewport {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.viewport
}

func (d *drawn) SetViewport(_ context.Context, v page.Viewport) error {
	d.set(func(d *drawn) { d.viewport = v })
	return d.note("viewport %d %v", v.Width, v.Mobile)
}

func (d *drawn) Choosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.choosing
}

func (d *drawn) Choose(_ context.Context, paths []string) error {
	d.set(func(d *drawn) { d.choosing = false })
	return d.note("choose %v", paths)
}

func (d *drawn) Input(_ context.Context, in page.Input) error {
	switch in.Kind {
	case "move":
		return nil
	case "keydown", "keyup":
		return d.note("%s %s %d", in.Kind, in.Key, in.Modifiers)
	case "text":
		return d.note("text %s", in.Text)
	case "wheel":
		return d.note("wheel %v", in.DY)
	case "touchcancel":
		return d.note("touchcancel")
	}
	return d.note("%s %.0f,%.0f %d", in.Kind, in.At.X, in.At.Y, in.Button)
}

// Control is a list in the upper left corner.
func (d *drawn) Control(_ context.Context, at page.Point) (page.Node, bool, error) {
	n := page.Node{Ref: "r", Tag: "select", Name: "Country",
		Options: []page.Option{{ID: "a", Label: "Austria"}, {ID: "b", Label: "<b>Belgium</b>"}}}
	return n, at.X < 100 && at.Y < 100, nil
}

func (d *drawn) Set(_ context.Context, node page.Ref, s page.Setting) error {
	return d.note("set %s %d", node, *s.Index)
}

func (d *drawn) Elements(context.Context, int) ([]page.Node, error) {
	return []page.Node{{Ref: "r1", Tag: "button", Role: "button", Name: "Sign in <i>"},
		{Ref: "r2", Tag: "input", Role: "textbox", Name: "User", Editable: true}}, nil
}

func (d *drawn) Click(_ context.Context, n page.Ref) error   { return d.note("click %s", n) }
func (d *drawn) FocusOn(_ context.Context, n page.Ref) error { return d.note("focus %s", n) }
func (d *drawn) Navigate(_ context.Context, do string) error { return d.note("nav %s", do) }
func (d *drawn) Selection(context.Context) (string, error)   { return "words", nil }
func (d *drawn) Answer(_ context.Context, accept bool, text string) error {
	d.set(func(d *drawn) { d.facts.Dialog = nil })
	return d.note("answer %v %s", accept, text)
}

// A keeper is the surface around it.
type keeper struct{ released chan struct{} }

func (k *keeper) Taken(context.Context) error { return nil }
func (k *keeper) Released()                   { k.released <- struct{}{} }
func (k *keeper) Sealed() []page.Ref          { return nil }
func (k *keeper) Upload(_ context.Context, name string, _ int64) (view.Upload, error) {
	return &upload{name: name}, nil
}

type upload struct {
	bytes.Buffer
	name string
}

func (u *upload) Path() string { return fmt.Sprintf("%s of %d", u.name, u.Len()) }
func (u *upload) Done() error  { return nil }
func (u *upload) Erase()       {}

// tap touches a point of the screen.
func tap(t *testing.T, b *tab, x, y float64) {
	t.Helper()
	for _, p := range []input.DispatchTouchEventParams{
		{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: x, Y: y}}},
		{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}},
	} {
		if err := call(b, input.DispatchTouchEvent, p); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLiveView: the owner's page shows a browser and controls it, by pointer, by keys
// and without the picture; nothing violates the content security policy.
func TestLiveView(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "otp", "text": "Code?"})
	id := start(t, h.Client, "one")
	if _, err := h.Wait(soon(t), id, served.Asks); err != nil {
		t.Fatal(err)
	}
	screen := &drawn{color: color.RGBA{200, 0, 0, 255}, facts: page.Facts{Host: "bank.example"},
		viewport: page.Viewport{Width: 800, Height: 600, Scale: 1}, changed: make(chan struct{}, 1)}
	around := &keeper{released: make(chan struct{}, 10)}
	run := h.Service.Views().Begin(string(id), around, func(string, string, map[string]any) {})
	defer run.End()
	run.Asked("i1", "manual_action")
	b := signIn(t, h, false)
	b.open("/ui/runs/" + string(id))
	enter := func() {
		t.Helper()
		eval[any](b, fmt.Sprintf(
			`(() => { const x = document.createElement("button"); x.dataset.viewOpen = ""; x.dataset.run = %q; x.dataset.interaction = "i1"; document.body.append(x); x.click(); x.remove(); })()`, id))
	}
	said := func(text string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.querySelector("[data-view-said]").innerText.includes(%q)`, text))
	}

	// Without a browser yet, the page says so and offers to try again.
	enter()
	b.sees("Browser control is not available. The run has no live browser that could be shown.")
	if eval[bool](b, `!document.querySelector("[data-view-live]").hidden`) {
		t.Error("it shows a picture that is not there")
	}
	run.Up(screen)
	b.click(`[data-view-do="retry"]`)
	said("You are in control")
	b.sees("· <b>Bank</b>")
	red := func(r int) string {
		return fmt.Sprintf(
			`(() => { const c = document.querySelector("[data-view] canvas"); return c.width === 800 && Math.abs(c.getContext("2d").getImageData(400, 300, 1, 1).data[0] - %d) < 12 })()`, r)
	}
	b.until(red(200))
	screen.set(func(d *drawn) { d.color.R = 20 })
	b.until(red(20))

	// Pointer: in pixels of the page, however large the picture is here.
	click := func(x, y float64) {
		t.Helper()
		at := eval[[]float64](b,
			`(() => { const c = document.querySelector("[data-view] canvas"); c.scrollIntoView(); const r = c.getBoundingClientRect(); return [r.left, r.top, r.width / 800] })()`)
		b.do(chromedp.MouseClickXY(at[0]+x*at[2], at[1]+y*at[2]))
	}
	click(400, 300)
	screen.happened(t, "down 400,300 0")
	screen.happened(t, "up 400,300 0")
	b.do(chromedp.KeyEvent("aZ" + kb.Enter + kb.Tab))
	for _, want := range []string{"keydown a 0", "keyup a 0", "keydown Z 8", "keydown Enter 0", "keydown Tab 0"} {
		screen.happened(t, want)
	}
	eval[any](b, `(() => { const d = new DataTransfer(); d.setData("text/plain", "pasted"); document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: d, bubbles: true, cancelable: true })) })()`)
	screen.happened(t, "text pasted")
	eval[any](b, `(() => { const k = document.querySelector("[data-view-keys]"); for (const [n, d] of [["compositionstart", ""], ["compositionupdate", "か"], ["compositionend", "火"]]) k.dispatchEvent(new CompositionEvent(n, { data: d })); })()`)
	screen.happened(t, "compose 0,0 0")
	b.do(chromedp.KeyEvent(kb.F6)) // and out again
	b.until(`document.activeElement.closest("[data-view-insert]")`)
	b.shot("control")

	// Lists of the browser's own, dialogs, files.
	click(40, 40)
	b.until(`!document.querySelector("[data-view-choice]").hidden`)
	eval[any](b, `document.querySelector("[data-view-choice] select").value = "1"`)
	b.click("[data-view-choice] .primary")
	screen.happened(t, "set r 1")
	screen.set(func(d *drawn) {
		d.facts.Dialog = &page.Dialog{Type: "prompt", Host: "bank.example", Text: "Who <b>are</b> you?"}
	})
	b.sees("bank.example says")
	said("Who <b>are</b> you?")
	eval[any](b, `document.querySelector("[data-view-dialog] input").value = "me"`)
	b.click("[data-view-dialog] .primary")
	screen.happened(t, "answer true me")
	b.until(`document.querySelector("[data-view-dialog]").hidden`)
	screen.set(func(d *drawn) { d.choosing = true })
	b.until(`!document.querySelector("[data-view-file]").hidden`)
	eval[any](b, `(() => { const d = new DataTransfer(); d.items.add(new File([new Uint8Array(300000)], "a.pdf")); document.querySelector("[data-view-file] input").files = d.files })()`)
	b.click("[data-view-file] .primary")
	screen.happened(t, "choose [a.pdf of 300000]")

	// Without the picture.
	eval[any](b, `document.querySelector("[data-view-elements] summary").click()`)
	b.sees("Sign in <i>, button")
	b.click(`[data-view-list] [aria-label^="Click: Sign in"]`)
	screen.happened(t, "click r1")
	eval[any](b, `document.querySelector("[data-view-list] input").value = "me"`)
	b.click(`[data-view-list] [aria-label^="Type: User"]`)
	screen.happened(t, "focus r2")
	screen.happened(t, "text me")
	b.click(`[data-view-nav="reload"]`)
	screen.happened(t, "nav reload")
	screen.set(func(d *drawn) { d.facts.Host = "evil.example" })
	said("The page is now on evil.example")
	for _, f := range accessible(t, b) {
		t.Errorf("%s (%s): %s", f.ID, f.Impact, f.Help)
	}

	// Control is given back and taken again; another window; the loss of the surface.
	b.click(`[data-view-do="release"]`)
	<-around.released
	said("You gave control back. The question of the connector is still open.")
	b.until(`document.querySelector("[data-view-nav='back']").disabled`)
	b.click(`[data-view-do="take"]`)
	said("You are in control")
	other := b.beside()
	other.open("/ui/runs/" + string(id))
	eval[any](other, fmt.Sprintf(
		`(() => { const x = document.createElement("button"); x.dataset.viewOpen = ""; x.dataset.run = %q; x.dataset.interaction = "i1"; document.body.append(x); x.click() })()`, id))
	said("The view was opened again in another window")
	other.sees("evil.example")
	run.Down(view.ReasonLost)
	other.sees("The browser was lost. Nothing was submitted.")
	b.clean("the live view")

	// A phone: narrow, touched, without motion.
	run.Up(screen)
	if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 2, Mobile: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetTouchEmulationEnabled,
		emulation.SetTouchEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	b.media("dark")
	b.open("/ui/inbox")
	// where a key would close the question
	eval[any](b, `document.querySelector("#asks form button.primary").focus({preventScroll: true})`)
	enter()
	said("You are in control")
	screen.happened(t, "viewport 390 true")
	b.until(`document.querySelector("[data-view] canvas").width >= 390 && document.documentElement.scrollWidth <= 390`)
	b.until(`(() => { const c = document.querySelector("[data-view] canvas").getBoundingClientRect(), p = document.querySelector("[data-view-picture]").getBoundingClientRect();
		return c.left === 0 && c.width === 390 && c.height > 0.7 * innerHeight && p.top >= 0 && p.bottom <= innerHeight })()`)
	for _, f := range accessible(t, b) {
		t.Errorf("on a phone: %s (%s): %s", f.ID, f.Impact, f.Help)
	}
	b.shot("phone")

	// Two fingers make the picture larger and leave the page alone; a tap points where it shows.
	fingers := func(kind input.DispatchTouchEventType, apart float64) {
		t.Helper()
		p := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}}
		if kind != input.DispatchTouchEventTypeTouchEnd {
			for i, x := range []float64{195 - apart, 195 + apart} {
				id := float64(i)
				p.TouchPoints = append(p.TouchPoints, &input.TouchPoint{X: x, Y: 300, ID: &id})
			}
		}
		if err := call(b, input.DispatchTouchEvent, p); err != nil {
			t.Fatal(err)
		}
	}
	fingers(input.DispatchTouchEventTypeTouchStart, 50)
	screen.happened(t, "touchcancel")
	fingers(input.DispatchTouchEventTypeTouchMove, 75)
	fingers(input.DispatchTouchEventTypeTouchMove, 100)
	b.until(`(() => { const c = document.querySelector("[data-view] canvas").getBoundingClientRect(); return Math.abs(c.width - 780) < 20 && Math.abs((195 - c.left) / c.width - .5) < .05 })()`)
	fingers(input.DispatchTouchEventTypeTouchEnd, 0)
	b.shot("larger")
	fingers(input.DispatchTouchEventTypeTouchStart, 100)
	fingers(input.DispatchTouchEventTypeTouchMove, 20)
	b.until(`document.querySelector("[data-view] canvas").getBoundingClientRect().width === 390`)
	fingers(input.DispatchTouchEventTypeTouchEnd, 0)

	// A tap takes the keyboard. What is typed reaches the page, also when the focus was
	// lost meanwhile, and closes no question.
	place := eval[[]float64](b,
		`(() => { const r = document.querySelector("[data-view] canvas").getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2] })()`)
	tap(t, b, place[0], place[1])
	b.until(`document.activeElement.matches("[data-view-keys]")`)
	b.do(chromedp.KeyEvent("914207" + kb.Enter))
	for _, want := range []string{"keydown 9 0", "keydown 7 0", "keydown Enter 0"} {
		screen.happened(t, want)
	}
	eval[any](b, `(() => { const x = document.createElement("button"); x.id = "trap"; x.onclick = () => { window.sprung = true }; document.body.append(x); x.inert = false; document.querySelector("[data-view-keys]").blur(); })()`)
	b.do(chromedp.KeyEvent("1" + kb.Enter + " "))
	if eval[bool](b, `Boolean(window.sprung) || document.querySelector("input[name='f.code']").value !== ""`) {
		t.Error("what was typed into the page arrived outside of it")
	}
	if s, err := h.Snapshot(t.Context(), id); err != nil || s.Interrupt == nil {
		t.Errorf("the question was closed: %v", err)
	}
	b.click(`[data-view-do="close"]`)
	b.until(`document.querySelector("[data-view]").hidden && !document.querySelector("#asks").inert && !document.querySelector(".bar").inert`)
	b.clean("the live view on a phone")
}
