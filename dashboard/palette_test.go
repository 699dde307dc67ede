package dashboard_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Search finds one record with hostile texts for every word but "nothing".
func (f *fake) Search(ctx context.Context, q host.SearchQuery) (host.SearchResult, error) {
	switch {
	case strings.HasPrefix(q.Words, "nothing"):
		return host.SearchResult{Hits: []host.Hit{}}, nil
	case strings.HasPrefix(q.Words, "-"):
		return host.SearchResult{}, host.Invalid("q", "required", "want a word to look for")
	case strings.HasPrefix(q.Words, "slow"):
		return host.SearchResult{}, host.Refuse("search_limit", "too slow")
	}
	return host.SearchResult{More: true, Hits: []host.Hit{{
		ConnectionID: "bank", Stream: "<b>", Key: `"><script>`,
		Links: host.HitLinks{Page: "/ui/record?connection=bank&key=" + url.QueryEscape(`"><script>`)},
		Snippets: []host.Snippet{{Field: "<i>",
			Parts: []host.SnippetPart{{Text: "asked: "}, {Text: q.Words, Match: true}, {Text: "<script>alert(1)</script>"}}}},
	}}}, nil
}

// TestPalette: Ctrl-K finds pages, connections, runs and records, and texts of records stay
// texts.
func TestPalette(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank", DisplayName: "My bank", ConnectorName: "portal"},
		{ConnectionID: "mailbox", ConnectorName: "imap"}}
	s.run("run_0000000000000000000000001a", "bank",
		store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})})
	find := func(words string) string { return s.page("/ui/find?q=" + url.QueryEscape(words)) }
	for words, want := range map[string][]string{
		"":        {`href="/ui/runs"`, `href="/ui/settings"`, `href="/ui/runs/run_0000000000000000000000001a"`},
		"Audit":   {`href="/ui/audit"`},
		"my BANK": {`href="/ui/connections/bank"`, "<mark>", "my BANK*"},
		"1a":      {`href="/ui/runs/run_0000000000000000000000001a"`},
		"invoice": {`href="/ui/record?connection=bank&amp;key=%22%3E%3Cscript%3E"`, "invoice*</bdi></mark>",
			"There are more records", "&lt;script&gt;alert(1)"},
		`"a b`:    {`&#34;a b</bdi></mark>`},
		"slow":    {"takes longer than usual"},
		"nothing": {"Nothing was found"},
		"-":       {"Nothing was found"},
	} {
		got := find(words)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q: no %s in %s", words, w, got)
			}
		}
		if strings.Contains(got, "<script") || strings.Contains(got, "<b>") || strings.Contains(got, "<i>") {
			t.Errorf("%q: %s", words, got)
		}
	}
	if got := find("mailbox"); strings.Contains(got, `href="/ui/connections/bank"`) ||
		strings.Contains(got, `href="/ui/runs/`) {
		t.Errorf("%s", got)
	}
	for _, path := range strings.Split(find(""), `href="`)[1:] {
		path, _, _ = strings.Cut(path, `"`)
		if a := s.get(path); a.status != 200 && !strings.HasPrefix(path, "/ui/runs/") && path != "/ui/schedules" &&
			path != "/ui/keys" && path != "/ui/settings" {
			t.Errorf("the palette leads to %s: %d", path, a.status)
		}
	}
	if a := s.get("/ui/find?q=" + strings.Repeat("x", 1001)); a.status != 400 {
		t.Errorf("%d", a.status)
	}
}
