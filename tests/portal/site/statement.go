package site

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// An account is one of the customer's accounts.
type account struct{ Number, Name, Balance string }

var ledger = []account{
	{"CH-100-1", "Everyday account", "4 211.35"},
	{"CH-100-2", "Savings account", "18 900.00"},
}

func (s *Site) accounts(w http.ResponseWriter, _ *http.Request, _ *session) {
	render(w, "accounts.html", view{Greeting: s.o.Greeting, Accounts: ledger})
}

func (s *Site) statement(w http.ResponseWriter, _ *http.Request, _ *session) {
	render(w, "statement.html", view{Greeting: s.o.Greeting})
}

// prepare orders a statement. It costs a fee, and doing it twice costs two.
func (s *Site) prepare(w http.ResponseWriter, r *http.Request, own *session) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	months, err := strconv.Atoi(r.PostFormValue("months"))
	currency := r.PostFormValue("currency")
	if err != nil || months < 1 || months > 24 || rates[currency] == 0 {
		http.Error(w, "want months from 1 to 24 and a currency", http.StatusBadRequest)
		return
	}
	s.truth.Prepared++
	own.months, own.currency, own.prepared = months, currency, true
	answer(w, map[string]int{"rows": months * perMonth, "pages": (months*perMonth + perPage - 1) / perPage})
}

const (
	perMonth = 10
	perPage  = 25
)

var rates = map[string]float64{"CHF": 1, "EUR": 1.05, "USD": 1.12}

// A Row is one booking of a statement.
type Row struct {
	ID     string `json:"id"`
	Date   string `json:"date"`
	Text   string `json:"text"`
	Amount string `json:"amount"`
}

// RowOf is the nth booking of a statement in a currency, the newest first.
func RowOf(n int, currency string) Row {
	day := time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC).AddDate(0, 0, -3*n)
	shops := []string{"Bakery Sommer", "Railway ticket", "Bookshop <Nord>", "Rent & heating", "Salary"}
	amount := -float64(500+n*37%4000) / 100
	if n%5 == 4 {
		amount *= -10
	}
	return Row{
		ID: fmt.Sprintf("B%04d", n), Date: day.Format(time.DateOnly), Text: shops[n%len(shops)],
		Amount: fmt.Sprintf("%.2f %s", amount*rates[currency], currency),
	}
}

// rows sends a part of a page: from is a place in the page.
func (s *Site) rows(w http.ResponseWriter, r *http.Request, own *session) {
	page, err1 := strconv.Atoi(r.URL.Query().Get("page"))
	from, err2 := strconv.Atoi(r.URL.Query().Get("from"))
	total := own.months * perMonth
	if err1 != nil || err2 != nil || !own.prepared || page < 0 || from < 0 || from >= perPage || page*perPage >= total {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	if from == 0 {
		s.truth.Pages++
	}
	last := min(total, (page+1)*perPage)
	out := []Row{}
	for n := page*perPage + from; n < last && len(out) < 10; n++ {
		out = append(out, RowOf(n, own.currency))
	}
	answer(w, map[string]any{"rows": out, "end": page*perPage+from+len(out) >= last, "last": last == total})
}
