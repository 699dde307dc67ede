package caldav_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/store"
)

// An attachedFile is what is kept of an attachment.
type attachedFile struct{ Field, MediaType, Content string }

// files are those that events hold, by name.
func (c *collecting) files(t *testing.T) map[string]attachedFile {
	t.Helper()
	kept, err := store.FilesOf(c.Store)
	if err != nil {
		t.Fatal(err)
	}
	page, err := kept.HeldFiles(t.Context(), store.FileQuery{Connection: "caldav", Stream: "events"})
	if err != nil || page.More {
		t.Fatal(page.More, err)
	}
	out := map[string]attachedFile{}
	for _, f := range page.Files {
		content, err := kept.OpenFile(t.Context(), "caldav", f.Digest)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil || int64(len(text)) != f.Size {
			t.Fatalf("%d bytes of %d: %v", len(text), f.Size, err)
		}
		out[f.Name] = attachedFile{Field: f.Field, MediaType: f.MediaType, Content: string(text)}
	}
	return out
}

// text is what the server has at a path, for its user.
func (r *radicale) text(t *testing.T, path string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.SetBasicAuth(user, password)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	return string(text)
}

// Attachments of events arrive as files: one within its event, longer than what is kept beside
// records, and one that the server gives to its user alone. They go with their events.
func TestAttachmentsOfRadicale(t *testing.T) {
	server := startRadicale(t)
	server.calendar(t, "/sam/work/", "Work")
	server.addressBook(t, "/sam/people/", "People")
	server.put(t, "/sam/people/ada.vcf", "BEGIN:VCARD", "VERSION:3.0", "UID:ada", "FN:Ada Lovelace",
		"N:Lovelace;Ada;;;", "END:VCARD")
	pdf := "%PDF-1.7\n" + strings.Repeat("all of it\n", 20_000)
	server.put(t, "/sam/work/1.ics", "BEGIN:VEVENT", "UID:one", "DTSTAMP:20260101T000000Z", "SUMMARY:One",
		"DTSTART:20260310T090000Z",
		`ATTACH;FMTTYPE=application/pdf;ENCODING=BASE64;VALUE=BINARY;X-FILENAME="plan.pdf":`+
			base64.StdEncoding.EncodeToString([]byte(pdf)), "END:VEVENT")
	server.put(t, "/sam/work/2.ics", "BEGIN:VEVENT", "UID:two", "DTSTAMP:20260101T000000Z", "SUMMARY:Two",
		"DTSTART:20260311T090000Z",
		"ATTACH;FMTTYPE=text/vcard:"+server.url+"/sam/people/ada.vcf", "ATTACH:https://elsewhere.example/x", "END:VEVENT")
	c := open(t, server)
	c.collect(t)
	want := map[string]attachedFile{
		"plan.pdf": {Field: "attachments", MediaType: "application/pdf", Content: pdf},
		"ada.vcf":  {Field: "attachments", MediaType: "text/vcard", Content: server.text(t, "/sam/people/ada.vcf")},
	}
	if d := cmp.Diff(want, c.files(t)); d != "" {
		t.Error(d)
	}
	if n := c.collect(t); n != 0 {
		t.Errorf("the second run emitted %d records, and nothing was new", n)
	}
	server.remove(t, "/sam/work/1.ics")
	c.collect(t)
	delete(want, "plan.pdf")
	if d := cmp.Diff(want, c.files(t)); d != "" {
		t.Error(d)
	}
	c.noPassword(t, c.timeline(t))
}
