package dashboard_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
)

// The button More leads to the next page, and the export has the stream, order and search of what is shown.
func TestMoreRecords(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	records := map[string]any{}
	for n := range 120 {
		records[fmt.Sprintf("key%03d", n)] = map[string]string{"text": "some more"}
	}
	s.collect(s.run("run_1", "bank"), "a/b&c", records)
	keys := regexp.MustCompile(`key\d{3}`)
	more := regexp.MustCompile(`href="(/ui/records\?[^"]*after=[^"]*)"`)
	seen := map[string]bool{}
	at := "/ui/records?connection=bank&stream=a%2Fb%26c&order=key&find=some+more"
	for n := 1; ; n++ {
		page := s.page(at)
		for _, k := range keys.FindAllString(page, -1) {
			seen[k] = true
		}
		want := `href="/v1/connections/bank/streams/a%2Fb&c/export?format=csv&find=some+more&order=key"`
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("page %d has no %s: %q", n, want, regexp.MustCompile(`href="/v1[^"]*"`).FindAllString(page, -1))
		}
		next := more.FindStringSubmatch(page)
		if next == nil {
			break
		}
		if at = html.UnescapeString(next[1]); n > 3 {
			t.Fatalf("page %d leads to another one, %s", n, at)
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d records on all pages, want 120", len(seen))
	}
}
