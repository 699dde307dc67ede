package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

// TestAttachments: files within events are kept, one by one; those of an event that did not
// change are not handed over again, and no line is too long for the rest of its file.
func TestAttachments(t *testing.T) {
	s := newShelf(t)
	inline := func(name string, content []byte) string {
		return "ATTACH;FMTTYPE=application/pdf;ENCODING=BASE64;VALUE=BINARY;X-FILENAME=\"" + name + "\":" +
			base64.StdEncoding.EncodeToString(content)
	}
	one := eventOf("UID:1", "SUMMARY:One", "DTSTART:20250310T090000Z", inline("a:b.pdf", []byte("%PDF-1.4")),
		inline("long.pdf", []byte(strings.Repeat("%PDF-long", 200_000))),
		"ATTACH:https://example.org/x.png", "ATTACH;VALUE=URI:file:///etc/passwd")
	bad := eventOf("UID:2", "SUMMARY:Two", "DTSTART:20250310T090000Z", "ATTACH;ENCODING=BASE64;VALUE=BINARY:no base64!",
		inline("huge.pdf", make([]byte, maxAttachment)), inline("c.pdf", []byte("%PDF-c")))
	s.write("team.ics", calendarOf(one, bad, eventOf("UID:3", "SUMMARY:Three", "DTSTART:20250310T090000Z")))
	first := s.collect(guesttest.Options{})
	got := map[string][]string{}
	for summary, e := range events(t, first) {
		for _, f := range e["attachments"].([]any) {
			f := f.(map[string]any)
			got[summary] = append(got[summary],
				fmt.Sprintf("%s %s %d", f["name"], f["media_type"], len(first.Files[f["digest"].(string)])))
		}
	}
	want := map[string][]string{"One": {"a:b.pdf application/pdf 8", "long.pdf application/pdf 1800000"},
		"Two": {"c.pdf application/pdf 6"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, first.Transcript)
	}
	if diff := cmp.Diff([]string{"attachment_left_out", "attachment_left_out"}, reasons(first)); diff != "" {
		t.Error(diff)
	}
	if urls := texts(events(t, first)["One"]["attachment_urls"]); len(urls) != 2 {
		t.Errorf("URLs %q", urls)
	}

	s.write("team.ics", calendarOf(one, bad, eventOf("UID:3", "SUMMARY:Four", "DTSTART:20250310T090000Z")))
	second := s.again(first)
	again := events(t, second)
	if _, two := again["Two"]; len(again) != 2 || !two || len(second.Files) != 1 {
		t.Errorf("want what changed, and what was not whole\n%s", second.Transcript)
	}
	s.write("team.ics", calendarOf(strings.Replace(one, "a:b.pdf", "a.pdf", 1)))
	if third := s.again(second); len(third.Files) != 2 {
		t.Errorf("%d files of the changed event", len(third.Files))
	}
}

// A scope without the field hands nothing over.
func TestAttachmentsNotGranted(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(eventOf("UID:1", "SUMMARY:One", "ATTACH;ENCODING=BASE64;VALUE=BINARY:eA==")))
	got := s.collect(guesttest.Options{Scope: `{"streams":[{"name":"events","fields":["id","uid","calendar","summary"]}]}`})
	if len(got.Files) != 0 || len(got.Records["events"]) != 1 {
		t.Error(got.Transcript)
	}
}
