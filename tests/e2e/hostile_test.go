package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/tests/e2e/payload"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// injected is what our own pages never contain.
const injected = `[...document.querySelectorAll("x-pwned,#pwned,iframe,object,embed,base,math,plaintext,meta[http-equiv],[onload],[onerror],[onfocus],[srcdoc],[autofocus],[style*='pwned'],a[href^='javascript'],a[href^='data:'],script:not([src^='/ui/assets/']),link:not([href^='/ui/assets/']),form[action^='http']")].map((x) => x.outerHTML.slice(0, 200)).concat(window.pwned ? ["window.pwned"] : [])`

// A connector that puts payloads into every text that it can, its manifest included,
// changes no page: no dialog, no script, no element, no request, and nothing that the
// policy had to block.
func TestPayloads(t *testing.T) {
	if n := len(payload.All()); n < 100 {
		t.Fatalf("%d payloads", n)
	}
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/hostile")
	if err := h.Connect(t.Context(), "hostile", "hostile", map[string]any{"note": payload.All()[9]}); err != nil {
		t.Fatal(err)
	}
	name := payload.All()[1]
	if _, err := h.Do(t.Context(), "PATCH", "/v1/connections/hostile",
		host.ChangeConnection{DisplayName: &name}, nil); err != nil {
		t.Logf("a display name with a payload is refused: %v", err)
	}
	b := signIn(t, h, false)
	b.open("/ui/connections/hostile") // its stream is open while the run goes on
	live := b.beside()
	id := start(t, h.Client, "hostile")
	live.open("/ui/runs/" + string(id))
	asked, err := h.Wait(soon(t), id, served.Asks)
	if err != nil || asked.Interrupt == nil {
		t.Fatalf("%+v %v", asked.Error, err)
	}
	live.until(`document.querySelector("article.ask form select")`)
	live.shot("question")
	look := func(b *tab, where string) {
		t.Helper()
		if found := eval[[]string](b, injected); len(found) > 0 {
			t.Errorf("%s: %q", where, found)
		}
		b.clean(where)
	}
	if n := eval[int](live, `(document.body.append(document.createElement("x-pwned")), `+injected+`.length)`); n != 1 {
		t.Fatalf("an element that was put there is found as %d", n)
	}
	eval[any](live, `document.querySelector("x-pwned").remove()`)
	look(live, "the run, live")
	look(b, "the connection, live")
	var page struct{ Data []struct{ Key string } }
	if _, err := h.Do(t.Context(), "GET", "/v1/connections/hostile/streams/items/records?limit=200", nil,
		&page); err != nil || len(page.Data) != len(payload.All()) {
		t.Fatalf("%d records, %v", len(page.Data), err)
	}
	pages := []string{"/ui/", "/ui/inbox", "/ui/runs", "/ui/connectors", "/ui/connectors/hostile",
		"/ui/connectors/hostile/connect", "/ui/connections/hostile",
		"/ui/connections/hostile/grant", "/ui/schedules", "/ui/audit", "/ui/settings", "/ui/runs/" + string(id),
		"/ui/records?connection=hostile&stream=items&limit=200"}
	for i := 0; i < len(page.Data); i += 9 {
		pages = append(pages, "/ui/record?connection=hostile&stream=items&key="+escaped(page.Data[i].Key),
			"/ui/records?connection=hostile&stream=items&find="+escaped(page.Data[i].Key))
	}
	for _, path := range pages {
		b.do(chromedp.Navigate(b.base+path), chromedp.WaitReady(chromedp.CSS("main")))
		look(b, path)
	}
	var answers = map[string]any{}
	for i := range 8 {
		answers[fmt.Sprintf("f%d", i)] = "x"
	}
	if err := h.Answer(t.Context(), asked, map[string]any{"answers": answers}); err != nil {
		t.Logf("the question wants other answers: %v", err)
		if _, err := h.Cancel(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	live.until(`document.querySelector("#head").innerText.toLowerCase().includes("run again")`)
	look(live, "the run that is over")
	live.shot("over")
}

// escaped is a key in a query.
func escaped(key string) string { return strings.ReplaceAll(url.QueryEscape(key), "+", "%20") }

// attack is a page of another origin that tries everything that pages can. Its requests
// carry the cookie: another port of the same host is the same site.
const attack = `<!doctype html><title>elsewhere</title><body><script>
const base = %q, tried = [];
const send = (method, path, type, body, extra) => tried.push(fetch(base + path, {method, body, credentials: "include", headers: type ? {"Content-Type": type} : {}, ...extra})
  .then((r) => [method, path, r.type, r.status], (e) => [method, path, "blocked", 0]));
for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json", ""]) {
  for (const mode of ["no-cors", "cors"]) {
    send("POST", "/ui/runs", type, JSON.stringify({connection: ["one"]}), {mode});
    send("POST", "/v1/runs", type, JSON.stringify({workflowId: "one"}), {mode});
    send("POST", "/v1/api-keys", type, JSON.stringify({name: "x", mode: "live", scopes: ["runs:read"]}), {mode});
    send("POST", "/ui/keys", type, JSON.stringify({name: ["x"]}), {mode});
    send("POST", "/v1/connections/one/schedule/pause", type, "{}", {mode});
    send("POST", "/ui/connections/one/delete", type, "{}", {mode});
  }
}
send("DELETE", "/v1/connections/one", "", undefined, {mode: "cors"});
send("DELETE", "/ui/session", "", undefined, {mode: "cors"});
send("GET", "/v1/api-keys", "", undefined, {mode: "cors"});
send("GET", "/ui/", "", undefined, {mode: "cors"});
for (const [i, enctype] of ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"].entries()) for (const path of ["/ui/runs", "/ui/keys", "/v1/runs"]) {
  const f = document.createElement("form"), x = document.createElement("input"), frame = document.createElement("iframe");
  frame.name = "f" + i + path; f.target = frame.name; f.method = "post"; f.enctype = enctype; f.action = base + path;
  x.name = '{"connection":["one"],"workflowId":"one","a":"'; x.value = '"}'; f.append(x); document.body.append(frame, f); f.submit();
}
const frame = document.createElement("iframe"); frame.src = base + "/ui/"; frame.id = "framed"; document.body.append(frame);
const es = new EventSource(base + "/ui/live/overview", {withCredentials: true});
tried.push(new Promise((done) => { es.onopen = () => done(["GET", "EventSource", "open", 200]); es.onerror = () => { es.close(); done(["GET", "EventSource", "blocked", 0]); }; }));
window.result = Promise.all(tried).then((list) => new Promise((done) => setTimeout(() => done(list), 500)));
</script></body>`

// Pages of other origins can start, change and read nothing: not with the owner's
// cookie, not in a frame, and not under another name for this machine.
func TestOtherOrigins(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit"})
	b := signIn(t, h, true)
	before := everything(t, h.Client)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, attack, b.base)
	}))
	defer other.Close()
	evil := b.beside()
	evil.do(chromedp.Navigate(other.URL))
	for _, tried := range eval[[][]any](evil, `window.result`) {
		if kind := tried[2]; kind != "blocked" && kind != "opaque" {
			t.Errorf("another origin reads %v", tried)
		}
	}
	if framed := eval[bool](evil,
		`(() => { try { return document.getElementById("framed").contentDocument !== null } catch { return false } })()`); framed {
		t.Error("the frame can be read")
	}
	for _, info := range frameURLs(evil) {
		if strings.HasPrefix(info, b.base) {
			t.Errorf("the dashboard is in a frame: %s", info)
		}
	}
	if after := everything(t, h.Client); after != before {
		t.Errorf("another origin changed something:\n%s\n%s", before, after)
	}
	if got := eval[int](b, `fetch("/ui/session").then((r) => r.status)`); got != 200 {
		t.Errorf("the owner's session: %d", got)
	}
	// Another name for this machine, as a rebinding attack has it.
	_, port, _ := strings.Cut(strings.TrimPrefix(b.base, "http://"), ":")
	rebound := newTab(t, "http://"+elsewhere+":"+port)
	rebound.do(chromedp.Navigate(rebound.base + "/ui/login"))
	if text := eval[string](rebound, `document.body.innerText`); strings.Contains(text, "sluice login") {
		t.Errorf("a page under another name: %s", text)
	}
	if got := eval[int](rebound, `fetch("/v1/runs").then((r) => r.status, () => 0)`); got != 400 &&
		got != 403 && got != 421 {
		t.Errorf("the API under another name: %d", got)
	}
}

// everything is the state that an attack would change.
func everything(t *testing.T, c *served.Client) string {
	t.Helper()
	var all []string
	for _, path := range []string{"/v1/runs", "/v1/api-keys", "/v1/connections", "/v1/schedules", "/v1/connectors"} {
		var page struct{ Data []json.RawMessage }
		if _, err := c.Do(t.Context(), "GET", path, nil, &page); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s", path, page.Data))
	}
	return strings.Join(all, "\n")
}
