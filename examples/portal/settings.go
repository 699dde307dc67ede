package main

import (
	"net/url"
	"slices"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// settings are those of the connection.
type settings struct {
	site     string // origin, without a slash at its end
	user     string
	password string // a handle
	months   float64
	currency string
}

var currencies = []string{"CHF", "EUR", "USD"}

func readSettings(run *guest.Run) (*settings, error) {
	s := struct {
		Site     string  `json:"site"`
		User     string  `json:"user"`
		Months   float64 `json:"months"`
		Currency string  `json:"currency"`
	}{Months: 6, Currency: "CHF"}
	if err := run.Config(&s); err != nil {
		return nil, invalid("%w", err)
	}
	u, err := url.Parse(strings.TrimRight(s.Site, "/"))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" || u.RawQuery != "":
		return nil, invalid("site: %.80q is no address of a site; write https://HOST", s.Site)
	case s.Months < 1 || s.Months > 24 || s.Months != float64(int(s.Months)):
		return nil, invalid("months: want a whole number from 1 to 24")
	case !slices.Contains(currencies, s.Currency):
		return nil, invalid("currency: want one of %s", strings.Join(currencies, ", "))
	}
	return &settings{site: u.Scheme + "://" + u.Host, user: s.User, password: run.Secret("password"), months: s.Months,
		currency: s.Currency}, nil
}

func invalid(format string, args ...any) error {
	return guest.Fail("settings_invalid", false, guest.NotRetriable, format, args...)
}
