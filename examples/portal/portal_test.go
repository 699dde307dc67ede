//go:build !wasip1

package main

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

const handle = "sluice-sealed-v1-aaaaaaaaaaaaaaaaaaaaaaaaaa"

// A bank is the site as a fake has it: what the pages say, not how they look.
type bank struct {
	pages    *guesttest.Pages
	known    bool
	prepared int
	shown    int // pages of the statement that were turned to
}

func newBank() *bank {
	b := &bank{}
	b.pages = &guesttest.Pages{Load: func(url string) *guesttest.Page {
		switch path, ok := strings.CutPrefix(url, "https://bank.test"); {
		case !ok:
			return nil
		case !b.known:
			return b.login()
		case path == "/statement":
			return b.statement()
		default:
			return b.accounts()
		}
	}}
	return b
}

func (b *bank) login() *guesttest.Page {
	page := &guesttest.Page{URL: "https://bank.test/login", Title: "Sign in"}
	dialog := &guesttest.Element{Role: "dialog", Name: "Cookies"}
	accept := &guesttest.Element{Role: "button", Text: "Accept", OnClick: func(*guesttest.Pages) { page.Remove(dialog) }}
	user := &guesttest.Element{Role: "textbox", Label: "User name"}
	word := &guesttest.Element{Role: "textbox", Label: "Password"}
	submit := &guesttest.Element{Role: "button", Text: "Sign in", OnClick: func(p *guesttest.Pages) {
		if user.Value == "ada" && word.Value == handle {
			p.Page = b.code()
			return
		}
		page.Add(&guesttest.Element{Role: "alert", Text: "That was not right."})
	}}
	page.Add(dialog, accept, user, word, submit)
	return page
}

func (b *bank) code() *guesttest.Page {
	page := &guesttest.Page{URL: "https://bank.test/code", Title: "Code"}
	field := &guesttest.Element{Role: "textbox", Label: "Code"}
	page.Add(field, &guesttest.Element{Role: "button", Text: "Confirm", OnClick: func(p *guesttest.Pages) {
		if field.Value != "271828" {
			page.Add(&guesttest.Element{Role: "alert", Text: "That was not right."})
			return
		}
		b.known = true
		p.Page = b.accounts()
	}})
	return page
}

func (b *bank) accounts() *guesttest.Page {
	return &guesttest.Page{URL: "https://bank.test/accounts", Title: "Accounts", Elements: []*guesttest.Element{
		{Role: "heading", Text: "Accounts"},
		{Role: "table", TestID: "accounts",
			Table: &guest.Table{Columns: []string{"Number", "Name", "Balance"}, Rows: [][]string{{"1", "Everyday", "4.00"}}}},
	}}
}

func (b *bank) statement() *guesttest.Page {
	months, open := 3.0, false
	page := &guesttest.Page{URL: "https://bank.test/statement", Title: "Statement"}
	slider := &guesttest.Element{Role: "slider", Label: "Months", Number: &months, Min: 1, Max: 24}
	box := &guesttest.Element{Role: "combobox", Name: "Currency", Text: "CHF"}
	list := &guesttest.Element{Role: "listbox", Name: "Currencies"}
	euro := &guesttest.Element{Role: "option", Text: "EUR", In: list}
	euro.OnClick = func(*guesttest.Pages) { box.Text = "EUR"; page.Remove(list, euro) }
	box.OnClick = func(*guesttest.Pages) {
		if open = !open; open {
			page.Add(list, euro)
		}
	}
	state := &guesttest.Element{TestID: "state", Text: "Not prepared"}
	table := &guesttest.Element{Role: "table", TestID: "rows"}
	more := &guesttest.Element{TestID: "more"}
	number := &guesttest.Element{Role: "heading", TestID: "page"}
	next := &guesttest.Element{Role: "button", TestID: "next", Text: "Next page", Disabled: true}
	turn := func(*guesttest.Pages) {
		b.shown++
		number.Text = "Page " + strconv.Itoa(b.shown)
		more.Text, next.Disabled = "More below…", true
		table.Table = &guest.Table{Columns: []string{"ID", "Date", "Text", "Amount"}}
	}
	next.OnClick = turn
	prepare := &guesttest.Element{ID: "prepare", Role: "button", Text: "Prepare statement",
		OnClick: func(p *guesttest.Pages) {
			b.prepared++
			state.Text = "Statement ready"
			turn(p)
		}}
	document := &guesttest.Element{TestID: "document", Role: "link", Text: "Statement as PDF", Offers: &guesttest.Offer{
		Name: "statement-7.pdf", MIME: "application/pdf", Content: []byte("%PDF-1.4 seven"),
	}}
	page.Add(slider, box, prepare, state, number, table, more, next, document)
	b.scrolls(page, more, next, table)
	return page
}

// scrolls has a row of the statement come for each look at its end.
func (b *bank) scrolls(page *guesttest.Page, more, next *guesttest.Element, table *guesttest.Element) {
	more.OnScroll = func(*guesttest.Pages) {
		n := len(table.Table.Rows)
		id := string(rune('A'+b.shown)) + string(rune('0'+n))
		table.Table.Rows = append(table.Table.Rows, []string{id, "2026-06-30", "Bakery", "-5.00 EUR"})
		if n == 1 {
			more.Text, next.Disabled = "All rows", b.shown == 2
		}
	}
}

func collected(t *testing.T, b *bank, password string, answers ...guesttest.Answer) *guesttest.Result {
	return guesttest.Run(t, connector, guesttest.Options{
		Manifest: manifest, Config: map[string]any{"site": "https://bank.test/", "user": "ada", "currency": "EUR"},
		Secrets: map[string]string{"password": password}, Answers: answers, Pages: b.pages,
	})
}

// TestStatement: everything is collected, the statement is ordered once, and
// neither password nor code is in the transcript.
func TestStatement(t *testing.T) {
	b := newBank()
	res := collected(t, b, handle, guesttest.Code("271828"))
	if res.Status != abi.Succeeded || len(res.Records["accounts"]) != 1 || len(res.Records["bookings"]) != 4 {
		t.Fatalf("%s: %v\n%s\n%s", res.Status, res.Records, res.Transcript, strings.Join(b.pages.Log, "\n"))
	}
	if b.prepared != 1 {
		t.Errorf("%d statements were ordered", b.prepared)
	}
	if n := len(res.Records["statements"]); n != 1 || len(res.Files) != 1 ||
		!strings.Contains(res.Transcript, "ATTACH statements.document application/pdf 14 bytes") {
		t.Errorf("%d statements, files %v\n%s", n, res.Files, res.Transcript)
	}
	if strings.Contains(res.Transcript, "271828") || strings.Contains(res.Transcript, handle) {
		t.Error("a secret is in the transcript")
	}
}

// TestSignedIn: an owner who is signed in already is asked nothing.
func TestSignedIn(t *testing.T) {
	b := newBank()
	b.known = true
	if res := collected(t, b, handle); res.Status != abi.Succeeded {
		t.Errorf("%s\n%s", res.Status, res.Transcript)
	}
}

// TestRefused: a wrong password or code is reported, and not tried again.
func TestRefused(t *testing.T) {
	for name, res := range map[string]*guesttest.Result{
		"password": collected(t, newBank(), "sluice-sealed-v1-bbbbbbbbbbbbbbbbbbbbbbbbbb"),
		"code":     collected(t, newBank(), handle, guesttest.Code("000000")),
	} {
		if res.Status != abi.Failed || res.Done == nil || res.Done.Error == nil || res.Done.Error.Code != "sign_in_refused" ||
			*res.Done.Error.Retryable {
			t.Errorf("%s: %s\n%s", name, res.Status, res.Transcript)
		}
	}
}
