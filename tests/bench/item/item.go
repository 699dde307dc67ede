// Package item is the record that the benchmarks ingest: about 200 bytes of
// JSON, different for every n.
package item

import "strconv"

// An Item is one record.
type Item struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Email   string  `json:"email"`
	City    string  `json:"city"`
	Amount  float64 `json:"amount"`
	Count   int     `json:"count"`
	Active  bool    `json:"active"`
	Created string  `json:"created_at"`
	Note    string  `json:"note"`
}

// Texts as a connector would have read them: making them is not measured.
var (
	names = [...]string{"Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Niklaus Wirth",
		"Frances Allen", "Tony Hoare", "Radia Perlman"}
	emails = [...]string{"ada@mail.example", "grace@mail.example", "edsger@mail.example", "barbara@mail.example",
		"niklaus@mail.example", "frances@mail.example", "tony@mail.example", "radia@mail.example"}
)

// Fill makes a page of items, from the n-th on, as a connector gets them from a
// service: their ids are parts of one text.
func Fill(page []Item, n int) {
	const digits = 9
	ids := make([]byte, 0, digits*len(page))
	for i := range page {
		ids = strconv.AppendInt(ids, int64(100_000_000+n+i), 10)
	}
	text := string(ids)
	for i := range page {
		k := n + i
		page[i] = Item{
			ID: text[digits*i : digits*(i+1)], Name: names[k%len(names)], Email: emails[k%len(emails)], City: "Springfield",
			Amount: float64(k%10_000) + 0.25, Count: k % 100, Active: k%2 == 0,
			Created: "2026-01-02T03:04:05Z", Note: "an ordinary note of some length",
		}
	}
}

// Pages calls emit for count items from the first-th on.
func Pages(first, count int, emit func(*Item) error) error {
	page := make([]Item, 100)
	for n, end := first, first+count; n < end; n += len(page) {
		page = page[:min(len(page), end-n)]
		Fill(page, n)
		for i := range page {
			if err := emit(&page[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
