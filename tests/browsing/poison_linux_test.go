package browsing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// A well is a site with a service worker, and a list of the requests that it got.
type well struct {
	*httptest.Server
	outside atomic.Int64 // requests to a place of which the policy says nothing
	mu      sync.Mutex   // guards asked
	asked   []string
}

func newWell(t *testing.T) *well {
	w := &well{}
	outside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.outside.Add(1) }))
	t.Cleanup(outside.Close)
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.URL.Path)
		w.mu.Unlock()
		switch r.URL.Path {
		case "/worker.js":
			rw.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(rw, strings.ReplaceAll(`onactivate=e=>e.waitUntil(clients.claim());oninstall=()=>skipWaiting();
onfetch=e=>{const p=new URL(e.request.url).pathname,html={headers:{"content-type":"text/html"}};
  if(p=="/denied")e.respondWith(Response.redirect("OUTSIDE"));
  if(p=="/claims")e.respondWith(new Response("<title>Blocked</title>x",{status:403,headers:{"content-type":"text/html","Sluice-Egress":"denied"}}));
  if(p=="/")e.respondWith(new Response("<p id=who>worker</p>",html));
  if(p=="/reach")e.respondWith(fetch("OUTSIDE",{mode:"no-cors"}).catch(()=>0).then(()=>new Response("<p id=who>tried</p>",html)))}`, "OUTSIDE", outside.URL))
		case "/", "/first":
			_, _ = fmt.Fprint(rw, `<!doctype html><p id=who>server</p><script>location.pathname=="/first"&&navigator.serviceWorker.register("/worker.js").then(()=>navigator.serviceWorker.ready).then(()=>who.textContent="installed")</script>`)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// since returns the requests after the first n.
func (w *well) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked[n:]...)
}

// poison writes into a profile what a browser under an attacker's control would leave
// for the next run: start pages, an extension that calls home, and programs to run.
func poison(t *testing.T, profile, site string) {
	t.Helper()
	extension := filepath.Join(profile, "Default", "Extensions", "evil")
	path := filepath.Join(profile, "Default", "Preferences")
	var settings map[string]any
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil {
		t.Fatal(err)
	}
	settings["session"] = map[string]any{"restore_on_startup": 4, "startup_urls": []string{site + "/started"}}
	settings["homepage"], settings["homepage_is_newtabpage"] = site+"/home", false
	settings["proxy"] = map[string]any{"mode": "direct"}
	settings["extensions"] = map[string]any{"settings": map[string]any{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": map[string]any{
		"path": extension, "location": 4, "state": 1,
		"manifest": map[string]any{"manifest_version": 2, "name": "evil", "version": "1"}}}}
	settings["profile"] = map[string]any{"exit_type": "Crashed",
		"content_settings": map[string]any{"exceptions": map[string]any{
			"geolocation": map[string]any{site + ",*": map[string]any{"setting": 1}},
			"clipboard":   map[string]any{site + ",*": map[string]any{"setting": 1}}}}}
	raw, err = json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	host := filepath.Join(profile, "NativeMessagingHosts")
	if err := errors.Join(os.MkdirAll(extension, 0o755), os.MkdirAll(host, 0o755),
		os.WriteFile(path, raw, 0o644), // #nosec G306 -- whoever reads it
		os.WriteFile(filepath.Join(extension, "manifest.json"), []byte(`{"manifest_version":2,"name":"evil","version":"1","background":{"scripts":["b.js"]},"permissions":["<all_urls>"],"content_scripts":[{"matches":["<all_urls>"],"js":["b.js"]}]}`), 0o644), // #nosec G306
		os.WriteFile(filepath.Join(extension, "b.js"), []byte(`fetch("`+site+`/extension")`), 0o644),                                                                                                                // #nosec G306
		os.WriteFile(filepath.Join(host, "evil.json"), []byte(`{"name":"evil","path":"/bin/true","type":"stdio","allowed_origins":["chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"]}`), 0o644)); err != nil { // #nosec G306
		t.Fatal(err)
	}
}

// who returns the origin that a page shows.
func who(t *testing.T, s *browsing.Session) string {
	t.Helper()
	r := s.Must(browsing.M{"verb": "extract",
		"items": []browsing.M{{"name": "who", "take": "text", "target": browsing.Selector("id", "who")}}})
	return strings.Trim(string(r.Items["who"]), `"`)
}

// What a run leaves in its profile does nothing by itself in the next run: no page
// opens, nothing calls home, and no other way out appears. A site's service worker
// answers for pages of that site only; it neither bypasses the policy nor serves
// another connection.
func TestPoisonedProfile(t *testing.T) {
	site, data := newWell(t), browsing.Dir(t)
	h := browsing.Host(t, browser.Options{Data: data, MaxSurfaces: 2, ActionsPerMinute: 1000})
	begin := func(name string) *browsing.Session {
		return browsing.Begin(t, h, browser.SessionOptions{Connection: name, Name: name, Connector: "test"}, site.URL)
	}
	s := begin("one")
	s.Must(browsing.M{"verb": "open", "persistent": true})
	s.Must(browsing.M{"verb": "navigate", "url": site.URL + "/first",
		"expect": browsing.TextIs(browsing.Selector("id", "who"), "installed"), "verify": browsing.M{"window_ms": 5000}})
	s.End()
	poison(t, filepath.Join(data, "profiles", "one", "one"), site.URL)

	before := len(site.since(0))
	s = begin("one")
	r := s.Must(browsing.M{"verb": "open", "persistent": true})
	var opened struct {
		Tabs []struct {
			Host string `json:"url_host"`
		}
	}
	decode(t, r.Raw, &opened)
	time.Sleep(2 * time.Second) // what starts by itself has started
	if got := site.since(before); len(got) > 0 || len(opened.Tabs) != 1 || opened.Tabs[0].Host != "" {
		t.Errorf("without a word of the guest: %v, %+v", got, opened.Tabs)
	}
	s.Must(browsing.M{"verb": "navigate", "url": site.URL + "/"})
	if got := who(t, s); got != "worker" {
		t.Errorf("the site's own worker did not answer: %q", got)
	}
	s.Must(browsing.M{"verb": "navigate", "url": site.URL + "/reach"})
	if got := who(t, s); got != "tried" {
		t.Errorf("the worker did not try to get out: %q", got)
	}
	for _, path := range []string{"/denied", "/claims"} {
		if r := s.Call(browsing.M{"verb": "navigate", "url": site.URL + path}); r.Code != "ACTION_REJECTED" ||
			r.Detail != "host_denied" {
			t.Errorf("%s: %s", path, r)
		}
	}
	s.End()
	if n := site.outside.Load(); n > 0 {
		t.Errorf("%d requests went past the policy", n)
	}
	for _, path := range site.since(before) {
		if path == "/started" || path == "/home" || path == "/extension" {
			t.Errorf("%s was asked for", path)
		}
	}

	s = begin("two")
	s.Must(browsing.M{"verb": "open", "persistent": true, "url": site.URL})
	if got := who(t, s); got != "server" {
		t.Errorf("another connection is answered by %q", got)
	}
}
