package api_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/hosttest"
	"github.com/sluicehost/sluice/store"
)

// attach has a record of a connection hold a file.
func attach(t *testing.T, id store.ConnectionID, key string, content []byte, f store.File) store.File {
	t.Helper()
	return hosttest.HoldIn(theStore(), shared.d.Host.ID, shared.d.Host.Epoch)(t, id, key, content, f)
}

// TestFiles: files are listed, and come whole or in ranges as attachments that no page may
// run; one of another connection is none.
func TestFiles(t *testing.T) {
	c := served(t)
	id, other := connection(t, "filed", access.Live), connection(t, "filed-not", access.Live)
	content := bytes.Repeat([]byte("<script>alert(1)</script>"), 20_000)
	f := attach(t, id, "m1", content, store.File{MediaType: "text/html", Name: "ev\"il\r\n.html"})
	attach(t, id, "m2", []byte("two"), store.File{MediaType: "image/png"})
	list := "/v1/connections/" + string(id) + "/files"
	all := c.do("GET", list+"?limit=1", nil).want(200)
	if got := all.member("data").([]any); len(got) != 1 || got[0].(map[string]any)["digest"] != string(f.Digest) ||
		all.member("nextCursor") == nil {
		t.Fatalf("list %s", all.body)
	}
	if got := c.do("GET", list+"?stream=answers&key=m2", nil).want(200).member("data").([]any); len(got) != 1 {
		t.Errorf("of one record: %v", got)
	}
	c.do("GET", list+"?key=m2", nil).want(400, "validation_error")
	at := list + "/" + strings.TrimPrefix(string(f.Digest), "sha256:")
	whole := c.do("GET", at, nil).want(200)
	if !bytes.Equal([]byte(whole.body), content) {
		t.Errorf("%d bytes of %d", len(whole.body), len(content))
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox",
		"Content-Disposition":     `attachment; filename="ev_il__.html"; filename*=UTF-8''ev%22il%0D%0A.html`,
		"Etag":                    `"` + string(f.Digest) + `"`,
	} {
		if got := whole.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, v := range []struct{ content, claimed, media, disposition, policy string }{
		{"<svg onload=alert(1)>", "image/svg+xml", "application/octet-stream", "attachment", "default-src 'none'; sandbox"},
		{"<html>%PDF-1.7", "application/pdf", "application/octet-stream", "attachment", "default-src 'none'; sandbox"},
		{"%PDF-1.7<script>alert(1)</script>", "text/html", "application/pdf", "inline",
			"default-src 'none'; sandbox; frame-ancestors 'self'"},
	} {
		f := attach(t, id, "v"+v.media+v.claimed, []byte(v.content), store.File{MediaType: v.claimed, Name: "a.svg"})
		got := c.do("GET", list+"/"+strings.TrimPrefix(string(f.Digest), "sha256:")+"?view=true", nil).want(200)
		if h := got.header; h.Get("Content-Type") != v.media || h.Get("Content-Security-Policy") != v.policy ||
			h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(h.Get("Content-Disposition"), v.disposition+"; filename") || string(got.body) != v.content {
			t.Errorf("%s as a view: %v", v.content, h)
		}
	}
	for _, garbage := range []string{"bytes=", "bytes=a-b", "bytes=5-1", "bytes=0-1,3-4", "lines=1-2", "bytes=-",
		"bytes=99999999999999999999-", "bytes= 1-2"} {
		if got := c.do("GET", at, nil, header("Range", garbage)).want(200); len(got.body) != len(content) {
			t.Errorf("%s: %d bytes", garbage, len(got.body))
		}
	}
	c.do("GET", at, nil, header("Range", "bytes=-0")).want(416, "range_not_satisfiable")
	for asked, want := range map[string]string{"bytes=300000-300009": string(content[300000:300010]), "bytes=-3": "pt>",
		"bytes=499999-900000": ">"} {
		part := c.do("GET", at, nil, header("Range", asked)).want(206)
		if string(part.body) != want || !strings.HasSuffix(part.header.Get("Content-Range"), "/500000") {
			t.Errorf("%s: %q, %s", asked, part.body, part.header.Get("Content-Range"))
		}
	}
	if got := c.do("GET", at, nil, header("Range", "bytes=0-1"),
		header("If-Range", `"old"`)).want(200); len(got.body) != len(content) {
		t.Errorf("a range of another content: %d bytes", len(got.body))
	}
	c.do("GET", at, nil, header("Range", "bytes=500000-")).want(416, "range_not_satisfiable")
	c.do("GET", at, nil, header("If-None-Match", `"`+string(f.Digest)+`"`)).want(304)
	c.do("GET", strings.Replace(at, string(id), string(other), 1), nil).want(404, "not_found")
	c.do("GET", list+"/..%2f..%2fetc%2fpasswd", nil).want(404, "not_found")

	// A key that may not see the record learns nothing of its file: not that it is there, nor
	// from a range, a condition or the list.
	limited := c.as(key(t, access.NewKey{Scopes: []access.Scope{access.RecordsRead},
		ConnectionIDs: []store.ConnectionID{other}}))
	absent := strings.Repeat("0", 64)
	guess := func(path string, options ...option) string {
		a := limited.do("GET", path, nil, options...).want(404, "not_found")
		for _, name := range []string{"Etag", "Content-Range", "Accept-Ranges", "Content-Disposition"} {
			if v := a.header.Get(name); v != "" {
				t.Errorf("%s says %s: %s", path, name, v)
			}
		}
		return regexp.MustCompile(`cor_[A-Za-z0-9]+|"correlationId":"[^"]*"`).ReplaceAllString(string(a.body), "")
	}
	for _, of := range []string{string(id), string(other), "filed-none"} {
		at, none := "/v1/connections/"+of+"/files/"+strings.TrimPrefix(string(f.Digest), "sha256:"),
			"/v1/connections/"+of+"/files/"+absent
		for _, o := range [][]option{nil, {header("Range", "bytes=0-0")}, {header("If-None-Match", `"`+string(f.Digest)+`"`)},
			{header("Range", "bytes=900000-")}} {
			if there, not := guess(at, o...), guess(none, o...); there != not {
				t.Errorf("%s: %s for what is there, %s for what is not", of, there, not)
			}
		}
	}
	if there, not := guess(list), guess("/v1/connections/filed-none/files"); there != not {
		t.Errorf("lists: %s, %s", there, not)
	}
}
