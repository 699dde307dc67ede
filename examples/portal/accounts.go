package main

import (
	"context"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// accounts reads the table on the first page.
func (t *teller) accounts(ctx context.Context) error {
	table, _, err := t.browser.Table(ctx, guest.ByTestID("accounts"), "Number", "Name", "Balance")
	if err != nil {
		return changed("the table of accounts", err)
	}
	for _, row := range table.Rows {
		if len(row) != 3 || row[0] == "" {
			return guest.Fail("page_changed", false, guest.NotRetriable, "a row of the accounts has %d cells", len(row))
		}
		record := map[string]string{"number": row[0], "name": row[1], "balance": row[2]}
		if err := t.run.Emit("accounts", row[0], record); err != nil {
			return err
		}
	}
	return nil
}
