package browsing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

// Pages for live views: Moving changes with every frame, Flipping turns black or white
// with every press of a button.
const (
	Moving = `<!doctype html><body style="margin:0"><canvas id="c" width="1280" height="720"></canvas><script>
const x = c.getContext("2d"); let n = 0;
(function f() { n++; x.fillStyle = "hsl(" + n % 360 + " 80% 50%)"; x.fillRect(0, 0, 1280, 720); x.fillStyle = "#000"; x.fillRect(n * 7 % 1280, 100, 80, 400); requestAnimationFrame(f) })()</script>`
	Flipping = `<!doctype html><body style="margin:0;background:#fff;height:100vh"><script>let on = 0; onmousedown = () => { document.body.style.background = ++on % 2 ? "#000" : "#fff" }</script>`
)

// Lone starts a browser with no surface around it, 1280×720, whose whole network is
// those pages, by path. It ends with the test.
func Lone(tb testing.TB, pages map[string]string) *chromium.Browser {
	tb.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(pages[r.URL.Path]))
	}))
	tb.Cleanup(site.Close)
	found, err := chromium.Find(tb.Context(), os.Getenv("SLUICE_CHROMIUM"), false)
	if err != nil {
		tb.Fatal(err)
	}
	dir := Dir(tb)
	o := chromium.Options{
		Binary: found, Profile: filepath.Join(dir, "profile"), Home: filepath.Join(dir, "home"), Proxy: site.URL,
		Window: page.Viewport{Width: 1280, Height: 720, Scale: 1},
		Tabs:   chromium.TabOptions{Allowed: func(string) error { return nil }},
	}
	if os.Geteuid() == 0 {
		o.UID = 208000 + os.Getpid()%900
		o.GID = o.UID
	}
	if err := errors.Join(os.Mkdir(o.Profile, 0o700), os.Mkdir(o.Home, 0o700)); err != nil {
		tb.Fatal(err)
	}
	b, err := chromium.Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return b
}
