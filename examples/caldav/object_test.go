//go:build !wasip1

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	for _, tt := range []struct{ value, zone, want string }{
		{"20260310", "", "2026-03-10"},
		{"20260310T090000Z", "", "2026-03-10T09:00:00Z"},
		{"20260310T090000", "", "2026-03-10T09:00:00"},
		{"20260310T090000", "Europe/Berlin", "2026-03-10T09:00:00+01:00"},
		{"20260710T090000", "/freeassociation.sourceforge.net/Europe/Berlin", "2026-07-10T09:00:00+02:00"},
		{"20260710T090000", `"America/New_York"`, "2026-07-10T09:00:00-04:00"},
		{"20260710T090000", "Somewhere", "2026-07-10T09:00:00"},
		{"20260710T090000", "Local", "2026-07-10T09:00:00"},
		{"20261340", "", ""},
		{"00000101", "", ""},
		{"soon", "", ""},
		{"", "", ""},
	} {
		m, ok := parseMoment(tt.value, tt.zone)
		got := ""
		if ok {
			got = m.String()
		}
		if got != tt.want {
			t.Errorf("%s in %q is %q, want %q", tt.value, tt.zone, got, tt.want)
		}
	}
	m, _ := parseMoment("20260328T120000", "Europe/Berlin") // the clocks change in the night
	if got := m.plus(24 * time.Hour).String(); got != "2026-03-29T12:00:00+02:00" {
		t.Errorf("one day later: %s", got)
	}
	if got := m.plus(-1).String(); got == "" {
		t.Error("a negative duration")
	}
}

func TestCard(t *testing.T) {
	text := "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:1\r\nFN:Lovelace\\, Ada\r\nN:Love\\;lace;Ada;Augusta,King;Countess;\r\nORG:Analytical;Engines\r\n" +
		"item1.EMAIL;TYPE=\"work,pref\":ada@example.org\r\nTEL;VALUE=uri;TYPE=cell:tel:+44-1\r\nNOTE:two\\nlines\\, C:\\\\new\r\nCATEGORIES:a,b\r\n" +
		"PHOTO;ENCODING=b;TYPE=JPEG:" + strings.Repeat("QUJD\r\n ", 1000) +
		"QUJD\r\nX-ODD;;;:\r\nREV:20260101T000000Z\r\nEND:VCARD\r\n"
	card, pictures, err := parseCard([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r := contactRecord(&object{in: &collection{}}, card, pictures > 0)
	for member, want := range map[string]string{
		"name": `"Lovelace, Ada"`, "family_name": `"Love;lace"`, "given_name": `"Ada"`,
		"prefixes": `"Countess"`, "suffixes": `null`, "organization": `"Analytical, Engines"`,
		"emails": `[{"types":["work"],"value":"ada@example.org"}]`, "phones": `[{"types":["cell"],"value":"+44-1"}]`,
		"note": `"two\nlines, C:\\new"`, "categories": `["a","b"]`, "has_photo": `true`,
	} {
		got, err := json.Marshal(r[member])
		if err != nil || string(got) != want {
			t.Errorf("%s is %s, want %s", member, got, want)
		}
	}
}

// Objects come from strangers: whatever they contain, they are read or refused in
// bounded time.
func TestHostileObjects(t *testing.T) {
	o := &object{in: &collection{}}
	read := func(data string) {
		if cal, err := parseCalendar([]byte(data)); err == nil && len(cal.Children) > 0 {
			eventRecord(o, series(cal.Children))
			todoRecord(o, series(cal.Children))
		}
		if card, n, err := parseCard([]byte(data)); err == nil {
			contactRecord(o, card, n > 0)
		}
	}
	event := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;TZID=Europe/Berlin:20260101T000000\r\nDURATION:P1D\r\nATTENDEE;CN=\"A\":mailto:a\r\nRDATE;VALUE=PERIOD:20260101T000000Z/PT1H\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	for _, data := range []string{
		"", "BEGIN", "BEGIN:VCALENDAR", "BEGIN:VEVENT\r\nEND:VCALENDAR", "\x00\xff", "BEGIN:VCARD\r\nFN;X=\"",
		"BEGIN:VCARD\r\nFN;X=\"\\", "BEGIN:VCARD\r\nN:\r\nADR:\r\nORG:\r\nEND:VCARD",
		strings.Repeat("BEGIN:VCALENDAR\r\n", 10_000), strings.Repeat(" folded\r\n", 100_000),
		"A" + strings.Repeat("\r\n b", 500_000), strings.Replace(event, "P1D", "P99999999999999999D", 1),
		strings.Replace(event, "P1D", "-P1D", 1), strings.Replace(event, "P1D", "P", 1),
		strings.Replace(event, "CN=\"A\"", "CN="+strings.Repeat("a", 1<<20), 1),
		strings.Replace(event, "20260101T000000\r", "99991231T235959\r", 1),
		strings.Replace(event, "BEGIN:VEVENT", "BEGIN:VEVENT\r\n"+strings.Repeat("ATTENDEE:a\r\n", 50_000), 1),
	} {
		read(data)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		b := []byte(event + card)
		for range 1 + random.IntN(4) {
			i, j := random.IntN(len(b)), random.IntN(len(b))
			switch random.IntN(3) {
			case 0:
				b[i] = byte(random.IntN(256))
			case 1:
				b = append(b[:min(i, j):min(i, j)], b[max(i, j):]...)
			default:
				b = append(b[:i:i], b[j:]...)
			}
			if len(b) == 0 {
				b = []byte("B")
			}
		}
		read(string(b))
	}
}

// A cursor stays below the host's limit and loses entries, not itself.
func TestLedger(t *testing.T) {
	l := &ledger{Token: "t", entries: map[key]entry{}}
	for i := range 20_000 {
		l.entries[keyOf(fmt.Sprint(i))] = entry{digestOf("x"), 1}
	}
	c := cursor{Shape: "s", Ledgers: map[string]*ledger{"a": l}}
	if c.pack() {
		t.Error("everything fits")
	}
	b, err := json.Marshal(c)
	if err != nil || len(b) > 256<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	var back cursor
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	back.Ledgers["a"].unpack()
	if n := len(back.Ledgers["a"].entries); n < 12_000 || !back.Ledgers["a"].Partial || back.Ledgers["a"].Token != "t" {
		t.Errorf("%d entries are left", n)
	}
	odd := cursor{Ledgers: map[string]*ledger{}}
	for i := range maxCollections {
		odd.Ledgers[keyOf(fmt.Sprint(i)).String()] = &ledger{Token: strings.Repeat("<", maxToken),
			Tag: strings.Repeat("\x01", maxTag), entries: map[key]entry{{}: {}}}
	}
	odd.pack()
	if b, err = json.Marshal(odd); err != nil || len(b) > 256<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	broken := &ledger{Token: "t", Known: "AAAA"}
	if broken.unpack(); broken.Token != "" || len(broken.entries) != 0 {
		t.Error("a broken ledger is believed")
	}
}
