package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A watcher reads the event stream of a page.
type watcher struct {
	t  *testing.T
	in *bufio.Reader
}

func (s *site) watch(path string) *watcher {
	s.t.Helper()
	q, err := http.NewRequestWithContext(s.t.Context(), "GET", s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	q.Header.Set("Cookie", s.cookie)
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := client.Do(q)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		s.t.Fatalf("%s: %d", path, res.StatusCode)
	}
	return &watcher{s.t, bufio.NewReader(res.Body)}
}

// next is the data of the next event of a name.
func (w *watcher) next(name string) string {
	w.t.Helper()
	for event, text := "", ""; ; {
		line, err := w.in.ReadString('\n')
		if err != nil {
			w.t.Fatalf("no event %s: %v", name, err)
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "event: "):
			event = line[7:]
		case strings.HasPrefix(line, "data: "):
			text += line[6:] + "\n"
		case line == "" && event == name:
			return text
		case line == "":
			event, text = "", ""
		}
	}
}

// TestPagesFollow: what changes is sent to the open page, with the badge, and
// events come from where the page is.
func TestPagesFollow(t *testing.T) {
	s := open(t)
	lease := s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})})
	inbox, run := s.watch("/ui/live/inbox"), s.watch("/ui/runs/run_1/live?after=1")
	if got := inbox.next("badge"); !strings.Contains(got, `data-needs="0"`) {
		t.Errorf("badge: %s", got)
	}
	run.next("head")
	s.commit(lease, question("q1", map[string]any{"code": map[string]any{"type": "string"}}, "code")[1:]...)
	if got := inbox.next("badge"); !strings.Contains(got, `data-needs="1"`) {
		t.Errorf("badge: %s", got)
	}
	if got := inbox.next("asks"); !strings.Contains(got, "Who are you?") {
		t.Errorf("inbox: %s", got)
	}
	if got := run.next("events"); strings.Count(got, "data-seq") != 1 || !strings.Contains(got, `data-seq="1"`) {
		t.Errorf("events: %s", got)
	}
	if got := run.next("asks"); !strings.Contains(got, `name="f.code"`) {
		t.Errorf("the run's page: %s", got)
	}
	s.commit(lease, store.Event{Type: "run.assistance_resolved",
		Data: data(map[string]string{"assistance_request_id": "q1", "status": "resolved"})})
	if got := run.next("asks"); strings.Contains(got, "f.code") {
		t.Errorf("an answered question stays: %s", got)
	}
}

// TestLongTimeline: a run with 10,000 events opens with the newest page of
// them, and leads to every other.
func TestLongTimeline(t *testing.T) {
	s := open(t)
	const total = 10_000
	lease := s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})})
	for sent := 1; sent < total; {
		var events []store.Event
		for ; len(events) < 1000 && sent < total; sent++ {
			events = append(events, store.Event{Type: "run.progress_reported", Stream: "mail",
				Data: data(map[string]any{"message": fmt.Sprint("Letter ", sent), "stream": "mail",
					"count": sent, "total": total})})
		}
		s.commit(lease, events...)
	}
	page := s.page("/ui/runs/run_1")
	sequences := func(page string) []string { return regexp.MustCompile(`data-seq="(\d+)"`).FindAllString(page, -1) }
	rows := sequences(page)
	if len(rows) != 100 || rows[0] != `data-seq="9999"` || len(page) > 256<<10 {
		t.Fatalf("%d rows from %v, %d bytes", len(rows), rows[:1], len(page))
	}
	seen := len(rows)
	for before := 9900; ; before -= 100 {
		older := s.page(fmt.Sprintf("/ui/runs/run_1/older?before=%d", before))
		rows := sequences(older)
		if len(rows) == 0 || rows[0] != fmt.Sprintf(`data-seq="%d"`, before-1) {
			t.Fatalf("before %d: %v", before, rows)
		}
		if seen += len(rows); !strings.Contains(older, "data-older") {
			break
		}
	}
	if seen != total {
		t.Errorf("%d of %d events can be reached", seen, total)
	}
	// A page that fell behind by more than it shows starts over.
	if got := s.watch("/ui/runs/run_1/live?after=10").next("allevents"); len(sequences(got)) != 100 {
		t.Errorf("%d rows after a long break", len(sequences(got)))
	}
}

// A page's stream ends when the host ends it, also while its client stays
// connected and reads on.
func TestStreamsEnd(t *testing.T) {
	s := open(t)
	inbox := s.watch("/ui/live/inbox")
	inbox.next("badge")
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, inbox.in)
		ended <- err
	}()
	go s.hub.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute): // less than the client's own patience
		t.Fatal("the stream is still open")
	}
}
