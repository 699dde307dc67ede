// Command portal collects accounts and bookings from a bank that has no API, only
// web pages: it signs in, asks its owner for the code that the bank sends, sets a
// slider and a list box, orders a statement exactly once, reads it page by page and
// keeps it as PDF. The browser belongs to the host; the connector says what is to be done and
// what must come of it.
package main

import (
	"context"
	"fmt"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

// A teller is one run.
type teller struct {
	run      *guest.Run
	browser  *guest.Browser
	settings *settings
}

func collect(ctx context.Context, run *guest.Run) error {
	s, err := readSettings(run)
	if err != nil {
		return err
	}
	t := &teller{run: run, browser: run.Browser(), settings: s}
	if _, err := t.browser.Open(ctx, "", guest.Establish()); err != nil {
		return fmt.Errorf("open the browser: %w", err)
	}
	if err := t.signIn(ctx); err != nil {
		return err
	}
	if run.InScope("accounts") {
		if err := t.accounts(ctx); err != nil {
			return err
		}
	}
	if run.InScope("bookings") || run.InScope("statements") {
		if err := t.statement(ctx); err != nil {
			return err
		}
	}
	return t.browser.Close(ctx)
}

// step says what the run is about to do: to the owner, and to the host's watch over
// signing in.
func (t *teller) step(ctx context.Context, phase string, done bool) error {
	if err := t.run.Progress(phase); err != nil {
		return err
	}
	return t.browser.Mark(ctx, phase, done)
}

// changed is the error for a page that is not as it was when this connector was
// written. A retry would not help.
func changed(what string, err error) error {
	return guest.Fail("page_changed", false, guest.NotRetriable, "%s: %w", what, err)
}
