package chromium_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// watched opens a page in the active tab and returns the screen.
func watched(t *testing.T, address string) (page.Screen, page.Tab, context.Context) {
	t.Helper()
	tab, ctx := open(t, address)
	if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
		t.Fatal(err)
	}
	return shared.browser.Screen(), tab, ctx
}

// Frames come as fast as a page animates, none is kept back, and they go on after a
// navigation to another site.
func TestCast(t *testing.T) {
	screen, tab, ctx := watched(t, "moving.html")
	cast, stop := context.WithCancel(ctx)
	frames := make(chan page.Frame, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- screen.Cast(cast, page.Cast{Quality: 60, EveryN: 1}, func(f page.Frame) { frames <- f })
	}()
	several := func(width int) (last page.Frame) { // waits for ten new ones of the width
		for len(frames) > 0 {
			<-frames
		}
		end := time.After(time.Minute)
		for n := 0; n < 10; {
			select {
			case last = <-frames:
				if last.Viewport.Width == width {
					n++
				}
			case err := <-ended:
				t.Fatal(err)
			case <-end:
				t.Fatalf("%d frames of %d pixels, the last of %+v", n, width, last.Viewport)
			}
		}
		return last
	}
	if f := several(1000); f.Viewport.Height != 700 || f.Scale != 1 || len(f.Data) < 1000 || f.At.IsZero() {
		t.Errorf("a frame of %+v at %v, %d bytes", f.Viewport, f.Scale, len(f.Data))
	}
	if _, err := tab.Navigate(ctx, "http://two.test/moving.html", "load"); err != nil {
		t.Fatal(err)
	}
	several(1000)
	if err := screen.SetViewport(ctx, page.Viewport{Width: 400, Height: 600}); err != nil {
		t.Fatal(err)
	}
	if f := several(400); f.Viewport.Height != 600 || screen.Viewport().Width != 400 {
		t.Errorf("a frame of %+v", f.Viewport)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if f, err := screen.Still(ctx, 90); err != nil || f.Viewport.Width != 400 || f.Scale != 1 {
		t.Errorf("%+v, %v", f.Viewport, err)
	}
}

// What the owner does arrives as a person's input.
func TestOwnersInput(t *testing.T) {
	screen, tab, ctx := watched(t, "form.html")
	n := look(t, ctx, tab, "#email", "#terms")
	at := n[0].Bounds.Center()
	for _, in := range []page.Input{
		{Kind: "move", At: at}, {Kind: "down", At: at}, {Kind: "up", At: at},
		{Kind: "keydown", Key: "a", Code: "KeyA"}, {Kind: "keyup", Key: "a", Code: "KeyA"},
		{Kind: "keydown", Key: "B", Modifiers: 8}, {Kind: "keyup", Key: "B", Modifiers: 8},
		{Kind: "text", Text: "ä€"}, {Kind: "compose", Text: "ni", Start: 2, End: 2},
		{Kind: "compose", Text: "你", Commit: true}, {Kind: "keydown", Key: "Backspace"}, {Kind: "keyup", Key: "Backspace"},
		{Kind: "wheel", At: at, DY: 1}, {Kind: "touchstart", At: at, TouchID: 1}, {Kind: "touchend"},
	} {
		if err := screen.Input(ctx, in); err != nil {
			t.Fatalf("%+v: %v", in, err)
		}
	}
	if got := *look(t, ctx, tab, "#email")[0].State.TextValue; got != "aBä€" {
		t.Errorf("%q", got)
	}
	for _, in := range []page.Input{{Kind: "keydown", Key: "F12"}, {Kind: "keydown", Key: "i", Modifiers: 2 | 8},
		{Kind: "keydown", Key: "t", Modifiers: 2}, {Kind: "keydown"}, {Kind: "open"}} {
		if err := screen.Input(ctx, in); !errors.Is(err, page.ErrKey) {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if err := screen.Input(ctx,
		page.Input{Kind: "click", At: look(t, ctx, tab, "#terms")[0].Bounds.Center()}); err != nil {
		t.Fatal(err)
	}
	if !*look(t, ctx, tab, "#terms")[0].State.Checked {
		t.Error("a click did nothing")
	}
	for _, in := range []page.Input{{Kind: "dblclick", At: at}, {Kind: "keydown", Key: "a", Code: "KeyA", Modifiers: 2},
		{Kind: "keyup", Key: "a", Code: "KeyA", Modifiers: 2}} {
		if err := screen.Input(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := screen.Selection(ctx); err != nil || s != "aBä€" {
		t.Errorf("selected: %q, %v", s, err)
	}
}

func TestOwnersControls(t *testing.T) {
	screen, tab, ctx := watched(t, "form.html")
	n := look(t, ctx, tab, "#theme", "#pw", "#file", "#far", "#email")
	c, is, err := screen.Control(ctx, n[0].Bounds.Center())
	if err != nil || !is || c.ID != "theme" || len(c.Options) != 3 || c.Bounds != n[0].Bounds {
		t.Fatal(c, is, err)
	}
	if err := screen.Set(ctx, c.Ref, page.Setting{Option: new("light")}); err != nil {
		t.Fatal(err)
	}
	if _, is, err := screen.Control(ctx, n[1].Bounds.Center()); is || err != nil {
		t.Error(is, err)
	}
	if boxes, err := screen.Secrets(ctx, []page.Ref{n[4].Ref}); err != nil || len(boxes) != 2 || boxes[0] != n[4].Bounds ||
		boxes[1] != n[1].Bounds {
		t.Error(boxes, err)
	}
	if all, err := screen.Elements(ctx, 5); err != nil || len(all) != 5 {
		t.Error(all, err)
	}
	if title, err := screen.Title(ctx); err != nil || title != "A form" {
		t.Error(title, err)
	}
	if err := screen.Click(ctx, n[2].Ref); err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for i := 0; !screen.Choosing(); i++ {
		if <-look.C; i > 6000 { // a minute
			t.Fatal("no file is asked for")
		}
	}
	dir, err := os.MkdirTemp("", "sluice-files-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "one.txt")
	for _, err := range []error{os.Chmod(dir, 0o755), os.WriteFile(path, []byte("x"), 0o644),
		screen.Choose(ctx, []string{path})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if f := nodeOf(t, ctx, tab, "#file"); len(f.Files) != 1 || screen.Choosing() {
		t.Errorf("%+v", f.Files)
	}
	if err := screen.Choose(ctx, nil); !errors.Is(err, page.ErrGone) {
		t.Error(err)
	}
	if err := screen.FocusOn(ctx, n[4].Ref); err != nil || !*nodeOf(t, ctx, tab, "#email").State.Focused {
		t.Error(err)
	}
	if err := screen.Navigate(ctx, "reload"); err != nil {
		t.Error(err)
	}
	if err := screen.Navigate(ctx, "stop"); err != nil {
		t.Error(err)
	}
}

func nodeOf(t *testing.T, ctx context.Context, tab page.Tab, css string) page.Node {
	t.Helper()
	return look(t, ctx, tab, css)[0]
}
