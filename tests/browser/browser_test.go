// Package browser_test runs the engine and the driver on real pages in a real browser,
// for what a fake page cannot show.
package browser_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// one is the browser that all tests here share, with the server that is its proxy.
var one struct {
	browser *chromium.Browser
	server  *server
	options chromium.Options
	err     error
}

func TestMain(m *testing.M) {
	stop := open()
	code := m.Run()
	stop()
	os.Exit(code)
}

func open() (stop func()) {
	one.server = &server{posts: map[string]int{}}
	proxy := httptest.NewServer(one.server)
	dir, err := os.MkdirTemp("", "sluice-engine-")
	if err != nil {
		one.err = err
		return proxy.Close
	}
	stop = func() {
		proxy.Close()
		_ = os.RemoveAll(dir)
	}
	_ = os.Chmod(dir, 0o711) // #nosec G302 -- the browser's user passes through
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o := chromium.Options{Profile: filepath.Join(dir, "profile"), Home: filepath.Join(dir, "home"), Proxy: proxy.URL,
		Window: page.Viewport{Width: 1000, Height: 700}}
	if os.Geteuid() == 0 {
		o.UID = 204000 + os.Getpid()%2000
		o.GID = o.UID
	}
	for _, d := range []string{o.Profile, o.Home} {
		if one.err = os.Mkdir(d, 0o700); one.err != nil {
			return stop
		}
	}
	if o.Binary, one.err = chromium.Find(ctx, os.Getenv("SLUICE_CHROMIUM"), false); one.err != nil {
		return stop
	}
	one.options = o
	if one.browser, one.err = chromium.Start(ctx, o); one.err != nil {
		return stop
	}
	clean := stop
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = one.browser.Close(ctx)
		clean()
	}
}

// A bench is an engine over the browser.
type bench struct {
	testing.TB
	engine *engine.Engine
}

func newBench(t testing.TB) *bench {
	t.Helper()
	if one.err != nil {
		t.Fatalf("open a browser: %v", one.err)
	}
	b := &bench{t, engine.New(engine.Options{Browser: one.browser, Identity: engine.NewIdentity(),
		Broke: func(err error) { t.Errorf("the host broke: %v", err) }})}
	t.Cleanup(b.engine.Close)
	return b
}

// request turns the JSON of a guest's request into a request.
func (b *bench) request(text string) *engine.Request {
	b.Helper()
	r, refused := engine.Parse([]byte(text), engine.DefaultSettings)
	if refused != nil {
		b.Fatalf("%s: %v", text, refused)
	}
	return r
}

func (b *bench) do(text string) any {
	b.Helper()
	reply, refused := b.engine.Do(b.Context(), b.request(text))
	if refused != nil {
		b.Fatalf("%s: %v", text, refused)
	}
	return reply
}

func (b *bench) act(text string) *engine.Result {
	b.Helper()
	return b.do(text).(*engine.Result)
}

// on loads a page by name.
func (b *bench) on(name string) {
	b.Helper()
	b.is(b.act(`{"verb":"navigate","url":"http://shop.test/page/`+name+`"}`), "", "")
}

// is checks the code and detail of a failure; "" is success.
func (b *bench) is(r *engine.Result, code engine.Code, detail string) {
	b.Helper()
	var got engine.Code
	var gotDetail string
	if r.FailureCode != nil {
		got = *r.FailureCode
	}
	if r.Detail != nil {
		gotDetail = *r.Detail
	}
	if got != code || gotDetail != detail {
		b.Errorf("%s: got %q %q, want %q %q\n%s", r.Action, got, gotDetail, code, detail, show(b, r))
	}
}

func show(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// save clicks on Save and expects the status to say that it is saved.
const save = `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"expect":{"kind":"text","target":{"selector":{"test_id":"status"}},"op":"equals","value":"Saved"}`
