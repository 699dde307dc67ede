package ui_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/store"
)

// TestRunsByPages: every run is on exactly one page, whatever the filter.
func TestRunsByPages(t *testing.T) {
	s := open(t)
	const total = 120
	for i := range total {
		s.run(store.RunID(fmt.Sprintf("run_%03d", i)), store.ConnectionID(fmt.Sprintf("c-%03d", i)), store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "x"})})
	}
	link := regexp.MustCompile(`<th scope="row"><a href="/ui/runs/(run_\d+)"`)
	for _, filter := range []string{"", "active"} {
		seen, pages := map[string]int{}, 0
		for at := "/ui/runs?status=" + filter; at != ""; pages++ {
			page := s.page(at)
			for _, m := range link.FindAllStringSubmatch(page, -1) {
				seen[m[1]]++
			}
			at = ""
			if m := regexp.MustCompile(`href="(/ui/runs\?[^"]*before=[^"]*)"`).FindStringSubmatch(page); m != nil {
				at = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("filter %q: %s is on %d pages", filter, id, n)
			}
		}
		if len(seen) != total || pages != 3 {
			t.Errorf("filter %q: %d runs on %d pages", filter, len(seen), pages)
		}
	}
	if page := s.page("/ui/runs?status=failed"); link.MatchString(page) || !strings.Contains(page, "No runs like this") {
		t.Error("a filter that matches nothing shows something")
	}
}

// TestEmptyPages: a page without anything says what to do next.
func TestEmptyPages(t *testing.T) {
	s := open(t)
	for path, want := range map[string]string{"/ui/": "Install a connector", "/ui/inbox": "Nothing needs you", "/ui/runs": "No runs", "/ui/records": "No records yet", "/ui/connectors": "Upload a",
		"/ui/schedules": "Nothing to schedule", "/ui/keys": "No keys", "/ui/audit": "Nothing was written down", "/ui/connections/new": "Install a connector first"} {
		if page := s.page(path); !strings.Contains(page, want) || !strings.Contains(page, `class="empty"`) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
}
