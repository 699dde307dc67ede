package chromium_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

func TestExtract(t *testing.T) {
	tab, ctx := open(t, "table.html")
	n := look(t, ctx, tab, "#t", "#p", "#v")
	items := []page.Item{
		{Name: "rows", Take: "table", Refs: []page.Ref{n[0].Ref}},
		{Name: "some", Take: "table", Refs: []page.Ref{n[0].Ref}, Columns: []string{"amount", "None"}},
		{Name: "text", Take: "text", Refs: []page.Ref{n[1].Ref}},
		{Name: "class", Take: "attribute", Refs: []page.Ref{n[1].Ref, n[0].Ref}, Attribute: "class"},
		{Name: "value", Take: "value", Refs: []page.Ref{n[2].Ref}},
		{Name: "links", Take: "links"},
		{Name: "ld", Take: "jsonld"},
	}
	x, err := tab.Extract(ctx, items)
	if err != nil || x.Truncated || x.Observation == nil || x.Observation.Revision == 0 {
		t.Fatal(x, err)
	}
	for name, want := range map[string]string{
		"rows":  `[{"columns":["Date","Amount"],"rows":[["Mon","1"],["Mon","2"],["both","both"]]}]`,
		"some":  `[{"columns":["amount","None"],"rows":[["1",""],["2",""],["both",""]]}]`,
		"text":  `["some words"]`,
		"class": `["c",null]`,
		"value": `["typed"]`,
		"links": `[[{"text":"here","url":"http://one.test/a?b=1"}]]`,
		"ld":    `[{"values":[{"@type":"Thing"}],"invalid":1}]`,
	} {
		got, _ := json.Marshal(x.Items[name])
		if string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestSetScrollAndFiles(t *testing.T) {
	tab, ctx := open(t, "form.html")
	n := look(t, ctx, tab, "#theme", "#volume", "#terms", "#box", "#file", "#plain")
	for i, s := range []page.Setting{{Option: new("light")}, {Number: new(8.0)}, {Check: new(true)}} {
		if d, err := tab.Set(ctx, n[i].Ref, s); err != nil || !d.Sent {
			t.Error(i, d, err)
		}
	}
	m := look(t, ctx, tab, "#theme", "#volume", "#terms", "#out")
	if m[0].State.Selected.ID != "light" || *m[1].State.Value != 8 || !*m[2].State.Checked || m[3].Text != "theme light" {
		t.Errorf("%+v %+v %+v %q", m[0].State, m[1].State, m[2].State, m[3].Text)
	}
	if _, err := tab.Set(ctx, n[0].Ref, page.Setting{Option: new("none")}); !errors.Is(err, page.ErrGone) {
		t.Error(err)
	}
	for _, i := range []int{0, 5} {
		if d, err := tab.Set(ctx, n[i].Ref, page.Setting{Option: new("x")}); !errors.Is(err, page.ErrKind) || d.Sent {
			t.Error(d, err)
		}
	}
	if by, _, err := tab.Scroll(ctx, n[3].Ref, 0, 0.5); err != nil || by != (page.Point{Y: 50}) {
		t.Error(by, err)
	}
	if by, _, err := tab.Scroll(ctx, "", 0, 100); err != nil || by.Y < 1000 {
		t.Error(by, err)
	}
	if by, _, err := tab.Scroll(ctx, "", 0, 0.5); err != nil || by.Y != 0 {
		t.Error(by, err)
	}
	dir, err := os.MkdirTemp("", "sluice-files-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "a b.txt")
	for _, err := range []error{os.Chmod(dir, 0o755), os.WriteFile(path, []byte("x"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if d, err := tab.Files(ctx, n[4].Ref, []string{path}); err != nil || !d.Sent {
		t.Fatal(d, err)
	}
	if f := look(t, ctx, tab, "#file")[0]; len(f.Files) != 1 || f.Files[0] != "a b.txt" || !f.Multiple {
		t.Errorf("%+v", f)
	}
	if _, err := tab.Files(ctx, n[5].Ref, []string{path}); !errors.Is(err, page.ErrKind) {
		t.Error(err)
	}
}

// What is covered is not in the picture.
func TestScreenshotCovers(t *testing.T) {
	tab, ctx := open(t, written(
		`<body style="margin:0"><div id=a style="width:100px;height:50px;background:rgb(255,0,0)"></div><div style="width:9px;height:2000px;background:rgb(0,0,255)"></div>`))
	red := func(p page.Picture) (n int) {
		img, _, err := image.Decode(bytes.NewReader(p.Data))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() != p.Width || b.Dy() != p.Height {
			t.Errorf("%v is not %d by %d", b, p.Width, p.Height)
		}
		for y := range p.Height {
			for x := range p.Width {
				if r, g, _, _ := img.At(x, y).RGBA(); r > 0xd000 && g < 0x4000 {
					n++
				}
			}
		}
		return n
	}
	n := look(t, ctx, tab, "#a")[0]
	for _, s := range []page.Shot{{Format: "png"}, {Format: "jpeg", Quality: 80}, {Format: "png", Full: true},
		{Format: "png", Clip: &page.Box{X: 50, W: 100, H: 100}}} {
		open, err := tab.Screenshot(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		s.Cover = []page.Ref{n.Ref}
		covered, err := tab.Screenshot(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		if red(open) < 2000 || red(covered) != 0 {
			t.Errorf("%+v: %d red pixels, %d when covered", s, red(open), red(covered))
		}
		if s.Full && covered.Height < 2000 || !s.Full && s.Clip == nil && covered.Height != 700 {
			t.Errorf("%+v is %d high", s, covered.Height)
		}
	}
}

// The revision rises with what a page says, and with nothing else.
func TestRevision(t *testing.T) {
	tab, ctx := open(t, written(
		`<p id=a>text</p><p id=clock>12:00:01</p><p id=age>3 minutes ago</p><input id=i><ul id=l><li>1</ul><div id=d style="display:none">more</div>`))
	if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
		t.Fatal(err)
	}
	var began time.Time // when it was read last
	read := func() *page.Observation {
		began = time.Now()
		o, err := tab.Read(ctx, page.Query{Digests: true})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	last := read()
	for _, c := range []struct {
		script string
		rises  bool
		print  bool // the fingerprint changes
	}{
		{`1`, false, false}, {`clock.textContent="12:00:02"`, false, false},
		{`age.textContent="4 minutes ago"`, false, false}, {`i.focus()`, false, false},
		{`a.style.transform="translateX(9px)"`, false, false}, {`a.textContent="other"`, true, true},
		{`i.value="x"`, true, false}, {`l.append(document.createElement("li"))`, true, true},
		{`d.style.display=""`, true, true}, {`i.disabled=true`, true, false},
	} {
		if _, err := shared.browser.Eval(ctx, c.script); err != nil {
			t.Fatal(err)
		}
		o := read()
		if rose := o.Revision > last.Revision; rose != c.rises || o.Revision < last.Revision ||
			(o.Fingerprint != last.Fingerprint) != c.print {
			t.Errorf("%s: %d after %d, %s after %s", c.script, o.Revision, last.Revision, o.Fingerprint, last.Fingerprint)
		}
		last = o
	}
	if at := last.CapturedAt; at.Before(began.Add(-50 * time.Millisecond)) { // the page's clock is coarse
		t.Errorf("captured at %v, and asked for at %v", at, began)
	}
	if _, err := tab.History(ctx, "reload", "load"); err != nil {
		t.Fatal(err)
	}
	if o := read(); o.Revision <= last.Revision || o.Document == last.Document {
		t.Error("a new document is no new revision")
	}
}

// A page of 100,000 nodes answers in time, or says that it did not look at all of it.
// The fastest of three reads counts: the first may meet a page that is still laid out.
func TestHuge(t *testing.T) {
	tab, ctx := open(t, "huge.html?100000")
	for range 3 {
		o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{Name: "row 50"}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Nodes) == 0 || len(o.Nodes) > 2000 || len(o.Nodes) < 1000 && !o.Truncated {
			t.Errorf("%d nodes, truncated %v", len(o.Nodes), o.Truncated)
		}
	}
	// A look has a time of its own: a slow machine shows fewer, and says so.
	if o, err := tab.Read(ctx, page.Query{All: true, Limit: 256}); err != nil || len(o.Nodes) == 0 ||
		len(o.Nodes) > 256 || !o.Truncated {
		t.Error(err, len(o.Nodes))
	}
}

func TestSelectors(t *testing.T) {
	tab, ctx := open(t, "form.html")
	for want, s := range map[string]page.Selector{
		"email": {Label: "e-mail ADDRESS"}, "notes": {Name: "note"}, "theme": {Role: "combobox"},
		"inside": {Text: "Listening  WORDS"}, "deep": {Query: "deep"}, "volume": {Query: "slider"},
		"unseen": {Text: "Unseen", Name: "unseen", ID: "unseen"}, "pw": {CSS: "input[type=password]"},
		"file": {Name: "papers"}, "terms": {Label: "i agree"},
	} {
		o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{s}})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, n := range o.Nodes {
			found = found || n.ID == want
		}
		if !found {
			t.Errorf("%+v: no %s among %d nodes", s, want, len(o.Nodes))
		}
		if len(o.Nodes) > 40 {
			t.Errorf("%+v: %d nodes", s, len(o.Nodes))
		}
	}
	if _, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: "a[["}}}); !errors.Is(err, page.ErrSelector) {
		t.Error(err)
	}
	o, err := tab.Read(ctx, page.Query{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Nodes) < 20 || o.Title != "A form" || o.Viewport.Width != 1000 || o.URL != "http://one.test/form.html" ||
		strings.Contains(fmt.Sprint(o.Nodes), "Unseen") {
		t.Errorf("%d nodes, %q, %+v, %s", len(o.Nodes), o.Title, o.Viewport, o.URL)
	}
}

// A page's scripts see nothing of the world that reads it, and a list that is
// made anew gives new references.
func TestPagesDoNotSee(t *testing.T) {
	tab, ctx := open(t, written(`<ul id=l><li class=x>one</li></ul><script>before = Object.getOwnPropertyNames(window).length; seen = 0;
		new MutationObserver(() => seen++).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		Object.defineProperty(HTMLElement.prototype, "innerText", {get() { seen++; return "" }});
		Element.prototype.getBoundingClientRect = function() { seen++; return {} };</script>`))
	if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
		t.Fatal(err)
	}
	n := look(t, ctx, tab, ".x")[0]
	if _, err := tab.Ready(ctx, n.Ref, page.Point{X: 0.5, Y: 0.5}); err != nil {
		t.Fatal(err)
	}
	got, err := shared.browser.Eval(ctx,
		`[typeof sluice, seen, Object.getOwnPropertyNames(window).length - before].join(" ")`)
	if err != nil || got != `"undefined 0 2"` { // the two are before and seen
		t.Error(got, err)
	}
	if _, err := shared.browser.Eval(ctx, `l.innerHTML = l.innerHTML`); err != nil {
		t.Fatal(err)
	}
	if m := look(t, ctx, tab, ".x")[0]; m.Ref == n.Ref {
		t.Error("another node has its reference")
	}
	if r, err := tab.Ready(ctx, n.Ref, page.Point{}); err != nil || r.Fault != "detached" {
		t.Error(r.Fault, err)
	}
}
