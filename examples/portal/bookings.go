package main

import (
	"context"
	"errors"
	"strconv"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var (
	months   = guest.ByLabel("Months")
	currency = guest.ByRole("combobox", "Currency")
	choices  = guest.ByRole("listbox", "Currencies")
	state    = guest.ByTestID("state")
	more     = guest.ByTestID("more")
	next     = guest.ByTestID("next")
	pageNo   = guest.ByTestID("page")
)

// What a statement can have at most: 24 months of some hundred bookings.
const (
	maxPages   = 200
	maxScrolls = 100
)

// bookings orders a statement and reads all of it.
func (t *teller) bookings(ctx context.Context) error {
	b := t.browser
	if _, err := b.Navigate(ctx, t.settings.site+"/statement"); err != nil {
		return err
	}
	if err := t.order(ctx); err != nil {
		return err
	}
	for page := range maxPages {
		if err := t.run.Progress("Reading the statement", guest.OnStream("bookings"), guest.Count(page+1)); err != nil {
			return err
		}
		if err := t.unroll(ctx); err != nil {
			return err
		}
		if err := t.page(ctx); err != nil {
			return err
		}
		switch err := b.Expect(ctx, guest.IsEnabled(next), 0); {
		case errors.Is(err, guest.ErrPage): // the last one
			return nil
		case err != nil:
			return err
		}
		turned := guest.TextIs(pageNo, "Page "+strconv.Itoa(page+2))
		if _, err := b.Click(ctx, next, guest.Declared("next-page"), guest.Expecting(turned)); err != nil {
			return changed("the next page", err)
		}
	}
	return guest.Fail("page_changed", false, guest.NotRetriable, "the statement does not end")
}

// order says which statement is wanted, and orders it. That costs a fee each time,
// so it is not tried again: not here, and not by the host.
func (t *teller) order(ctx context.Context) error {
	b, want := t.browser, t.settings
	if _, err := b.Adjust(ctx, months, want.months, 0); err != nil {
		return changed("the slider of months", err)
	}
	if err := b.Expect(ctx, guest.TextIs(currency, want.currency), 0); errors.Is(err, guest.ErrPage) {
		if _, err := b.Click(ctx, currency, guest.Expecting(guest.IsVisible(choices))); err != nil {
			return changed("the list of currencies", err)
		}
		chosen := guest.TextIs(currency, want.currency)
		if _, err := b.Click(ctx, guest.ByRole("option", want.currency), guest.Expecting(chosen)); err != nil {
			return changed("the choice of a currency", err)
		}
	} else if err != nil {
		return err
	}
	ready := guest.TextIs(state, "Statement ready")
	if _, err := b.Click(ctx, guest.ByID("prepare"), guest.Declared("prepare-statement"), guest.Intent("order the statement"), guest.Expecting(ready)); err != nil {
		return changed("the order of the statement", err)
	}
	return nil
}

// unroll scrolls until the page says that all of its rows are there.
func (t *teller) unroll(ctx context.Context) error {
	for range maxScrolls {
		err := t.browser.Expect(ctx, guest.TextIs(more, "All rows"), 0)
		if !errors.Is(err, guest.ErrPage) {
			return err
		}
		_, err = t.browser.ScrollTo(ctx, more)
		if failed := (*guest.ActionError)(nil); err != nil && !errors.As(err, &failed) { // rows that came meanwhile push it away again
			return err
		}
	}
	return guest.Fail("page_changed", false, guest.NotRetriable, "the rows of a page do not end")
}

func (t *teller) page(ctx context.Context) error {
	table, truncated, err := t.browser.Table(ctx, guest.ByTestID("rows"), "ID", "Date", "Text", "Amount")
	if err != nil || truncated {
		return changed("the table of bookings", errors.Join(err, errWhen(truncated, "it is too large")))
	}
	for _, row := range table.Rows {
		if len(row) != 4 || row[0] == "" {
			return guest.Fail("page_changed", false, guest.NotRetriable, "a booking has %d cells", len(row))
		}
		record := map[string]string{"id": row[0], "date": row[1], "text": row[2], "amount": row[3]}
		if err := t.run.Emit("bookings", row[0], record); err != nil {
			return err
		}
	}
	return nil
}

func errWhen(on bool, text string) error {
	if on {
		return errors.New(text)
	}
	return nil
}
