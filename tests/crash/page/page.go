// Package page says what the connector of the crash tests emits, so that the
// tests know it without being told: everything is a function of the number of
// a page.
package page

import (
	"fmt"
	"strings"
)

// Latest is the one key of the stream latest; every page replaces its record.
const Latest = "latest"

// An Item is a record of the stream items. It never changes.
type Item struct {
	ID   string `json:"id"`
	Page int    `json:"page"`
	Note string `json:"note"`
}

// A Mark is the record of the stream latest.
type Mark struct {
	ID   string `json:"id"`
	Page int    `json:"page"`
}

// Items are the records of page p, in the order in which they are emitted.
func Items(p int) []Item {
	items := make([]Item, 1+p*37%120)
	for i := range items {
		items[i] = Item{fmt.Sprintf("p%05d-%03d", p, i), p, fmt.Sprintf("%0*d", 20+p*i%200, p)}
	}
	return items
}

// Small is the file of the first item of page p; two pages share one.
func Small(p int) string { return fmt.Sprint("small file ", p/2) }

// Long is the file of the record of the stream latest at page p: too long to be part of a
// commit.
func Long(p int) string { return strings.Repeat(fmt.Sprintf("long file %d\n", p), 6000) }
