package chromium_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Addresses are judged before they are loaded, on each hop, and when the proxy says
// so.
func TestNavigateRefuses(t *testing.T) {
	tab, ctx := open(t, "form.html")
	for _, c := range []struct {
		url  string
		want error
	}{
		{"file:///etc/passwd", page.ErrScheme}, {"chrome://version", page.ErrScheme}, {"data:text/html,x", page.ErrScheme},
		{"javascript:1", page.ErrScheme}, {"view-source:http://one.test/", page.ErrScheme}, {"http:", page.ErrScheme},
		{"ftp://one.test/", page.ErrScheme}, {"one.test", page.ErrScheme}, {"http://forbidden.test/", page.ErrHost},
		{"http://denied.test/", page.ErrHost}, {"http://one.test/to?url=http://forbidden.test/x", page.ErrHost},
		{"http://one.test/to?url=http://two.test/to?url=http://denied.test/", page.ErrHost},
		{"https://one.test/", page.ErrNavigation}, // the server speaks no TLS
	} {
		before := tab.Facts().Document
		n, err := tab.Navigate(ctx, c.url, "load")
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %v", c.url, n, err, c.want)
		}
		if c.want == page.ErrScheme && tab.Facts().Document != before {
			t.Errorf("%s was sent to the browser", c.url)
		}
	}
	if n, err := tab.Navigate(ctx, "http://one.test/to?url=http://two.test/inner.html", "dom"); err != nil ||
		n.Host != "two.test" || n.Status != 200 || n.Redirects != 1 || n.SameDocument {
		t.Errorf("%+v, %v", n, err)
	}
	if f := tab.Facts(); f.URL != "http://two.test/inner.html" || f.Host != "two.test" {
		t.Errorf("%+v", f)
	}
}

// A page that goes where it may not is taken back, and it is told.
func TestPagesThatLeave(t *testing.T) {
	tab, ctx := open(t, written(
		`<a id=a href="http://forbidden.test/x">a</a><a id=b href="mailto:x@y.z">b</a><a id=c href="http://denied.test/">c</a>`))
	for _, c := range []struct {
		css  string
		want error
	}{{"#b", nil}, {"#a", page.ErrHost}} {
		mark := tab.Mark()
		n := look(t, ctx, tab, c.css)[0]
		if _, err := tab.Click(ctx, page.Click{At: n.Bounds.Center()}); err != nil {
			t.Fatal(err)
		}
		h := eventually(t, tab, mark, func(h page.Happened) bool { return len(h.Refused) > 0 || h.Dropped > 0 })
		if c.want != nil && !errors.Is(h.Refused[0], c.want) || c.want == nil && h.Dropped != 1 || len(h.Loaders) > 0 {
			t.Errorf("%s: %+v", c.css, h)
		}
	}
	until(t, shared.browser, "the page is back where it was", func() bool { return tab.Facts().Host == "one.test" })
}

// eventually waits until the past of a tab is as wanted.
func eventually(t *testing.T, tab page.Tab, mark page.Mark, is func(page.Happened) bool) page.Happened {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range 6000 { // a minute
		if h := tab.Happened(mark); is(h) {
			return h
		}
		<-look.C
	}
	t.Fatalf("never: %+v", tab.Happened(mark))
	return page.Happened{}
}

func TestHistory(t *testing.T) {
	tab, ctx := open(t, "form.html")
	if _, err := tab.Navigate(ctx, "http://one.test/form.html#there", "load"); err != nil {
		t.Fatal(err)
	}
	mark, document := tab.Mark(), tab.Facts().Document
	if n, err := tab.History(ctx, "back", "load"); err != nil || !n.SameDocument || tab.Facts().Document != document ||
		tab.Facts().URL != "http://one.test/form.html" {
		t.Errorf("back: %+v, %v, %+v", n, err, tab.Facts())
	}
	if h := tab.Happened(mark); !h.Moved || len(h.Loaders) != 0 {
		t.Errorf("%+v", h)
	}
	if _, err := tab.Navigate(ctx, "http://two.test/inner.html", "load"); err != nil {
		t.Fatal(err)
	}
	if n, err := tab.History(ctx, "back", "dom"); err != nil || n.Host != "one.test" {
		t.Errorf("back to another document: %+v, %v", n, err)
	}
	look(t, ctx, tab, "#email") // it can be read there
	if n, err := tab.History(ctx, "reload", "load"); err != nil || n.Status != 200 {
		t.Errorf("reload: %+v, %v", n, err)
	}
	if _, err := tab.History(ctx, "forward", "load"); err != nil {
		t.Error(err)
	}
	if _, err := tab.History(ctx, "forward", "load"); !errors.Is(err, page.ErrNavigation) {
		t.Errorf("forward from the end: %v", err)
	}
}

// A server that does not answer, and a page that is busy for ever, hold nobody
// longer than the context.
func TestBounded(t *testing.T) {
	tab, ctx := open(t, "form.html")
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := tab.Navigate(short, "http://one.test/slow", "load"); !errors.Is(err, page.ErrHung) {
		t.Error(err)
	}
	n := look(t, ctx, tab, "#email")[0]
	if err := shared.browser.Activate(ctx, tab.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.browser.Eval(ctx, `setTimeout(() => { for (;;); }, 0), 1`); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context) error{
		"read":  func(ctx context.Context) error { _, err := tab.Read(ctx, page.Query{}); return err },
		"ready": func(ctx context.Context) error { _, err := tab.Ready(ctx, n.Ref, page.Point{}); return err },
		"click": func(ctx context.Context) error { _, err := tab.Click(ctx, page.Click{}); return err },
		"fill":  func(ctx context.Context) error { _, err := tab.Fill(ctx, n.Ref, "x"); return err },
		"still": func(ctx context.Context) error { _, err := tab.Screenshot(ctx, page.Shot{}); return err },
	} {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		if err := call(short); !errors.Is(err, page.ErrHung) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if err := shared.browser.Interrupt(ctx); err != nil {
		t.Fatal(err)
	}
	look(t, ctx, tab, "#email")
}

// Every dispatch races a dialog.
func TestDialogs(t *testing.T) {
	tab, ctx := open(t, written(`<button id=a onclick="this.textContent=confirm('really?')">ask</button>`))
	n := look(t, ctx, tab, "#a")[0]
	click := page.Click{At: n.Bounds.Center()}
	for _, c := range []struct {
		policy page.DialogPolicy
		text   string
		answer string
	}{{page.DialogDismiss, "false", "dismissed"}, {page.DialogAccept, "true", "accepted"}} {
		tab.OnDialog(c.policy, nil)
		mark := tab.Mark()
		if d, err := tab.Click(ctx, click); err != nil || !d.Sent {
			t.Fatal(d, err)
		}
		if got := look(t, ctx, tab, "#a")[0].Text; got != c.text {
			t.Errorf("%v: %q", c.policy, got)
		}
		if h := tab.Happened(mark); len(h.Dialogs) != 1 || h.Dialogs[0].Answer != c.answer ||
			h.Dialogs[0].Type != "confirm" || h.Dialogs[0].Length != 7 || h.Dialogs[0].Host != "one.test" {
			t.Errorf("%+v", h)
		}
	}
	tab.OnDialog(page.DialogKeep, nil)
	if d, err := tab.Click(ctx, click); !errors.Is(err, page.ErrDialog) || !d.Sent || d.Trusted != -1 {
		t.Errorf("%+v, %v", d, err)
	}
	if f := tab.Facts(); f.Dialog == nil || f.Dialog.Text != "really?" {
		t.Errorf("%+v", f)
	}
	if _, err := tab.Read(ctx, page.Query{}); !errors.Is(err, page.ErrDialog) {
		t.Error(err)
	}
	if err := tab.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	if got := look(t, ctx, tab, "#a")[0].Text; got != "true" {
		t.Error(got)
	}
	if err := tab.Answer(ctx, true, ""); !errors.Is(err, page.ErrNoDialog) {
		t.Error(err)
	}
}

func TestPopupsAndDownloads(t *testing.T) {
	tab, ctx := open(t, written(
		`<button id=a onclick="window.open('http://two.test/inner.html')">new</button><a id=b href=/file>file</a>`))
	n := look(t, ctx, tab, "#a", "#b")
	mark := tab.Mark()
	if _, err := tab.Click(ctx, page.Click{At: n[0].Bounds.Center()}); err != nil {
		t.Fatal(err)
	}
	h := eventually(t, tab, mark, func(h page.Happened) bool { return len(h.Popups) > 0 })
	all := shared.browser.Tabs()
	i := slices.IndexFunc(all, func(other page.Tab) bool { return other.ID() == h.Popups[0].Tab })
	if i < 0 {
		t.Fatalf("%+v", h)
	}
	if got := inside(t, all[i], 1, ".in"); got[0].Origin != "http://two.test" {
		t.Errorf("%+v", got)
	}
	if err := all[i].Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := all[i].Read(ctx, page.Query{}); !errors.Is(err, page.ErrLost) {
		t.Errorf("a closed tab: %v", err)
	}
	mark = tab.Mark()
	if _, err := tab.Click(ctx, page.Click{At: n[1].Bounds.Center()}); err != nil {
		t.Fatal(err)
	}
	h = eventually(t, tab, mark, func(h page.Happened) bool { return len(h.Downloads) > 0 })
	if d := h.Downloads[0]; !d.Denied || d.Name != "a.csv" || d.Host != "one.test" || d.Path != "" || d.Done {
		t.Errorf("%+v", d)
	}
}

// A page that changes its address without a document, and one that asks the
// network.
func TestWithinDocument(t *testing.T) {
	tab, ctx := open(t, written(
		`<button id=a onclick="history.pushState(0,'','/next?x=1');fetch('/Some/Path/?q=1').then(r=>console.log('status',r.status,{a:1}))">go</button>`))
	n := look(t, ctx, tab, "#a")[0]
	mark, document := tab.Mark(), tab.Facts().Document
	if _, err := tab.Click(ctx, page.Click{At: n.Bounds.Center()}); err != nil {
		t.Fatal(err)
	}
	h := eventually(t, tab, mark, func(h page.Happened) bool { return h.Moved })
	if f := tab.Facts(); f.URL != "http://one.test/next?x=1" || f.Document != document || len(h.Loaders) != 0 {
		t.Errorf("%+v %+v", f, h)
	}
	if r, err := tab.Ready(ctx, n.Ref, page.Point{X: 0.5, Y: 0.5}); err != nil || r.Fault != "" {
		t.Errorf("its nodes are gone: %q, %v", r.Fault, err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range 6000 { // a minute
		if seen, lines := tab.Requests(mark), tab.Console(5); len(seen) == 1 && seen[0].Status == 404 && len(lines) > 0 {
			if seen[0] != (page.RequestSeen{Endpoint: "/some/path", Method: "GET", Status: 404, Verdict: "failure"}) {
				t.Errorf("%+v", seen[0])
			}
			if slices.ContainsFunc(lines,
				func(l page.ConsoleLine) bool { return l.Text == "status 404 Object" && l.Level == "log" }) {
				return
			}
		}
		<-look.C
	}
	t.Errorf("%+v %+v", tab.Requests(mark), tab.Console(5))
}
