package chromium_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"testing"

	"github.com/chromedp/cdproto"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

// secretField is a field that is red wherever it is, with what a page does to it.
func secretField(script string) string {
	return `<body style="margin:0"><style>#a{position:absolute;left:0;top:0;width:120px;height:60px;border:0;background:rgb(255,0,0)}</style>
<input id=a value=secret><button id=go style="position:absolute;top:400px">go</button><script>const a=document.getElementById('a');` + script + `</script>`
}

func redPixels(t *testing.T, p page.Picture) (n int) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(p.Data))
	if err != nil {
		t.Fatal(err)
	}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if r, g, _, _ := img.At(x, y).RGBA(); r > 0xd000 && g < 0x4000 {
				n++
			}
		}
	}
	return n
}

// A field that holds a secret is in no picture, wherever the page moves it and
// whatever it does against being hidden.
func TestScreenshotHidesMovingSecrets(t *testing.T) {
	for name, script := range map[string]string{
		"each frame":   `let i=0;(function f(){i++;a.style.left=(i%2?600:10)+'px';a.style.top=(i*37%300)+'px';requestAnimationFrame(f)})()`,
		"animation":    `a.animate([{transform:'translate(0,0)'},{transform:'translate(700px,300px)'}],{duration:90,iterations:Infinity,direction:'alternate',easing:'steps(2)'})`,
		"its parent":   `const d=document.createElement('div');document.body.append(d);d.append(a);let i=0;setInterval(()=>{d.style.transform='translate('+(++i%2?500:3)+'px,'+(i*53%300)+'px)'},1)`,
		"undoing":      `new MutationObserver(()=>{a.style.removeProperty('opacity')}).observe(a,{attributes:true})`,
		"undone, back": `(function f(){const o=a.style.opacity;a.style.setProperty('opacity','1','important');requestAnimationFrame(()=>{if(o)a.style.setProperty('opacity',o,'important');f()})})()`,
		"transition":   `a.style.transition='opacity 9s'`,
		"important":    `document.head.insertAdjacentHTML('beforeend','<style>#a{opacity:1!important;transition:opacity 9s!important}</style>')`,
		"selection":    `document.head.insertAdjacentHTML('beforeend','<style>#a::selection{color:red;background:red}</style>');a.select()`,
	} {
		t.Run(name, func(t *testing.T) {
			tab, ctx := open(t, written(secretField(script)))
			if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
				t.Fatal(err)
			}
			n := look(t, ctx, tab, "#a")[0]
			for range 3 {
				p, err := tab.Screenshot(ctx, page.Shot{Format: "png", Cover: []page.Ref{n.Ref}})
				if err != nil {
					t.Fatal(err)
				}
				if reds := redPixels(t, p); reds > 0 {
					t.Fatalf("%d pixels of it are in the picture", reds)
				}
			}
			p, err := tab.Screenshot(ctx, page.Shot{Format: "png"})
			if err != nil {
				t.Fatal(err)
			}
			if redPixels(t, p) == 0 {
				t.Error("it is not drawn again")
			}
		})
	}
}

// Hiding leaves a field as it was: its style, and the focus.
func TestScreenshotLeavesNothing(t *testing.T) {
	tab, ctx := open(t, written(secretField(`a.focus();a.onblur=()=>{a.title='blurred'}`)))
	if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
		t.Fatal(err)
	}
	n := look(t, ctx, tab, "#a")[0]
	p, err := tab.Screenshot(ctx, page.Shot{Format: "png", Cover: []page.Ref{n.Ref}})
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(p.Data))
	if err != nil {
		t.Fatal(err)
	}
	if grey := img.At(60, 30); !isGrey(img, 60, 30) {
		t.Errorf("in its place is %v", grey)
	}
	if isGrey(img, 500, 300) {
		t.Error("all of the picture is covered")
	}
	o, err := tab.Read(ctx, page.Query{Refs: []page.Ref{n.Ref}, Attributes: []string{"style", "title"}})
	if err != nil || len(o.Nodes) == 0 {
		t.Fatal(o, err)
	}
	for _, now := range o.Nodes {
		if now.Ref == n.Ref && (len(now.Attributes) != 0 || now.State.Focused == nil || !*now.State.Focused) {
			t.Errorf("%+v", now)
		}
	}
}

func isGrey(img image.Image, x, y int) bool {
	r, g, b, _ := img.At(x, y).RGBA()
	return r == g && g == b && r>>8 == 0x55
}

// That the browser has no picture of a page is the page's doing, whatever it calls it.
func TestUndrawn(t *testing.T) {
	for message, code := range map[string]int64{"Cannot take screenshot with 0 width.": -32000,
		"Unable to capture screenshot": -32000, "Internal error": -32603} {
		if err := chromium.Unpictured(&cdproto.Error{Code: code, Message: message}); !errors.Is(err, page.ErrUndrawn) {
			t.Errorf("%s: %v", message, err)
		}
	}
	for message, code := range map[string]int64{"Invalid parameters": -32602, "Not attached to an active page": -32603} {
		if err := chromium.Unpictured(&cdproto.Error{Code: code, Message: message}); errors.Is(err, page.ErrUndrawn) {
			t.Errorf("%s: %v", message, err)
		}
	}
}
