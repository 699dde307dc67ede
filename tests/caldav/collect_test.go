package caldav_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// fill puts two calendars and an address book onto the server.
func fill(t *testing.T, r *radicale) {
	r.calendar(t, "/sam/work/", "Work")
	r.calendar(t, "/sam/home/", "Home &amp; garden")
	r.addressBook(t, "/sam/people/", "People")
	r.put(t, "/sam/work/1.ics", "BEGIN:VEVENT", "UID:meeting", "DTSTAMP:20260101T000000Z", "SUMMARY:Meeting\\, long",
		"DTSTART;TZID=Europe/Berlin:20260310T090000",
		"DURATION:PT1H30M", "ORGANIZER;CN=Ada:mailto:ada@example.org",
		"ATTENDEE;CN=Bob;PARTSTAT=ACCEPTED:mailto:bob@example.org", "CATEGORIES:a,b", "END:VEVENT")
	r.put(t, "/sam/work/2.ics", "BEGIN:VEVENT", "UID:daily", "DTSTAMP:20260101T000000Z", "SUMMARY:Standup",
		"DTSTART:20260302T080000Z", "DTEND:20260302T081500Z", "RRULE:FREQ=DAILY;COUNT=10",
		"EXDATE:20260304T080000Z", "END:VEVENT", "BEGIN:VEVENT", "UID:daily", "DTSTAMP:20260101T000000Z",
		"RECURRENCE-ID:20260303T080000Z", "SUMMARY:Standup\\, late", "DTSTART:20260303T100000Z",
		"DTEND:20260303T101500Z", "END:VEVENT")
	r.put(t, "/sam/home/with%20space.ics", "BEGIN:VEVENT", "UID:holiday", "DTSTAMP:20260101T000000Z",
		"SUMMARY:Holiday 🏖", "DTSTART;VALUE=DATE:20260801", "DTEND;VALUE=DATE:20260815", "END:VEVENT")
	r.put(t, "/sam/home/todo.ics", "BEGIN:VTODO", "UID:taxes", "DTSTAMP:20260101T000000Z", "SUMMARY:Taxes",
		"DUE:20260531T220000Z", "PRIORITY:1", "STATUS:NEEDS-ACTION", "END:VTODO")
	r.put(t, "/sam/people/ada.vcf", "BEGIN:VCARD", "VERSION:3.0", "UID:ada", "FN:Ada Lovelace", "N:Lovelace;Ada;;;",
		"EMAIL;TYPE=INTERNET,HOME:ada@example.org", "TEL;TYPE=CELL:+44 1", "ADR;TYPE=HOME:;;1 St James Sq;London;;SW1;UK",
		"BDAY:1815-12-10", "END:VCARD")
	r.put(t, "/sam/people/bob.vcf", "BEGIN:VCARD", "VERSION:3.0", "UID:bob", "FN:Bob", "N:;Bob;;;", "END:VCARD")
}

func names(there map[string]map[string]any) []string { return slices.Sorted(maps.Keys(there)) }

// want compares the stored records with a list of names.
func (c *collecting) want(t *testing.T, stream store.Stream, member string, deleted int, want ...string) {
	t.Helper()
	there, gone := c.records(t, stream, member)
	if d := cmp.Diff(append([]string{}, want...), append([]string{}, names(there)...)); d != "" {
		t.Errorf("%s: %s", stream, d)
	}
	if gone != deleted {
		t.Errorf("%s: %d are deleted, want %d", stream, gone, deleted)
	}
}

// A connection's whole life: everything is collected, nothing is new, something
// changed, something was deleted, the server forgot its sync tokens, a calendar is
// gone. The password is in nothing that was written.
func TestRadicale(t *testing.T) {
	server := startRadicale(t)
	fill(t, server)
	c := open(t, server)

	if n := c.collect(t); n != 2+3+1+1+2 {
		t.Errorf("the first run emitted %d records", n)
	}
	c.want(t, "calendars", "name", 0, "Home & garden", "Work")
	c.want(t, "address_books", "path", 0, "/sam/people/")
	c.want(t, "todos", "uid", 0, "taxes")
	c.want(t, "contacts", "name", 0, "Ada Lovelace", "Bob")
	c.want(t, "events", "uid", 0, "daily", "holiday", "meeting")
	members(t, c)

	if n := c.collect(t); n != 0 {
		t.Errorf("the second run emitted %d records, and nothing was new", n)
	}

	server.put(t, "/sam/work/1.ics", "BEGIN:VEVENT", "UID:meeting", "DTSTAMP:20260101T000000Z", "SUMMARY:Meeting\\, moved",
		"DTSTART:20260311T090000Z", "END:VEVENT")
	server.remove(t, "/sam/work/2.ics")
	server.remove(t, "/sam/people/bob.vcf")
	if n := c.collect(t); n != 3 {
		t.Errorf("one change and two deletions made %d records", n)
	}
	c.want(t, "events", "summary", 1, "Holiday 🏖", "Meeting, moved")
	c.want(t, "contacts", "name", 1, "Ada Lovelace")

	server.forgetTokens(t)
	server.remove(t, "/sam/home/with%20space.ics")
	server.put(t, "/sam/home/new.ics", "BEGIN:VEVENT", "UID:new", "DTSTAMP:20260101T000000Z", "SUMMARY:New",
		"DTSTART:20260311T090000Z", "END:VEVENT")
	if n := c.collect(t); n != 2 {
		t.Errorf("one deletion and one new event made %d records after the tokens were lost", n)
	}
	if server.refusedTokens(t) == 0 {
		t.Error("the server knew its tokens: nothing was tested")
	}
	c.want(t, "events", "summary", 2, "Meeting, moved", "New")
	if n := c.collect(t); n != 0 {
		t.Errorf("a run with new tokens emitted %d records", n)
	}

	server.remove(t, "/sam/home/")
	if n := c.collect(t); n != 3 {
		t.Errorf("a calendar with an event and a task went, which made %d records", n)
	}
	c.want(t, "calendars", "name", 1, "Work")
	c.want(t, "events", "summary", 3, "Meeting, moved")
	c.want(t, "todos", "summary", 1)

	runs := c.timeline(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c.Store, c.Sandbox = nil, nil
	c.noPassword(t, runs)
}

// members checks the members of the records.
func members(t *testing.T, c *collecting) {
	t.Helper()
	events, _ := c.records(t, "events", "uid")
	for _, tt := range []struct{ uid, member, want string }{
		{"meeting", "summary", `"Meeting, long"`},
		{"meeting", "start", `"2026-03-10T09:00:00+01:00"`},
		{"meeting", "end", `"2026-03-10T10:30:00+01:00"`},
		{"meeting", "time_zone", `"Europe/Berlin"`},
		{"meeting", "calendar", `"/sam/work/"`},
		{"meeting", "organizer", `{"email":"ada@example.org","name":"Ada"}`},
		{"meeting", "attendees", `[{"email":"bob@example.org","name":"Bob","status":"accepted"}]`},
		{"meeting", "categories", `["a","b"]`},
		{"daily", "summary", `"Standup"`},
		{"daily", "rrule", `"FREQ=DAILY;COUNT=10"`},
		{"daily", "exdates", `["2026-03-04T08:00:00Z"]`},
		{"daily", "exceptions", `[{"end":"2026-03-03T10:15:00Z","location":null,"recurrence_id":"2026-03-03T08:00:00Z","start":"2026-03-03T10:00:00Z","status":null,"summary":"Standup, late"}]`},
		{"holiday", "start", `"2026-08-01"`},
		{"holiday", "end", `"2026-08-15"`},
		{"holiday", "all_day", `true`},
		{"holiday", "path", `"/sam/home/with space.ics"`},
	} {
		got, err := json.Marshal(events[tt.uid][tt.member])
		if err != nil || string(got) != tt.want {
			t.Errorf("%s of %s is %s, want %s", tt.member, tt.uid, got, tt.want)
		}
	}
	todos, _ := c.records(t, "todos", "uid")
	if todo := todos["taxes"]; todo["due"] != "2026-05-31T22:00:00Z" || todo["priority"] != 1.0 ||
		todo["status"] != "needs-action" {
		t.Errorf("%v", todo)
	}
	contacts, _ := c.records(t, "contacts", "uid")
	b, err := json.Marshal([]any{contacts["ada"]["family_name"], contacts["ada"]["emails"], contacts["ada"]["phones"],
		contacts["ada"]["addresses"], contacts["ada"]["birthday"]})
	want := `["Lovelace",[{"types":["home"],"value":"ada@example.org"}],[{"types":["cell"],"value":"+44 1"}],` +
		`[{"city":"London","country":"UK","extended":null,"po_box":null,"postal_code":"SW1","region":null,"street":"1 St James Sq","types":["home"]}],"1815-12-10"]`
	if err != nil || string(b) != want {
		t.Errorf("%s", b)
	}
}

// timeline is every event of every run as text.
func (c *collecting) timeline(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	runs, err := c.Store.Runs(t.Context(), "caldav", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		events, err := c.Store.Events(t.Context(), r.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			fmt.Fprintf(&out, "%s %s\n", e.Type, e.Data)
		}
	}
	if !bytes.Contains(out.Bytes(), []byte(`run.sealed_value_used {"field":"password","origin":"`+c.server.url)) {
		t.Error("no run says that it used the password")
	}
	return out.Bytes()
}

// noPassword looks for the password, and for its encoded form on the wire.
func (c *collecting) noPassword(t *testing.T, timeline []byte) {
	t.Helper()
	forms := []string{password, base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
		strings.ReplaceAll(password, "/", `\/`)}
	look := func(where string, b []byte) {
		for _, form := range forms {
			if bytes.Contains(b, []byte(form)) {
				t.Errorf("%s has the password", where)
			}
		}
	}
	look("the timeline", timeline)
	files := 0
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		look(path, b)
		files++
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files of the data directory were looked at: %v", files, err)
	}
}

// A wrong password ends the run at once, and the message says what to do.
func TestWrongPassword(t *testing.T) {
	server := startRadicale(t)
	c := open(t, server)
	q := c.request(t)
	q.Secrets["password"] = "not the password"
	result := c.do(t, q)
	e := result.ConnectorError
	if result.Status != abi.Failed || e == nil || e.Code != "authentication_failed" || e.RecoveryHint == nil ||
		e.RecoveryHint.Action != abi.RefreshCredentials {
		t.Errorf("%s %+v", result.Status, e)
	}

	q = c.request(t)
	q.Approved.Destinations = nil // the owner named no server
	result = c.do(t, q)
	if e := result.ConnectorError; e == nil || e.Code != "secret_not_granted" ||
		!strings.Contains(e.Message, "--secret-to names a server for it") {
		t.Errorf("%s %+v", result.Status, e)
	}
	// A server that the owner named on the connection need not be named for a run.
	conn, err := c.Store.Connection(t.Context(), "caldav")
	if err != nil {
		t.Fatal(err)
	}
	conn.Approved.Destinations = c.request(t).Approved.Destinations
	if err := c.Store.PutConnection(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if result := c.do(t, q); result.Status != abi.Succeeded {
		t.Errorf("%s %+v", result.Status, result.ConnectorError)
	}
	if said := server.said(t); bytes.Contains(said, []byte(password)) {
		t.Errorf("the password was sent although no server was named:\n%s", said)
	}
}

// A server that redirects the connector to another server gets it there only if the
// owner named both.
func TestElsewhere(t *testing.T) {
	server := startRadicale(t)
	server.calendar(t, "/sam/work/", "Work")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, server.url+r.URL.Path, http.StatusPermanentRedirect)
	}))
	t.Cleanup(front.Close)
	c := open(t, &radicale{url: front.URL})
	q := c.request(t)
	if e := c.do(t, q).ConnectorError; e == nil || e.Code != "host_not_granted" {
		t.Errorf("the host was not approved: %+v", e)
	}
	q.Approved.Hosts = append(q.Approved.Hosts, server.url)
	if e := c.do(t, q).ConnectorError; e == nil || e.Code != "secret_not_granted" {
		t.Errorf("the secret was for another server: %+v", e)
	}
	to, err := app.OwnerDestinations(c.connector.Manifest, "password", server.url)
	if err != nil {
		t.Fatal(err)
	}
	q.Approved.Destinations["password"] = append(q.Approved.Destinations["password"], to...)
	if result := c.do(t, q); result.Status != abi.Succeeded || result.RecordsEmitted != 1 {
		t.Errorf("%s %+v", result.Status, result.ConnectorError)
	}
}
