//go:build unix

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// Behind what brings each request to another host, the view of a browser opens: the page asks again until it comes to
// the host that has the browser.
func TestViewBehindBalancer(t *testing.T) {
	database := postgres.Shared(t).Database(t)
	var hosts [2]*served.Host
	var n atomic.Int64
	balancer := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.Host = "http", r.In.Host
		r.Out.URL.Host = hosts[n.Add(1)%2].Address().String()
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }})
	shares := func(dir string) func(*daemon.Options) {
		return func(o *daemon.Options) {
			separator := "?"
			if strings.Contains(database, "?") {
				separator = "&"
			}
			o.Host.Store = database + separator + "durability=weak&data=" + dir
			o.Server.Hosts = []string{balancer.Listener.Addr().String()}
			o.Host.Browser.ProbeInterval = 200 * time.Millisecond
		}
	}
	for i := range hosts {
		dir := passable(t)
		hosts[i], _ = open(t, dir, shares(dir))
	}
	balancer.Start()
	t.Cleanup(balancer.Close)
	site := newBank(t)
	install(t, hosts[0].Client, "tests/e2e/helped")
	id := helped(t, hosts[0], site, "manual_action")
	link, err := hosts[1].Server.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(link.URL, "#")
	b := newTab(t, balancer.URL)
	b.do(chromedp.Navigate(b.base + "/ui/login#" + token))
	b.until(`location.pathname === "/ui/" && document.readyState === "complete"`)
	for range 3 {
		b.open("/ui/runs/" + string(id))
		b.click(`[data-view-open]`)
		b.said("You are in control")
	}
	if _, err := hosts[0].Cancel(soon(t), id); err != nil {
		t.Fatal(err)
	}
	b.clean("a view behind a balancer")
}
