package main

import (
	"net/url"
	"regexp"
	"strings"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

const (
	maxRepositories = 1000
	defaultAPI      = "https://api.github.com/"
	// defaultRequests is below the hourly limit of a token, and of none.
	defaultRequests, defaultRequestsWithoutToken = 4000, 50
	maxRequests                                  = 9000
	defaultWait, maxWait                         = 60, 900 // seconds
)

// settings are the connection's.
type settings struct {
	api          string // with a slash at the end
	user         string // "": whose token it is
	repositories []string
	token        string // a handle, or ""
	requests     int
	wait         time.Duration
}

var (
	loginPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}/[A-Za-z0-9._-]{1,100}$`)
)

// isFullName reports whether text can be OWNER/NAME: it becomes part of a path.
func isFullName(text string) bool {
	return namePattern.MatchString(text) && !strings.HasSuffix(text, "/.") && !strings.HasSuffix(text, "/..")
}

func readSettings(run *guest.Run) (settings, error) {
	var s struct {
		API          string   `json:"api"`
		User         string   `json:"user"`
		Repositories []string `json:"repositories"`
		MaxRequests  int      `json:"max_requests"`
		MaxWait      *int     `json:"max_wait_seconds"`
	}
	if err := run.Config(&s); err != nil {
		return settings{}, invalid("%w", err)
	}
	set := settings{user: s.User, token: run.Secret("token"), requests: s.MaxRequests, wait: defaultWait * time.Second}
	var err error
	if set.api, err = apiBase(s.API); err != nil {
		return settings{}, err
	}
	if s.User != "" && !loginPattern.MatchString(s.User) {
		return settings{}, invalid("user %.80q is no name of a GitHub account", s.User)
	}
	if len(s.Repositories) > maxRepositories {
		return settings{}, invalid("repositories lists %d, want at most %d", len(s.Repositories), maxRepositories)
	}
	seen := map[string]bool{}
	for _, name := range s.Repositories {
		if !isFullName(name) {
			return settings{}, invalid("repositories: %.80q is not of the form OWNER/NAME", name)
		}
		if key := strings.ToLower(name); !seen[key] {
			seen[key] = true
			set.repositories = append(set.repositories, name)
		}
	}
	if set.token == "" && set.user == "" && (len(set.repositories) == 0 || run.InScope("stars")) {
		return settings{}, invalid(
			"without a token, user must name the account to collect, or repositories those to collect with stars left out of the scope")
	}
	switch {
	case set.requests < 0 || set.requests > maxRequests:
		return settings{}, invalid("max_requests is %d, want 1 to %d", set.requests, maxRequests)
	case set.requests == 0 && set.token == "":
		set.requests = defaultRequestsWithoutToken
	case set.requests == 0:
		set.requests = defaultRequests
	}
	if s.MaxWait != nil {
		if *s.MaxWait < 0 || *s.MaxWait > maxWait {
			return settings{}, invalid("max_wait_seconds is %d, want 0 to %d", *s.MaxWait, maxWait)
		}
		set.wait = time.Duration(*s.MaxWait) * time.Second
	}
	return set, nil
}

// apiBase checks the address of another GitHub. The host decides whether it may be
// reached, and whether it may get the token.
func apiBase(text string) (string, error) {
	if text == "" {
		return defaultAPI, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" ||
		u.Fragment != "" || len(text) > 500 {
		return "", invalid("api: %.80q is no address of a GitHub API, such as https://github.example.com/api/v3", text)
	}
	return strings.TrimSuffix(u.String(), "/") + "/", nil
}

func invalid(format string, args ...any) error {
	return guest.Fail("invalid_settings", false, guest.ManualActionRequired, "settings: "+format, args...)
}
