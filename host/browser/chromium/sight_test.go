package chromium_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/page"
)

// TestWhatNobodySees: elements and texts that are laid out and nowhere to be seen are
// not visible and say nothing; what can be scrolled to is, and does.
func TestWhatNobodySees(t *testing.T) {
	type styled struct {
		style string
		seen  bool
	}
	var styles []styled
	for style, seen := range map[string]bool{
		"":                                        true,
		"opacity:0":                               false,
		"opacity:0.5":                             true,
		"filter:opacity(0)":                       false,
		"visibility:hidden":                       false,
		"position:absolute;left:-9999px":          false,
		"position:absolute;top:-9999px":           false,
		"position:fixed;top:9999px":               false,
		"position:absolute;top:3000px":            true,
		"text-indent:-9999px;overflow:hidden":     false,
		"clip-path:inset(50%)":                    false,
		"clip-path:inset(1%)":                     true,
		"clip-path:circle(0)":                     false,
		"clip-path:circle(50%)":                   true,
		"clip-path:polygon(0 0,0 0,0 0)":          false,
		"clip-path:polygon(0 0,100% 0,100% 100%)": true,
		"position:absolute;clip:rect(0,0,0,0)":    false,
		"position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(1px,1px,1px,1px)": false,
		"width:0;height:0;overflow:hidden":                                                  false,
		"height:0;overflow:hidden":                                                          false,
		"transform:scale(0)":                                                                false,
		"transform:translateX(-3000px)":                                                     false,
		"font-size:0":                                                                       false,
	} {
		styles = append(styles, styled{style, seen})
	}
	kinds := map[string]string{
		"itself": `<p data-testid=%s style="%s">Saved</p>`,
		"within": `<div data-testid=%s>idle <span style="display:inline-block;%s">Saved</span></div>`,
		"around": `<div style="%[2]s"><p data-testid=%[1]s>Saved</p></div>`,
	}
	for where, body := range kinds {
		html := "<!doctype html>"
		for i, c := range styles {
			html += fmt.Sprintf(body, fmt.Sprint("x", i), c.style)
		}
		tab, ctx := open(t, written(html+"<p style='height:4000px'>"))
		nodes := map[string]page.Node{}
		o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{CSS: "[data-testid]"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range o.Nodes {
			nodes[n.TestID] = n
		}
		for i, c := range styles {
			n := nodes[fmt.Sprint("x", i)]
			says := n.Text == "Saved" || n.Text == "idle Saved"
			ofText := c.style == "font-size:0" || strings.HasPrefix(c.style, "text-indent")
			if says != c.seen || where == "itself" && !ofText && n.Visible != c.seen {
				t.Errorf("%s %s: visible %v, says %q", where, c.style, n.Visible, n.Text)
			}
		}
	}
	for name, c := range map[string]struct {
		body string
		seen bool
	}{
		"scrolled out of a list":     {`<div style="height:50px;overflow:auto"><p style="height:500px"></p><p data-testid=x>Saved</p></div>`, true},
		"cut off by its list":        {`<div style="height:50px;overflow:hidden"><p style="height:500px"></p><p data-testid=x>Saved</p></div>`, false},
		"list that nobody sees":      {`<div style="height:0;overflow:auto"><p data-testid=x>Saved</p></div>`, false},
		"menu that its bar cuts not": {`<div style="height:20px;overflow:hidden"><div data-testid=x style="position:absolute;top:100px">Saved</div></div>`, true},
		"notice over a page":         {`<div style="overflow:hidden;height:0"><div data-testid=x style="position:fixed;top:10px">Saved</div></div>`, true},
		"written from right to left": {`<script>document.documentElement.dir="rtl"</script><p data-testid=x>Saved</p>`,
			true},
		"far right":                   {`<p data-testid=x style="position:absolute;left:3000px">Saved</p>`, true},
		"far right, and cut":          {`<style>html{overflow-x:hidden}</style><p data-testid=x style="position:absolute;left:3000px">Saved</p>`, false},
		"in a frame":                  {`<iframe srcdoc="<p data-testid=x>Saved</p>"></iframe>`, true},
		"in a frame that nobody sees": {`<iframe style="opacity:0" srcdoc="<p data-testid=x>Saved</p>"></iframe>`, false},
		"in a frame off the page":     {`<iframe style="position:absolute;left:-2000px" srcdoc="<p data-testid=x>Saved</p>"></iframe>`, false},
		"of no height, and more":      {`<div style="height:0"><p data-testid=x>Saved</p></div>`, true},
	} {
		t.Run(name, func(t *testing.T) {
			tab, ctx := open(t, written("<!doctype html>"+c.body+"<p style='height:2000px'>"))
			var o *page.Observation
			for i := 0; i < 50 && (o == nil || o.Loading != nil); i++ {
				o = observed(t, ctx, tab)
			}
			if n := find(t, o, "x"); n.Visible != c.seen || (n.Text == "Saved") != c.seen {
				t.Errorf("visible %v, says %q", n.Visible, n.Text)
			}
		})
	}
}

// TestLeave: a control that was worked is left: the page gets focus, input, change and
// blur in the order in which a person causes them.
func TestLeave(t *testing.T) {
	const log = `<script>var log=[];for(const k of ["focus","input","change","blur"])document.addEventListener(k,e=>{log.push(k);document.title=log.join(" ")},true)</script>`
	dark, thirty := 1, 30.0
	for name, c := range map[string]struct {
		body string
		do   func(tab page.Tab, ref page.Ref) error
		want string
	}{
		"fill": {`<input data-testid=x>`, func(tab page.Tab, ref page.Ref) error {
			_, err := tab.Fill(t.Context(), ref, "a")
			return err
		}, "focus input change blur"},
		"keys": {`<textarea data-testid=x></textarea>`, func(tab page.Tab, ref page.Ref) error {
			_, err := tab.Keys(t.Context(), ref, "a", true)
			return err
		}, "focus input change blur"},
		"select": {`<select data-testid=x><option>a<option>b</select>`, func(tab page.Tab, ref page.Ref) error {
			_, err := tab.Set(t.Context(), ref, page.Setting{Index: &dark})
			return err
		}, "focus input change blur"},
		"adjust": {`<input type=range data-testid=x>`, func(tab page.Tab, ref page.Ref) error {
			_, err := tab.Set(t.Context(), ref, page.Setting{Number: &thirty})
			return err
		}, "focus input change blur"},
		"a field that suggests": {`<input role=combobox data-testid=x>`, func(tab page.Tab, ref page.Ref) error {
			_, err := tab.Fill(t.Context(), ref, "a")
			return err
		}, "focus input"},
		"a field that shows a list": {`<input data-testid=x oninput="l.hidden=false"><ul id=l hidden><li>abc</ul>`,
			func(tab page.Tab, ref page.Ref) error {
				_, err := tab.Fill(t.Context(), ref, "a")
				return err
			}, "focus input"},
		"a field that shows a word": {`<input data-testid=x oninput="l.textContent='unsaved'"><p id=l></p>`,
			func(tab page.Tab, ref page.Ref) error {
				_, err := tab.Fill(t.Context(), ref, "a")
				return err
			}, "focus input change blur"},
	} {
		t.Run(name, func(t *testing.T) {
			tab, ctx := open(t, written("<!doctype html>"+c.body+log))
			ref := find(t, observed(t, ctx, tab), "x").Ref
			if err := c.do(tab, ref); err != nil {
				t.Fatal(err)
			}
			if err := tab.Leave(ctx, ref); err != nil {
				t.Fatal(err)
			}
			if o := observed(t, ctx, tab); o.Title != c.want {
				t.Errorf("%q, want %q", o.Title, c.want)
			}
		})
	}
}

// TestSent: what a page tells its server is counted, and what it is made of is not.
func TestSent(t *testing.T) {
	for script, want := range map[string]int{
		``:                               0,
		`fetch("/x",{method:"POST"})`:    1,
		`navigator.sendBeacon("/x","y")`: 1,
		`new Image().src="/x?v=1"`:       1,
		`fetch("/poll")`:                 0, // again
		`fetch("/set?v=2")`:              1,
		`document.head.innerHTML+="<link rel=stylesheet href=/s.css>"`: 0,
	} {
		tab, ctx := open(t, written(`<!doctype html><input data-testid=x onblur='`+script+
			`;setTimeout(()=>document.title="done",50)'><script>fetch("/poll").finally(()=>document.title="ready")</script>`))
		titled := func(want string) (o *page.Observation) {
			for o == nil || o.Title != want {
				o = observed(t, ctx, tab)
			}
			return o
		}
		ref, mark := find(t, titled("ready"), "x").Ref, tab.Mark()
		if _, err := tab.Fill(ctx, ref, "a"); err != nil {
			t.Fatal(err)
		}
		if err := tab.Leave(ctx, ref); err != nil {
			t.Fatal(err)
		}
		titled("done")
		if got := tab.Happened(mark).Sent; got != want {
			t.Errorf("%s: %d, want %d", script, got, want)
		}
	}
}

// observed is a look at what has the test id x.
func observed(t *testing.T, ctx context.Context, tab page.Tab) *page.Observation {
	t.Helper()
	o, err := tab.Read(ctx, page.Query{Selectors: []page.Selector{{TestID: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func find(t *testing.T, o *page.Observation, id string) *page.Node {
	t.Helper()
	for i := range o.Nodes {
		if o.Nodes[i].TestID == id {
			return &o.Nodes[i]
		}
	}
	t.Fatalf("nothing has the test id %s", id)
	return nil
}
