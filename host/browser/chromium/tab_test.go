package chromium_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A world under test: one browser for all tests of tabs, and one server with several
// names, which the browser reaches through it as its proxy.
var shared struct {
	once    sync.Once
	browser *chromium.Browser
	server  *httptest.Server
	stop    func()
	err     error
}

// allowed is what the tabs of the shared browser may load.
func allowed(address string) error {
	if strings.HasPrefix(address, "http://forbidden.test/") {
		return page.ErrHost
	}
	return nil
}

func shareBrowser() {
	shared.stop = func() {}
	shared.server = httptest.NewServer(http.HandlerFunc(serve))
	dir, err := os.MkdirTemp("", "sluice-tab-")
	if err != nil {
		shared.err = err
		return
	}
	shared.stop = func() { shared.server.Close(); _ = os.RemoveAll(dir) }
	_ = os.Chmod(dir, 0o711) // #nosec G302 -- the browser's user passes through
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	bin, err := chromium.Find(ctx, os.Getenv("SLUICE_CHROMIUM"), false)
	if err != nil {
		shared.err = err
		return
	}
	o := chromium.Options{
		Binary: bin, Profile: filepath.Join(dir, "profile"), Home: filepath.Join(dir, "home"),
		Proxy: shared.server.URL, Tabs: chromium.TabOptions{Allowed: allowed}, MaxTabs: 50,
		Window: page.Viewport{Width: 1000, Height: 700},
	}
	if os.Getuid() == 0 {
		o.UID = int(uids.Add(1))
		o.GID = o.UID
	}
	for _, d := range []string{o.Profile, o.Home} {
		if shared.err = os.Mkdir(d, 0o700); shared.err != nil {
			return
		}
	}
	b, err := chromium.Start(ctx, o)
	if err != nil {
		shared.err = err
		return
	}
	shared.browser = b
	shared.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = b.Close(ctx)
		shared.server.Close()
		_ = os.RemoveAll(dir)
	}
}

// serve answers for every host: files of testdata, and a few addresses with a
// behaviour of their own.
func serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host == "denied.test":
		w.Header().Set("Sluice-Egress", "denied")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<title>Blocked</title>"))
	case r.URL.Path == "/to":
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	case r.URL.Path == "/file":
		w.Header().Set("Content-Disposition", `attachment; filename="a.csv"`)
		_, _ = w.Write([]byte("1,2\n"))
	case r.URL.Path == "/slow":
		select {
		case <-r.Context().Done():
		case <-time.After(2 * time.Minute):
		}
	case r.URL.Path == "/html":
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(r.URL.Query().Get("body")))
	default:
		http.ServeFile(w, r, filepath.Join("testdata", filepath.Base(r.URL.Path)))
	}
}

// open is a tab of its own that shows a page of testdata.
func open(t *testing.T, address string) (page.Tab, context.Context) {
	t.Helper()
	shared.once.Do(shareBrowser)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	tab, err := shared.browser.NewTab(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = tab.Close(ctx)
	})
	if address != "" {
		if !strings.Contains(address, "://") {
			address = "http://one.test/" + address
		}
		if _, err := tab.Navigate(ctx, address, "load"); err != nil {
			t.Fatal(err)
		}
	}
	return tab, ctx
}

// written is the address of a page with this body.
func written(body string) string { return "http://one.test/html?body=" + url.QueryEscape(body) }

// look reads with selectors by css, and returns the one node that each means.
func look(t *testing.T, ctx context.Context, tab page.Tab, css ...string) []page.Node {
	t.Helper()
	var q page.Query
	for _, c := range css {
		q.Selectors = append(q.Selectors, page.Selector{CSS: c})
	}
	o, err := tab.Read(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]page.Node, len(css))
	for i := range css {
		at := slices.IndexFunc(o.Nodes, func(n page.Node) bool { return slices.Contains(n.Matches, i) })
		if at < 0 {
			t.Fatalf("nothing is %s in %d nodes", css[i], len(o.Nodes))
		}
		list[i] = o.Nodes[at]
	}
	return list
}

func TestRead(t *testing.T) {
	tab, ctx := open(t, "form.html")
	n := look(t, ctx, tab, "#email", "#pw", "#terms", "#notes", "#theme", "#volume", "[data-testid=save]", "#off",
		"#unseen", "#deep", "#inside", "#plain", "#pointer", "#edit", "#far")
	for i, want := range []struct{ role, name string }{
		{"textbox", "E-mail address"}, {"textbox", "Password"}, {"checkbox", "I agree"}, {"textbox", "Notes"},
		{"combobox", "Theme"}, {"slider", "Volume"}, {"button", "Save it"}, {"button", "Off"}, {"button", "Unseen"},
		{"button", "Deep"}, {"", ""}, {"", ""}, {"", ""}, {"textbox", "Story"}, {"button", "Far"},
	} {
		if n[i].Role != want.role || n[i].Name != want.name {
			t.Errorf("%s is %q %q, not %q %q", n[i].ID, n[i].Role, n[i].Name, want.role, want.name)
		}
	}
	email, pw, theme, volume, save, off, unseen, deep, inside, plain, pointer, edit, far := n[0], n[1], n[4], n[5], n[6],
		n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14]
	if !email.Editable || !email.InForm || !email.Visible || !email.InView || email.Placeholder != "you@example.com" ||
		email.Autocomplete != "email" || email.Label != "E-mail address" {
		t.Errorf("email: %+v", email)
	}
	if !pw.Secret || pw.State.TextValue == nil {
		t.Errorf("password: %+v", pw)
	}
	if s := theme.State.Selected; s == nil || s.ID != "dark" || s.Label != "Dark" || len(theme.Options) != 3 ||
		!theme.Options[2].Disabled {
		t.Errorf("theme: %+v", theme)
	}
	if volume.State.Value == nil || *volume.State.Value != 4 ||
		*volume.State.Range != (page.Range{Min: 0, Max: 10, Step: 2}) {
		t.Errorf("volume: %+v", volume.State)
	}
	if !save.Submits || save.TestID != "save" || !save.Native {
		t.Errorf("save: %+v", save)
	}
	if !off.Disabled || *off.State.Enabled {
		t.Errorf("off: %+v", off)
	}
	if unseen.Visible || deep.InView || !deep.Visible || far.InView {
		t.Errorf("unseen %v, deep %v %v, far %v", unseen.Visible, deep.Visible, deep.InView, far.InView)
	}
	if !inside.Listens || inside.OwnHear || plain.Listens || plain.Cursor || !pointer.Cursor {
		t.Errorf("inside %+v, plain %+v, pointer %+v", inside, plain, pointer)
	}
	if !edit.Editable || !edit.Multiline || *edit.State.TextValue != "once" {
		t.Errorf("edit: %+v", edit)
	}
}

// A click that is aimed does not reach another element than the one that was
// looked at, whatever comes between.
func TestClickTurnedAway(t *testing.T) {
	const other = `<style>*{margin:0}button{width:200px;height:40px;display:block}</style><div id=over></div><button id=save>Save</button><button id=other>Other</button>
<script>hits=[];for(const k of ["pointerdown","mousedown","pointerup","mouseup","click","focusin"])addEventListener(k,e=>hits.push(k+" "+e.target.id),true)</script>`
	for _, c := range []struct {
		then   string
		turned bool
		hits   string
	}{
		{``, false, `["pointerdown save","mousedown save","focusin save","pointerup save","mouseup save","click save"]`},
		{`over.style.height = "100px"`, true, `[]`},
		{`over.innerHTML = "<button style='position:fixed;inset:0' id=cover>x"`, true, `[]`},
		{`save.remove()`, true, `[]`},
		{`save.onpointerdown = () => save.remove()`, false,
			`["pointerdown save","mousedown ","pointerup other","mouseup other"]`},
	} {
		tab, ctx := open(t, written(other))
		r, err := tab.Ready(ctx, look(t, ctx, tab, "#save")[0].Ref, page.Point{X: 0.5, Y: 0.5})
		if err != nil || r.Fault != "" {
			t.Fatal(r, err)
		}
		eval(t, shared.browser, c.then+";0")
		d, err := tab.Click(ctx, page.Click{At: r.Point, Aimed: true})
		if err != nil || !d.Sent || d.Turned != c.turned {
			t.Errorf("%q: %+v, %v", c.then, d, err)
		}
		if got := eval(t, shared.browser, "hits"); got != c.hits {
			t.Errorf("%q: %s", c.then, got)
		}
		if !c.turned {
			continue
		}
		if d, err := tab.Click(ctx, page.Click{At: r.Point}); err != nil || d.Turned ||
			eval(t, shared.browser, "hits") == "[]" {
			t.Errorf("%q: the next click is turned away too: %+v, %v", c.then, d, err)
		}
	}
}

// A click counts where it arrives on what a page drew anew in the place of what was
// looked at, if that is the same by name and nature, and not otherwise.
func TestClickOnWhatWasDrawnAnew(t *testing.T) {
	for then, want := range map[string]bool{"<button>Save</button>": true, "<button><b>Save</b></button>": true,
		"<button>Delete</button>": false, "<a href=/form.html>Save</a>": false, "": false} {
		tab, ctx := open(t, written(
			`<div id=root><button>Save</button></div><style>button,a{display:block;width:200px;height:40px}</style>`))
		r, err := tab.Ready(ctx, look(t, ctx, tab, "button")[0].Ref, page.Point{X: 0.5, Y: 0.5})
		if err != nil || r.Fault != "" {
			t.Fatal(r, err)
		}
		eval(t, shared.browser, "root.innerHTML = `"+then+"`")
		d, err := tab.Click(ctx, page.Click{At: r.Point})
		if err != nil || !d.Sent || d.Trusted >= 3 != want || d.Trusted > 0 && !want {
			t.Errorf("%q: %+v, %v", then, d, err)
		}
	}
}

func TestClick(t *testing.T) {
	tab, ctx := open(t, "form.html")
	n := look(t, ctx, tab, "#terms", "#under", "#off", "#far", "#deep", "#unseen")
	r, err := tab.Ready(ctx, n[0].Ref, page.Point{X: 0.5, Y: 0.5})
	if err != nil || r.Fault != "" || r.Node.Ref != n[0].Ref {
		t.Fatal(r, err)
	}
	mark := tab.Mark()
	d, err := tab.Click(ctx, page.Click{At: r.Point, Button: "left", Count: 1})
	if err != nil || !d.Sent || d.Trusted < 3 {
		t.Fatal(d, err)
	}
	if n := look(t, ctx, tab, "#terms")[0]; !*n.State.Checked {
		t.Error("it is not checked")
	}
	_ = mark
	for i, want := range []string{1: "obscured", 2: "disabled", 3: "outside_viewport",
		4: "outside_viewport", 5: "not_visible"} {
		if want == "" {
			continue
		}
		if r, err := tab.Ready(ctx, n[i].Ref, page.Point{X: 0.5, Y: 0.5}); err != nil || r.Fault != want ||
			want == "obscured" && r.By != "dialog" {
			t.Errorf("%s: %q %q, %v, want %s", n[i].ID, r.Fault, r.By, err, want)
		}
	}
	for _, i := range []int{3, 4} {
		if err := tab.ScrollTo(ctx, n[i].Ref, page.Middle, page.Center); err != nil {
			t.Fatal(err)
		}
		if r, err := tab.Ready(ctx, n[i].Ref, page.Point{X: 0.5, Y: 0.5}); err != nil || r.Fault != "" {
			t.Errorf("%s after a scroll: %q, %v", n[i].ID, r.Fault, err)
		}
	}
}

func TestFill(t *testing.T) {
	tab, ctx := open(t, "form.html")
	n := look(t, ctx, tab, "#email", "#notes", "#edit", "#terms")
	for i, text := range []string{"a@b.example", "two\nlines", "ein\nzwei ä€😀"} {
		d, err := tab.Fill(ctx, n[i].Ref, text)
		if err != nil || !d.Sent || d.Trusted < 1 {
			t.Fatal(d, err)
		}
		now := look(t, ctx, tab, "#"+n[i].ID)[0]
		if got := strings.ReplaceAll(*now.State.TextValue, "\n\n", "\n"); got != text {
			t.Errorf("%s: %q, want %q", n[i].ID, got, text)
		}
	}
	if _, err := tab.Fill(ctx, n[3].Ref, "x"); !errors.Is(err, page.ErrKind) {
		t.Errorf("a checkbox takes text: %v", err)
	}
	if d, err := tab.Fill(ctx, n[1].Ref, ""); err != nil || *look(t, ctx, tab, "#notes")[0].State.TextValue != "" {
		t.Error("not cleared", d, err)
	}
	if d, err := tab.Keys(ctx, n[0].Ref, "x@Y.z", true); err != nil || d.Trusted < 10 ||
		*look(t, ctx, tab, "#email")[0].State.TextValue != "x@Y.z" {
		t.Error("keys", d, err)
	}
	if _, err := tab.Press(ctx, n[0].Ref, "Control+A", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Press(ctx, n[0].Ref, "q", 2); err != nil || *look(t, ctx, tab, "#email")[0].State.TextValue != "qq" {
		t.Error("pressed", err, *look(t, ctx, tab, "#email")[0].State.TextValue)
	}
	if _, err := tab.Press(ctx, n[0].Ref, "Enter", 1); err != nil {
		t.Fatal(err)
	}
	if out := look(t, ctx, tab, "#out")[0]; out.Text != "" && !strings.HasPrefix(out.Text, "sent") {
		t.Error(out.Text)
	}
	for _, chord := range []string{"F12", "Control+Shift+I", "Control+w", "Ctrl+T", "Alt+F4", "Hyper+A",
		"Control+Nothing", "", "F5"} {
		if _, err := tab.Press(ctx, "", chord, 1); !errors.Is(err, page.ErrKey) {
			t.Errorf("%q is pressed: %v", chord, err)
		}
	}
}
