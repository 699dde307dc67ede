package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// The page of a run says in words what its browser did, and links what it left.
func TestBrowserOfRun(t *testing.T) {
	s := open(t)
	event := func(typ string, d map[string]any) store.Event { return store.Event{Type: typ, Data: data(d)} }
	events := []store.Event{
		event("run.browser_surface_requested", map[string]any{"surface_id": "sf_1", "profile": "shop"}),
		event("run.browser_surface_ready", map[string]any{"surface_id": "sf_1", "profile": "shop"}),
		event("run.browser_action",
			map[string]any{"action": "click", "role": "button", "url_host": "shop.example",
				"verification_result": "verified", "attempts": 1}),
		event("run.browser_action",
			map[string]any{"action": "type", "role": "textbox", "url_host": "shop.example",
				"verification_result": "inconclusive", "runtime_code": "ELEMENT_NOT_FOUND"}),
		event("run.browser_action", map[string]any{"actions": 1100}),
		event("run.browser_cookie_handoff", map[string]any{"host": "shop.example", "count": 2, "granted": true}),
		event("run.browser_surface_lost",
			map[string]any{"surface_id": "sf_1",
				"browser_surface_probe": map[string]any{"ok": false, "code": "browser_surface_page_stale"}}),
		event("artifact.created",
			map[string]any{"artifactId": "art_1", "artifactType": "browser-trace", "nodeId": "collect",
				"summary": "Browser trace, 2 actions", "size": 3}),
		event("artifact.created",
			map[string]any{"artifactId": "art_2", "artifactType": "gone", "summary": "no more", "size": 3}),
		event("artifact.created",
			map[string]any{"artifactId": "art_3", "artifactType": "browser-trace", "summary": "another length", "size": 4}),
		event("artifact.created",
			map[string]any{"artifactId": "art_4", "artifactType": "away", "summary": "elsewhere", "size": 3}),
	}
	for i := range 12 {
		events = append(events, event("run.browser_egress_denied",
			map[string]any{"host": fmt.Sprintf("ads%d.example", i), "port": 8443, "verdict": "host_denied", "count": i + 1}))
	}
	s.run("run_browser", "shop", events...)
	page := s.page("/ui/runs/run_browser")
	for _, words := range []string{
		"Clicked", "button · shop.example · proved", "Typing failed",
		"textbox · shop.example · nothing on the page is what was meant", "1\u202f100 actions so far",
		"Cookies were handed to the connector", "The browser is open", "profile shop",
		"The browser was lost while you were asked", "The browser was kept from a server",
		"ads3.example, port 8443 · the connection may not reach it · 4 times", "<h2>Browser</h2>", "lost",
		"browser surface page stale", "<dd>1\u202f099</dd>", "Other servers", "3 times",
		`href="/v1/runs/run_browser/artifacts/art_1/content" download`, "Browser trace, 2 actions", "3 B",
		`<a href="https://b.example/ui/runs/x" rel="noreferrer"><bdi hx-disable>it is at host host_b</bdi></a>`,
	} {
		if !strings.Contains(page, words) {
			t.Errorf("the page does not say %q", words)
		}
	}
	for _, no := range []string{"art_2/content", "art_3/content"} {
		if strings.Contains(page, no) {
			t.Errorf("the page links a file that is gone: %s", no)
		}
	}
	if s.run("run_plain", "plain"); strings.Contains(s.page("/ui/runs/run_plain"), "<h2>Browser</h2>") {
		t.Error("a run without a browser has one")
	}
}

// Every type of the catalogue that a browser makes has words for people.
func TestBrowserEventsHaveWords(t *testing.T) {
	s := open(t)
	var all []store.Event
	for _, e := range timeline.Catalogue() {
		name := string(e.Type)
		if strings.HasPrefix(name, "run.browser_") || strings.HasPrefix(name, "run.stream_session") ||
			name == "run.stream_reach_failed" || name == "artifact.created" {
			all = append(all, store.Event{Type: name, Data: data(map[string]any{})})
		}
	}
	if len(all) < 15 {
		t.Fatalf("%d types", len(all))
	}
	s.run("run_words", "words", all...)
	page := s.page("/ui/runs/run_words")
	for _, e := range all {
		if strings.Contains(page, `<span class="what">`+e.Type+`</span>`) {
			t.Errorf("%s is shown by its name", e.Type)
		}
	}
}
