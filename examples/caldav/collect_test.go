//go:build !wasip1

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

const card = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:ada\r\nFN:Ada\r\nEND:VCARD\r\n"

func filledFake() *fake {
	f := newFake()
	f.event("/dav/sam/work/a.ics", "SUMMARY:A", "DTSTART:20260101T100000Z")
	f.event("/dav/sam/work/b c.ics", "SUMMARY:B", "DTSTART:20260201T100000Z")
	f.event("/dav/sam/home/d.ics", "SUMMARY:D", "DTSTART;VALUE=DATE:20260301")
	f.put("/dav/sam/home/t.ics",
		"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VTODO\r\nUID:t\r\nDTSTAMP:20260101T000000Z\r\nSUMMARY:T\r\nEND:VTODO\r\nEND:VCALENDAR\r\n")
	f.put("/dav/sam/people/ada.vcf", card)
	return f
}

func succeeded(t *testing.T, r *guesttest.Result) {
	t.Helper()
	if r.Status != abi.Succeeded || len(r.Skips) > 0 || len(r.Gaps) > 0 {
		t.Fatalf("want success in full\n%s", r.Transcript)
	}
}

func same(t *testing.T, r *guesttest.Result, stream string, want ...string) {
	t.Helper()
	if d := cmp.Diff(append([]string{}, want...), of(r, stream)); d != "" {
		t.Errorf("%s: %s\n%s", stream, d, r.Transcript)
	}
}

// With sync tokens and without, in one answer and in pages, known and forgotten:
// the records are the same.
func TestChanges(t *testing.T) {
	for name, set := range map[string]func(*fake){
		"tokens":           func(*fake) {},
		"pages":            func(f *fake) { f.pages = 1 },
		"no tokens":        func(f *fake) { f.noSync = true },
		"forgotten tokens": func(f *fake) { f.oldest = 1000 },
		"tokens that fail": func(f *fake) {
			f.refuses = func(r *http.Request, body string) int {
				if strings.Contains(body, "<sync-token>") {
					return http.StatusInternalServerError
				}
				return 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := filledFake()
			set(f)
			d := newDevice(t, f)
			first := d.run()
			succeeded(t, first)
			same(t, first, "calendars", "home/", "work/")
			same(t, first, "events", "home/d.ics", "work/a.ics", "work/b c.ics")
			same(t, first, "todos", "home/t.ics")
			same(t, first, "address_books", "people/")
			same(t, first, "contacts", "people/ada.vcf")

			f.asked = nil
			second := d.run()
			succeeded(t, second)
			if n := len(second.Records["events"]) + len(second.Records["calendars"]) + len(second.Records["contacts"]); n != 0 {
				t.Errorf("nothing was new\n%s", second.Transcript)
			}
			if name == "tokens" && slices.ContainsFunc(f.asked, func(s string) bool { return strings.HasPrefix(s, "REPORT") }) {
				t.Errorf("nothing was new, and it asked %v", f.asked)
			}

			f.event("/dav/sam/work/a.ics", "SUMMARY:A2", "DTSTART:20260101T100000Z")
			f.remove("/dav/sam/work/b c.ics")
			f.remove("/dav/sam/people/ada.vcf")
			f.event("/dav/sam/work/new.ics", "SUMMARY:N", "DTSTART:20260101T100000Z")
			third := d.run()
			succeeded(t, third)
			same(t, third, "events", "-", "work/a.ics", "work/new.ics")
			same(t, third, "contacts", "-")
			key := keyOf("/dav/sam/work/b c.ics").String()
			if !slices.ContainsFunc(third.Records["events"],
				func(r guesttest.Record) bool { return r.Deleted && r.Key == key }) {
				t.Errorf("another record was deleted\n%s", third.Transcript)
			}

			// An event becomes a task: one goes, the other comes.
			f.put("/dav/sam/work/new.ics", strings.ReplaceAll(f.items["/dav/sam/work/new.ics"], "VEVENT", "VTODO"))
			fourth := d.run()
			succeeded(t, fourth)
			same(t, fourth, "events", "-")
			same(t, fourth, "todos", "work/new.ics")
		})
	}
}

// One calendar, or one object, that cannot be had costs no other, and comes when
// it can.
func TestPartial(t *testing.T) {
	f := filledFake()
	for i := range 60 { // more than a batch
		f.event(fmt.Sprintf("/dav/sam/work/%d.ics", i), "DTSTART:20260101T100000Z")
	}
	f.put("/dav/sam/work/bad.ics", "this is no calendar")
	broken := true
	f.refuses = func(r *http.Request, body string) int {
		if broken && (strings.HasPrefix(r.URL.Path, "/dav/sam/home/") ||
			strings.Contains(body+r.URL.Path, "/dav/sam/work/17.ics")) {
			return http.StatusInternalServerError
		}
		return 0
	}
	d := newDevice(t, f)
	first := d.run()
	if first.Status != abi.Succeeded || len(first.Records["events"]) != 61 || len(first.Records["contacts"]) != 1 {
		t.Fatal(first.Transcript)
	}
	if len(first.Gaps) != 1 || first.Gaps[0].RecordKey != keyOf("/dav/sam/work/17.ics").String() ||
		!*first.Gaps[0].Retryable {
		t.Errorf("%+v", first.Gaps)
	}
	var reasons []string
	for _, s := range first.Skips {
		reasons = append(reasons, s.Stream+" "+s.Reason+" "+strings.Join(s.ResourceIDs, ""))
	}
	slices.Sort(reasons)
	want := []string{"events malformed_object /dav/sam/work/bad.ics", "events server_unavailable /dav/sam/home/",
		"todos malformed_object /dav/sam/work/bad.ics", "todos server_unavailable /dav/sam/home/"}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}

	broken = false
	d.options.Gaps = []abi.ServedGap{{GapID: "g1", Stream: "events", RecordKey: first.Gaps[0].RecordKey}}
	second := d.run()
	succeeded(t, second)
	same(t, second, "events", "home/d.ics", "work/17.ics")
	if len(second.Recovered) != 1 || second.Recovered[0].GapID != "g1" {
		t.Errorf("%+v", second.Recovered)
	}
	d.options.Gaps = nil
	if third := d.run(); len(third.Records["events"]) != 0 {
		t.Error(third.Transcript)
	}
}

// What ends a run, with the code and what helps.
func TestFailure(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refuses func(r *http.Request, body string) int
		config  map[string]any
		code    string
		hint    string
	}{
		{name: "password", refuses: func(*http.Request, string) int { return http.StatusUnauthorized },
			code: "authentication_failed", hint: guest.RefreshCredentials},
		{name: "busy", refuses: func(*http.Request, string) int { return http.StatusTooManyRequests }, code: "server_busy",
			hint: guest.RetryByRuntime},
		{name: "down", refuses: func(*http.Request, string) int { return http.StatusBadGateway }, code: "server_unavailable",
			hint: guest.RetryByRuntime},
		{name: "no server", refuses: func(*http.Request, string) int { return http.StatusNotFound }, code: "refused",
			hint: guest.ManualActionRequired},
		{name: "a web page", refuses: func(*http.Request, string) int { return http.StatusOK }, code: "refused",
			hint: guest.ManualActionRequired},
		{name: "an empty answer", refuses: func(*http.Request, string) int { return http.StatusMultiStatus },
			code: "malformed_answer", hint: guest.RetryByRuntime},
		{name: "host", config: map[string]any{"url": "https://other.example/", "user": "sam"}, code: "host_not_granted",
			hint: guest.ManualActionRequired},
		{name: "user", config: map[string]any{"url": "https://dav.example/", "user": "a:b"}, code: "invalid_settings",
			hint: guest.ManualActionRequired},
		{name: "password in the URL", config: map[string]any{"url": "https://sam:x@dav.example/", "user": "sam"},
			code: "invalid_settings", hint: guest.ManualActionRequired},
		{name: "scheme", config: map[string]any{"url": "ftp://dav.example/", "user": "sam"}, code: "invalid_settings",
			hint: guest.ManualActionRequired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := filledFake()
			f.refuses = tt.refuses
			d := newDevice(t, f)
			if tt.config != nil {
				d.options.Config = tt.config
			}
			got := d.run()
			if got.Status != abi.Failed || got.Done.Error.Code != tt.code || got.Done.Error.RecoveryHint.Action != tt.hint {
				t.Error(got.Transcript)
			}
			if strings.Contains(got.Transcript, "pa55w0rd") {
				t.Errorf("the password is in it\n%s", got.Transcript)
			}
			if tt.name == "password" && len(f.asked) != 1 {
				t.Errorf("a wrong password was tried %d times", len(f.asked))
			}
		})
	}
}

// A server that is briefly busy is asked again; a server that has lost its home
// collection deletes no records.
func TestPatience(t *testing.T) {
	f := filledFake()
	busy := map[string]int{}
	f.refuses = func(r *http.Request, _ string) int {
		if busy[r.URL.Path]++; busy[r.URL.Path] < maxTries {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	d := newDevice(t, f)
	first := d.run()
	succeeded(t, first)
	same(t, first, "events", "home/d.ics", "work/a.ics", "work/b c.ics")

	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMultiStatus,
		http.StatusServiceUnavailable} {
		f.refuses = func(r *http.Request, _ string) int {
			if r.URL.Path == "/dav/sam/" {
				return status
			}
			return 0
		}
		if got := d.run(); got.Status != abi.Failed || len(got.Records["events"]) != 0 || len(got.Records["calendars"]) != 0 {
			t.Errorf("%d: %s", status, got.Transcript)
		}
	}
	f.refuses = nil
	d.options.Network = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/dav/sam/" {
			multistatus(w, "")
			return
		}
		f.ServeHTTP(w, r)
	})
	if got := d.run(); got.Status != abi.Failed || got.Done.Error.Code != reasonMalformed ||
		len(got.Records["events"]) != 0 {
		t.Error(got.Transcript)
	}
}

// A time range, resources and fields of a scope are kept to; a wider scope later
// brings what was left out.
func TestScope(t *testing.T) {
	d := newDevice(t, filledFake())
	d.options.Scope = `{"streams":[{"name":"events","time_range":{"since":"2026-01-15T00:00:00Z","until":"2026-02-15T00:00:00Z"}}]}`
	first := d.run()
	succeeded(t, first)
	same(t, first, "events", "work/b c.ics")
	d.options.Scope = `{"streams":[{"name":"events","resources":["/dav/sam/work/"],"fields":["id","uid","calendar","path"]},{"name":"todos"}]}`
	f := d.options.Network.(*fake)
	second := d.run()
	succeeded(t, second)
	same(t, second, "events", "work/a.ics", "work/b c.ics")
	same(t, second, "todos", "home/t.ics")
	if strings.Contains(string(second.Records["events"][0].Data), "summary") {
		t.Error(second.Transcript)
	}
	f.remove("/dav/sam/work/a.ics") // which this scope does not let it delete
	f.put("/dav/sam/work/b c.ics", strings.ReplaceAll(f.items["/dav/sam/work/b c.ics"], "VEVENT", "VTODO"))
	second = d.run()
	succeeded(t, second)
	same(t, second, "events")
	same(t, second, "todos", "work/b c.ics")
	d.options.Scope = ""
	third := d.run()
	succeeded(t, third)
	same(t, third, "events", "-", "-", "home/d.ics")
	same(t, third, "contacts", "people/ada.vcf")
}

// A user without an address book has calendars all the same.
func TestNotOffered(t *testing.T) {
	f := filledFake()
	d := newDevice(t, f)
	d.options.Config = map[string]any{"url": "dav.example/dav/sam/work/", "user": "sam"}
	f.refuses = func(r *http.Request, _ string) int {
		if strings.HasSuffix(r.URL.Path, "/carddav") {
			return http.StatusNotFound
		}
		return 0
	}
	got := d.run()
	if got.Status != abi.Succeeded || len(got.Skips) != 2 || got.Skips[0].Stream != "address_books" ||
		got.Skips[1].Stream != "contacts" {
		t.Error(got.Transcript)
	}
	same(t, got, "events", "work/a.ics", "work/b c.ics")
}

// The URL may be that of one calendar.
func TestOneCalendar(t *testing.T) {
	d := newDevice(t, filledFake())
	d.options.Config = map[string]any{"url": "dav.example/dav/sam/work/", "user": "sam"}
	d.options.Scope = `{"streams":[{"name":"calendars"},{"name":"events"}]}`
	got := d.run()
	succeeded(t, got)
	same(t, got, "calendars", "work/")
	same(t, got, "events", "work/a.ics", "work/b c.ics")
}

// Where a cursor had no room for an object, its deletion is noticed all the same
// while the server keeps its tokens.
func TestNoRoom(t *testing.T) {
	f := filledFake()
	d := newDevice(t, f)
	succeeded(t, d.run())
	var c cursor
	if err := json.Unmarshal(d.options.State["contacts"].(json.RawMessage), &c); err != nil {
		t.Fatal(err)
	}
	for _, l := range c.Ledgers {
		l.Known, l.Partial = "", true
	}
	d.options.State["contacts"] = c
	f.remove("/dav/sam/people/ada.vcf")
	got := d.run()
	if same(t, got, "contacts", "-"); got.Status != abi.Succeeded || len(got.Skips) != 1 ||
		got.Skips[0].Reason != "too_many_records" {
		t.Error(got.Transcript)
	}
}

// A hostile server: references that lead elsewhere, an answer that never ends, a
// list of itself.
func TestHostile(t *testing.T) {
	f := filledFake()
	f.items["/dav/sam/work/../../root/x.ics"] = "x"
	f.edition["/dav/sam/work/../../root/x.ics"] = 99
	d := newDevice(t, f)
	reports := 0
	d.options.Network = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "REPORT" && r.URL.Path == "/dav/sam/home/" {
			reports++
			multistatus(w, response1("/dav/sam/home/", `<status>HTTP/1.1 507 Insufficient Storage</status>`)+
				`<sync-token>urn:always</sync-token>`)
			return
		}
		if r.Method == "PROPFIND" && r.URL.Path == "/dav/sam/home/" {
			multistatus(w, response1("https://evil.example/dav/sam/home/x.ics", "")+response1("/dav/sam/work/stolen.ics", "")+
				response1("/dav/sam/home/sub/", "")+"<response><href>%zz</href></response><response/>")
			return
		}
		f.ServeHTTP(w, r)
	})
	got := d.run()
	if got.Status != abi.Succeeded || len(got.Skips) != 2 || got.Skips[0].Reason != reasonMalformed ||
		strings.Contains(got.Transcript, "evil") || strings.Contains(strings.Join(f.asked, " "), "root") {
		t.Error(got.Transcript)
	}
	same(t, got, "events", "work/a.ics", "work/b c.ics")
	if reports > 2 {
		t.Errorf("it asked %d times for a list that does not end", reports)
	}
}
