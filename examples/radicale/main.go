// Command radicale lists the calendars and address books of a Radicale server the
// way a person does: by signing in on its web page and reading what it shows. It is
// there to show a page that nobody here wrote; for what is in the calendars, see
// examples/caldav.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

const stream = "collections"

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

// settings are those of the connection.
type settings struct {
	URL  string `json:"url"`
	User string `json:"user"`
}

func readSettings(run *guest.Run) (s settings, err error) {
	if err := run.Config(&s); err != nil {
		return s, guest.Fail("settings_invalid", false, guest.NotRetriable, "read settings: %w", err)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return s, guest.Fail("settings_invalid", false, guest.NotRetriable, "url: %.80q is no address of a server", s.URL)
	}
	s.URL = u.JoinPath(".web", "/").String()
	return s, nil
}

func collect(ctx context.Context, run *guest.Run) error {
	s, err := readSettings(run)
	if err != nil {
		return err
	}
	b := run.Browser()
	if _, err := b.Open(ctx, s.URL, guest.Ephemeral()); err != nil {
		return fmt.Errorf("open the browser: %w", err)
	}
	if err := signIn(ctx, b, s.User, run.Secret("password")); err != nil {
		return err
	}
	list, err := collections(ctx, b)
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := run.Emit(stream, c.URL, &c); err != nil {
			return err
		}
	}
	return b.Close(ctx)
}

// signIn fills in Radicale's form. The password is a handle; the host types what
// stands behind it.
func signIn(ctx context.Context, b *guest.Browser, user, password string) error {
	if _, err := b.WaitFor(ctx, guest.ByPlaceholder("Username"), "visible", 20*time.Second); err != nil {
		return changed(err)
	}
	if _, err := b.Fill(ctx, guest.ByPlaceholder("Username"), user); err != nil {
		return changed(err)
	}
	if _, err := b.Fill(ctx, guest.ByPlaceholder("Password"), password); err != nil {
		return changed(err)
	}
	listed := guest.IsVisible(guest.ByRole("heading", "Collections"))
	_, err := b.Click(ctx, guest.ByRole("button", "Next"), guest.Declared("sign-in"), guest.Expecting(listed))
	if failed := (*guest.ActionError)(nil); errors.As(err, &failed) {
		return guest.Fail("sign_in_refused", false, guest.NotRetriable, "the list of collections did not come: %w", err)
	}
	return err
}

func changed(err error) error {
	return guest.Fail("page_changed", false, guest.NotRetriable, "the login form: %w", err)
}

// A collection is a calendar or an address book.
type collection struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Kind  string `json:"kind"`
}

// collections reads the list. Radicale keeps a hidden article as the pattern of
// the others, which has no text to be seen.
func collections(ctx context.Context, b *guest.Browser) ([]collection, error) {
	const each = "#collectionsscene article:not(.hidden) "
	columns := map[string][]string{}
	for _, name := range []string{"[data-name=title]", "small", "a[data-name=url]"} {
		texts, truncated, err := b.Texts(ctx, guest.ByCSS(each+name))
		if err == nil && truncated {
			err = errors.New("there are too many")
		}
		if err != nil {
			return nil, changed(fmt.Errorf("read %s: %w", name, err))
		}
		columns[name] = texts
	}
	titles, kinds, urls := columns["[data-name=title]"], columns["small"], columns["a[data-name=url]"]
	if len(titles) != len(urls) || len(kinds) != len(urls) {
		return nil, changed(fmt.Errorf("%d titles, %d kinds and %d addresses", len(titles), len(kinds), len(urls)))
	}
	list := make([]collection, len(urls))
	for i := range urls {
		list[i] = collection{URL: urls[i], Title: titles[i], Kind: strings.Trim(kinds[i], "[] ")}
	}
	return list, nil
}
