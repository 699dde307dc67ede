//go:build !wasip1

package main

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

//go:embed manifest.json
var manifest []byte

const (
	rss = `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>https://news.example/</link>
<item><guid>1</guid><title>First</title><link>https://news.example/1</link><pubDate>Fri, 02 Jan 2026 03:04:05 +0100</pubDate><category>a</category>
<enclosure url="https://news.example/1.mp3" type="audio/mpeg" length="5"/></item>
<item><title>No guid</title><link>https://news.example/2</link></item><item><description>nameless</description></item></channel></rss>`
	atom = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><id>urn:log</id><updated>2026-01-02T00:00:00Z</updated>
<entry><id>urn:1</id><title>One</title><updated>2026-01-02T00:00:00Z</updated><author><name>Ada</name></author><content type="html">&lt;p&gt;x</content></entry></feed>`
	jsonFeed = `{"version":"https://jsonfeed.org/version/1.1","title":"J","items":[{"id":"j1","url":"https://json.example/1","content_text":"hello","date_published":"2026-01-03T00:00:00Z"}]}`
)

// server answers each path with a feed, and with 304 to a client that has the current
// version.
func server(asked *[]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path+" "+r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since"))
		switch r.URL.Path {
		case "/rss":
			w.Header().Set("ETag", `"v1"`)
			if r.Header.Get("If-None-Match") == `"v1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			fmt.Fprint(w, rss)
		case "/atom":
			w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 00:00:00 GMT")
			fmt.Fprint(w, atom)
		case "/json":
			fmt.Fprint(w, jsonFeed)
		case "/broken":
			fmt.Fprint(w, "<html>not a feed")
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// hosted is the manifest with a host that the owner approved.
func hosted(t *testing.T, hosts string) []byte {
	t.Helper()
	before, after, ok := strings.Cut(string(manifest), `"network": {"required": true`)
	if !ok {
		t.Fatal("the manifest asks for no network")
	}
	return []byte(before + `"network": {"required": true, "hosts": [` + hosts + `]` + after)
}

func feeds(urls ...string) map[string]any { return map[string]any{"feeds": urls} }

func TestCollect(t *testing.T) {
	var asked []string
	o := guesttest.Options{
		Manifest: hosted(t, `"feeds.example"`), Network: server(&asked),
		Config: feeds("https://feeds.example/rss", "https://feeds.example/atom", "https://feeds.example/json"),
	}
	first := guesttest.Run(t, connector, o)
	if first.Status != abi.Succeeded || len(first.Records["feeds"]) != 3 || len(first.Records["entries"]) != 4 {
		t.Fatal(first.Transcript)
	}
	var entry struct {
		Title, Link string
		Published   string   `json:"published_at"`
		Attachments []string `json:"attachments"`
	}
	if err := first.Records["entries"][0].Decode(&entry); err != nil {
		t.Fatal(err)
	}
	if entry.Title != "First" || entry.Published != "2026-01-02T02:04:05Z" || len(entry.Attachments) != 1 {
		t.Errorf("%+v", entry)
	}

	asked, o.State = nil, map[string]any{}
	for name, cursor := range first.States {
		o.State[name] = cursor
	}
	second := guesttest.Run(t, connector, o)
	if second.Status != abi.Succeeded || len(second.Records["entries"]) != 2 {
		t.Fatal(second.Transcript)
	}
	want := []string{`/rss "v1"`, "/atom Fri, 02 Jan 2026 00:00:00 GMT", "/json "}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

// One feed that cannot be had costs no other.
func TestTrouble(t *testing.T) {
	var asked []string
	o := guesttest.Options{
		Manifest: hosted(t, `"feeds.example"`), Network: server(&asked),
		Config: feeds("https://other.example/rss", "https://feeds.example/broken", "https://feeds.example/busy",
			"https://feeds.example/gone", "https://feeds.example/json"),
	}
	got := guesttest.Run(t, connector, o)
	if got.Status != abi.Succeeded || len(got.Records["entries"]) != 1 || len(got.Skips) != 8 {
		t.Fatal(got.Transcript)
	}
	var reasons []string
	for _, s := range got.Skips {
		if s.Stream == "feeds" {
			reasons = append(reasons, s.Reason)
		}
	}
	if diff := cmp.Diff([]string{"host_not_granted", "feed_unreadable", "feed_unavailable", "feed_unavailable"},
		reasons); diff != "" {
		t.Error(diff)
	}
	o.Config = feeds("https://other.example/rss")
	if got := guesttest.Run(t, connector, o); got.Status != abi.Failed {
		t.Error(got.Transcript)
	}
	o.Config = feeds("ftp://feeds.example/")
	if got := guesttest.Run(t, connector, o); got.Status != abi.Failed {
		t.Error(got.Transcript)
	}
}

// episodes answers with a feed of one entry and what its enclosures lead to.
func episodes(asked *[]string, title *string, status *int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		switch {
		case r.URL.Path == "/pod":
			fmt.Fprintf(w, `<rss version="2.0"><channel><title>Pod</title><item><guid>1</guid><title>%s</title>
<enclosure url="https://media.example/one.mp3" type="audio/mpeg"/><enclosure url="https://other.example/two.mp3"/>
<enclosure url="javascript:alert(1)"/><enclosure url="https://media.example/gone.mp3"/></item></channel></rss>`, *title)
		case r.URL.Path == "/one.mp3" && *status == 0:
			w.Header().Set("Content-Type", "audio/mpeg")
			fmt.Fprint(w, "ID3 episode")
		case r.URL.Path == "/one.mp3":
			w.WriteHeader(*status)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// TestEnclosures: they are kept where the setting says so, fetched once, and again when
// they could not be had or their entry changed; one that cannot be had costs no entry.
func TestEnclosures(t *testing.T) {
	var asked []string
	title, status := "One", http.StatusServiceUnavailable
	config := feeds("https://feeds.example/pod")
	o := guesttest.Options{Manifest: hosted(t, `"feeds.example","media.example"`),
		Network: episodes(&asked, &title, &status), Config: config}
	run := func() (files []string, entries int, fetched int) {
		t.Helper()
		asked = nil
		got := guesttest.Run(t, connector, o)
		if got.Status != abi.Succeeded {
			t.Fatal(got.Transcript)
		}
		o.State = map[string]any{}
		for name, cursor := range got.States {
			o.State[name] = cursor
		}
		for _, e := range got.Records["entries"] {
			var data struct {
				Files []struct{ Digest, Name, Media_type string }
			}
			if err := e.Decode(&data); err != nil {
				t.Fatal(err)
			}
			for _, f := range data.Files {
				files = append(files, f.Name+" "+f.Media_type+" "+string(got.Files[f.Digest]))
			}
		}
		return files, len(got.Records["entries"]), strings.Count(strings.Join(asked, " "), "/one.mp3")
	}
	expect := func(what string, files []string, entries, fetched int) {
		t.Helper()
		f, e, n := run()
		if diff := cmp.Diff(files, f); diff != "" || e != entries || n != fetched {
			t.Errorf("%s: %d entries, %d times fetched; %s", what, e, n, diff)
		}
	}
	kept := []string{"one.mp3 audio/mpeg ID3 episode"}
	expect("not asked for", nil, 1, 0)
	config["enclosures"] = true
	expect("the server is busy", nil, 1, 1)
	status = 0
	expect("it is not any more", kept, 1, 1)
	expect("nothing changed", nil, 0, 0)
	title = "Two"
	expect("the entry changed", kept, 1, 1)
	config["enclosures"] = false
	expect("not asked for any more", nil, 1, 0)
}
