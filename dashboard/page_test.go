package dashboard

import (
	"testing"
	"time"
)

// TestPages: every page that is parsed when it is first shown can be parsed.
func TestPages(t *testing.T) {
	u, err := newFrame(waiting{}, "", time.Now)
	if err != nil || len(u.pages) < 15 {
		t.Fatalf("%d pages, %v", len(u.pages), err)
	}
	for name, page := range u.pages {
		if _, err := page(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
