package main

import (
	"net/url"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

const maxFeeds = 1000

// Settings are the connection's.
type settings struct {
	Feeds      []string `json:"feeds"` // URLs
	Enclosures bool     `json:"enclosures"`
}

// readSettings reads and checks them, with each URL once.
func readSettings(run *guest.Run) (*settings, error) {
	var s settings
	if err := run.Config(&s); err != nil {
		return nil, invalid("%w", err)
	}
	if len(s.Feeds) == 0 || len(s.Feeds) > maxFeeds {
		return nil, invalid("feeds lists %d URLs, want 1 to %d", len(s.Feeds), maxFeeds)
	}
	seen := map[string]bool{}
	var urls []string
	for _, text := range s.Feeds {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || len(text) > 500 {
			return nil, invalid("feeds: %.80q is no URL of a feed", text)
		}
		if !seen[text] {
			seen[text] = true
			urls = append(urls, text)
		}
	}
	s.Feeds = urls
	return &s, nil
}

func invalid(format string, args ...any) error {
	return guest.Fail("invalid_settings", false, guest.ManualActionRequired, "settings: "+format, args...)
}
