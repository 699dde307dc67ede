package main

import (
	"net/url"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// settings are those of the connection.
type settings struct {
	url    *url.URL
	user   string
	handle string // stands for the password; "" sends none
}

func readSettings(run *guest.Run) (*settings, error) {
	var s struct {
		URL  string `json:"url"`
		User string `json:"user"`
	}
	if err := run.Config(&s); err != nil {
		return nil, invalid("%w", err)
	}
	text := strings.TrimSpace(s.URL)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || len(text) > 2000:
		return nil, invalid("url: %.80q is no URL of a server", s.URL)
	case u.User != nil:
		return nil, invalid("url: user and password do not belong into it; the user is a setting, the password a secret")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, invalid("url: want no query and no fragment")
	case s.User == "" || strings.ContainsAny(s.User, ":\r\n\x00") || len(s.User) > 200:
		return nil, invalid("user: want a name of at most 200 bytes without a colon")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return &settings{u, s.User, run.Secret("password")}, nil
}

func invalid(format string, args ...any) error {
	return guest.Fail("invalid_settings", false, guest.ManualActionRequired, "settings: "+format, args...)
}
