//go:build !wasip1

package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

// filesOf lists the files and URLs of the first record of a stream.
func filesOf(t *testing.T, r *guesttest.Result, stream string) (files, urls []string) {
	t.Helper()
	if len(r.Records[stream]) == 0 {
		t.Fatalf("no record\n%s", r.Transcript)
	}
	var data struct {
		Attachments []struct {
			Digest, Name string
			MediaType    string `json:"media_type"`
		}
		URLs []string `json:"attachment_urls"`
	}
	if err := r.Records[stream][0].Decode(&data); err != nil {
		t.Fatal(err)
	}
	for _, f := range data.Attachments {
		content := r.Files[f.Digest]
		files = append(files, fmt.Sprintf("%s %s %d %.9s", f.Name, f.MediaType, len(content), content))
	}
	return files, data.URLs
}

// TestAttachments: files within an object and on its server are kept; no other server is
// asked, whatever an invitation says.
func TestAttachments(t *testing.T) {
	f := newFake()
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("%PDF-long", 200_000)))
	var folded strings.Builder
	for len(long) > 70 {
		folded.WriteString("\r\n " + long[:70])
		long = long[70:]
	}
	inline := "ATTACH;FMTTYPE=application/pdf;ENCODING=BASE64;VALUE=BINARY;X-FILENAME=\"a:b.pdf\":"
	f.event("/dav/sam/work/a.ics", "SUMMARY:A", "DTSTART:20260101T100000Z",
		inline+base64.StdEncoding.EncodeToString([]byte("%PDF-1.4 short")), inline+folded.String()+"\r\n "+long,
		inline+"no base64!", "ATTACH;FMTTYPE=text/plain;FILENAME=minutes.txt;MANAGED-ID=1:https://dav.example/files/minutes",
		"ATTACH:https://dav.example/files/minutes", "ATTACH:https://dav.example/files/gone.png",
		"ATTACH:https://elsewhere.example/x", "ATTACH:http://dav.example/x", "ATTACH:https://user@dav.example/x",
		"ATTACH:CID:part@mail", "ATTACH:javascript:alert(1)", "ATTACH:")
	f.items["/files/minutes"] = "minutes of"
	d := newDevice(t, f)
	first := d.run()
	files, urls := filesOf(t, first, "events")
	want := []string{"a:b.pdf application/pdf 14 %PDF-1.4 ", "a:b.pdf application/pdf 1800000 %PDF-long",
		"minutes.txt text/plain 10 minutes o"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("%s\n%s", diff, first.Transcript)
	}
	if len(urls) != 7 || urls[0] != "https://dav.example/files/minutes" {
		t.Errorf("URLs %q", urls)
	}
	var left []string
	for _, s := range first.Skips {
		left = append(left, s.Stream+" "+s.Reason)
	}
	if diff := cmp.Diff([]string{"events attachment_left_out", "events attachment_left_out"}, left); diff != "" {
		t.Error(diff)
	}
	if slices.Contains(f.asked, "GET /x") {
		t.Errorf("it asked %v", f.asked)
	}
}

// A file that the server has no time for is a gap, and comes with the next run, though
// nothing changed on the server.
func TestAttachmentLater(t *testing.T) {
	for _, tokens := range []bool{true, false} {
		f := newFake()
		f.noSync = !tokens
		f.event("/dav/sam/work/a.ics", "SUMMARY:A", "ATTACH:https://dav.example/files/minutes")
		f.items["/files/minutes"] = "minutes"
		f.refuses = func(r *http.Request, _ string) int {
			if r.URL.Path == "/files/minutes" {
				return http.StatusInternalServerError
			}
			return 0
		}
		d := newDevice(t, f)
		first := d.run()
		if files, urls := filesOf(t, first, "events"); len(files) != 0 || len(urls) != 1 || len(first.Gaps) != 1 {
			t.Errorf("%v, %v\n%s", files, urls, first.Transcript)
		}
		f.refuses = nil
		second := d.run()
		if files, _ := filesOf(t, second, "events"); len(files) != 1 {
			t.Errorf("%v\n%s", files, second.Transcript)
		}
		third := d.run()
		succeeded(t, third)
		same(t, third, "events")
	}
}
