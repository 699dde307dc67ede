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

// Make returns the n-th item.
func Make(n int) Item {
	id := strconv.Itoa(100_000_000 + n)
	return Item{
		ID: id, Name: "Customer " + id, Email: "customer" + id + "@mail.example", City: "Springfield",
		Amount: float64(n%10_000) + 0.25, Count: n % 100, Active: n%2 == 0,
		Created: "2026-01-02T03:04:05Z", Note: "an ordinary note of some length",
	}
}
