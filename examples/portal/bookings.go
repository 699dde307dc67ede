package main

import (
	"context"
	"errors"
	"strconv"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var (
	more   = guest.ByTestID("more")
	next   = guest.ByTestID("next")
	pageNo = guest.ByTestID("page")
)

// What a statement can have at most: 24 months of some hundred bookings.
const (
	maxPages   = 200
	maxScrolls = 100
)

// bookings reads all pages of the statement.
func (t *teller) bookings(ctx context.Context) error {
	b := t.browser
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

// unroll scrolls until the page says that all of its rows are there.
func (t *teller) unroll(ctx context.Context) error {
	for range maxScrolls {
		err := t.browser.Expect(ctx, guest.TextIs(more, "All rows"), 0)
		if !errors.Is(err, guest.ErrPage) {
			return err
		}
		_, err = t.browser.ScrollTo(ctx, more)
		// rows that came meanwhile push it away again
		if failed := (*guest.ActionError)(nil); err != nil && !errors.As(err, &failed) {
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
