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

// Texts as a connector has them from what it read: making them is not what is
// measured.
var (
	names  = [...]string{"Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Niklaus Wirth", "Frances Allen", "Tony Hoare", "Radia Perlman"}
	emails = [...]string{"ada@mail.example", "grace@mail.example", "edsger@mail.example", "barbara@mail.example", "niklaus@mail.example", "frances@mail.example", "tony@mail.example", "radia@mail.example"}
)

// Make returns the n-th item.
func Make(n int) Item {
	return Item{
		ID: strconv.Itoa(100_000_000 + n), Name: names[n%len(names)], Email: emails[n%len(emails)], City: "Springfield",
		Amount: float64(n%10_000) + 0.25, Count: n % 100, Active: n%2 == 0,
		Created: "2026-01-02T03:04:05Z", Note: "an ordinary note of some length",
	}
}
