package dashboard_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// TestRunsByPages: every run is on exactly one page, whatever the filter.
func TestRunsByPages(t *testing.T) {
	s := open(t)
	const total = 120
	for i := range total {
		s.run(store.RunID(fmt.Sprintf("run_%03d", i)), store.ConnectionID(fmt.Sprintf("c-%03d", i)),
			store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "x"})})
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
	for path, want := range map[string]string{"/ui/": "Install a connector", "/ui/inbox": "Nothing needs you",
		"/ui/runs": "No runs", "/ui/records": "No records yet", "/ui/connectors": "Upload a",
		"/ui/schedules": "Nothing to schedule", "/ui/keys": "No keys", "/ui/audit": "Nothing was written down"} {
		if page := s.page(path); !strings.Contains(page, want) || !strings.Contains(page, `class="empty"`) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
}

// TestListsFollow: the lists of runs, schedules, connectors and the audit log are sent
// again when they changed, as they were asked for.
func TestListsFollow(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}, {ConnectionID: "shop"}}
	page := s.page("/ui/runs?connection=bank&status=active")
	at := html.UnescapeString(regexp.MustCompile(`sse-connect="([^"]+)"`).FindStringSubmatch(page)[1])
	if !strings.HasPrefix(at, "/ui/live/runs?") || !strings.Contains(page, `sse-swap="runs"`) {
		t.Fatalf("the page follows %s", at)
	}
	w := s.watch(at)
	if got := w.next("runs"); !strings.Contains(got, "No runs like this") {
		t.Errorf("before: %s", got)
	}
	s.run("run_shop", "shop", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "shop"})})
	s.run("run_bank", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})})
	if got := w.next("runs"); !strings.Contains(got, "/ui/runs/run_bank") || strings.Contains(got, "run_shop") {
		t.Errorf("after: %s", got)
	}
	if a := s.get("/ui/live/runs?status=nothing"); a.status != 400 {
		t.Errorf("a state that there is not: %d", a.status)
	}
	for path, region := range map[string]string{"/ui/live/schedules": "schedules", "/ui/live/connectors": "list",
		"/ui/live/audit": "entries"} {
		if got := s.watch(path).next(region); got == "" {
			t.Errorf("%s sends no %s", path, region)
		}
	}
}

// TestFoldedLines: a line says which others it goes with; a batch that lost records with none.
func TestFoldedLines(t *testing.T) {
	s := open(t)
	batch := func(stream string, attempted ...int) store.Event {
		e := map[string]any{"stream": stream, "records_attempted": 500, "records_flushed": 500}
		if len(attempted) > 0 {
			e["records_attempted"] = attempted[0]
		}
		return store.Event{Type: "run.batch_ingested", Stream: store.Stream(stream), Data: data(e)}
	}
	s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})},
		batch("mail"), batch("files"), batch("mail", 501))
	page := s.page("/ui/runs/run_1")
	for _, stream := range []string{"mail", "files"} {
		if want := `data-fold="run.batch_ingested ` + stream + `" data-records="500"`; strings.Count(page, want) != 1 {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Count(page, "data-fold") != 3 || !strings.Contains(page, `data-fold="run.started The run started live "`) {
		t.Error("a batch that lost records would be folded, or another line would not")
	}
}
