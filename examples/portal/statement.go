package main

import (
	"context"
	"errors"
	"strings"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

var (
	months   = guest.ByLabel("Months")
	currency = guest.ByRole("combobox", "Currency")
	choices  = guest.ByRole("listbox", "Currencies")
	state    = guest.ByTestID("state")
	printed  = guest.ByTestID("document")
)

// A statement is the record of one.
type statement struct {
	ID       string      `json:"id"`
	Months   int         `json:"months"`
	Currency string      `json:"currency"`
	Document *guest.File `json:"document,omitempty"`
}

// statement orders one, reads its bookings and keeps it as PDF.
func (t *teller) statement(ctx context.Context) error {
	if _, err := t.browser.Navigate(ctx, t.settings.site+"/statement"); err != nil {
		return err
	}
	if err := t.order(ctx); err != nil {
		return err
	}
	if t.run.InScope("bookings") {
		if err := t.bookings(ctx); err != nil {
			return err
		}
	}
	if !t.run.InScope("statements") {
		return nil
	}
	return t.keep(ctx)
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
	if _, err := b.Click(ctx, guest.ByID("prepare"), guest.Declared("prepare-statement"),
		guest.Intent("order the statement"), guest.Expecting(ready)); err != nil {
		return changed("the order of the statement", err)
	}
	return nil
}

// keep has the browser save the PDF and the host keep it. Its bytes do not come here.
func (t *teller) keep(ctx context.Context) error {
	saved, err := t.browser.Click(ctx, printed, guest.Declared("save-statement"), guest.Expecting(guest.Downloaded("")))
	if err != nil {
		return changed("the statement as PDF", err)
	}
	files := saved.Downloads()
	if len(files) != 1 || files[0].Denied || files[0].Name == "" {
		return guest.Fail("page_changed", false, guest.NotRetriable,
			"the statement as PDF: want one file with a name, have %d files", len(files))
	}
	d := files[0]
	f, err := t.run.Attach(guest.Attachment{Stream: "statements", Field: "document", Name: d.Name, Handle: d.Handle})
	if err != nil && !errors.Is(err, abi.ENOTSUP) { // a host without files has the record alone
		return err
	}
	id := strings.TrimSuffix(d.Name, ".pdf")
	return t.run.Emit("statements", id,
		statement{ID: id, Months: int(t.settings.months), Currency: t.settings.currency, Document: f})
}
