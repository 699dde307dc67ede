package egress_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/egress"
)

var hostileEntries = []string{
	// Wildcards that are too wide.
	"*", "*.", "*.*", "**", "*.*.example.com", "*example.com", "a.*.com", "a.*", "＊.example.com",
	"https://*", "*:443", "*.:443", "*.com", "*.COM", "*.com.", "*.co.uk", "*.github.io", "*.s3.amazonaws.com", "*.jp",
	"*.kawasaki.jp", "*.xn--p1ai", "*.рф", "*.unlisted", "*.localhost", "*.local", "*.printer.local", "*.internal",
	"*.google.internal", "*.metadata.google.internal", "*.home.arpa", "*.nas.home.arpa", "*.abc.onion", "*.onion",
	"*.metadata.goog", "*.metadata.tencentyun.com", "*.intranet", "*.127.0.0.1", "*.0.0.1", "*.8.8.8.8", "*.[::1]",
	"*.::1", "[*.a]", "[*.::1]",
	// Other schemes, and what is not a host.
	"ftp://example.com", "HTTP://example.com", "://example.com", "https:/example.com",
	"https:example.com", "//example.com", "https://https://example.com", "http://", "https://", "", " ", "ws://a.com",
	"file:///etc/passwd", "javascript://a.com", "example.com/", "example.com/path", "https://example.com/",
	"example.com?q", "example.com#f", `example.com\`, "user@example.com", "user:pass@example.com",
	"https://user@example.com", " example.com", "example.com ", "example.com\n", "a.com,b.com", "a.com b.com",
	// Ports.
	"example.com:", "example.com:0", "example.com:00", "example.com:0443", "example.com:+443", "example.com:-1",
	"example.com:65536", "example.com:99999999999999999999", "example.com:https", "example.com:443:443",
	"example.com:4_43", "example.com: 443", "example.com:443 ", "example.com:٤٤٣", "example.com:0x50", "example.com:*",
	":443", "[::1]:", "[::1]:0", "[::1]443", "[::1]x", "[::1]]", "[[::1]]:1", "[::1", "::1", "2606:4700::1:443",
	"[127.0.0.1]:80", "[example.com]", "[fe80::1%eth0]:80", "[]", "[]:80",
}

func TestParseEntryRefuses(t *testing.T) {
	list := hostileEntries
	for _, host := range hostileHosts {
		switch host {
		case "[::1]:80", "example.com:443", "*.example.com": // entries, though no hosts
			continue
		}
		list = append(list, host, "*."+host, "http://"+host+":80")
	}
	for _, s := range list {
		got, err := egress.ParseEntry(s)
		if !errors.Is(err, egress.ErrEntry) || got != (egress.Entry{}) {
			t.Errorf("ParseEntry(%.80q) = %+v, %v; want ErrEntry", s, got, err)
		} else if !strings.Contains(err.Error(), "HOST[:PORT]") {
			t.Errorf("ParseEntry(%.80q) does not say what to write: %v", s, err)
		}
	}
}

// TestParseEntryReason: an owner who slipped is told how.
func TestParseEntryReason(t *testing.T) {
	for s, want := range map[string]string{
		"*":                    "every host",
		"::1":                  "IPv6 needs brackets",
		"https://example.com/": "path",
		"user@example.com":     "user",
		"ftp://example.com":    "neither http nor https",
		"example.com:0":        "1 to 65535",
		"*.github.io":          "different owners",
		"*.local":              "spell the host",
		"127.1":                "plain dotted quad",
		"[fe80::1%eth0]":       "zone",
	} {
		if _, err := egress.ParseEntry(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseEntry(%q): %v; want a word of %q", s, err, want)
		}
	}
}

// goodEntries have what is read and its shortest spelling.
var goodEntries = map[string]struct {
	entry egress.Entry
	text  string
}{
	"example.com":              {egress.Entry{Scheme: "https", Host: "example.com", Port: 443}, "example.com"},
	"https://Example.com.:443": {egress.Entry{Scheme: "https", Host: "example.com", Port: 443}, "example.com"},
	"http://example.com":       {egress.Entry{Scheme: "http", Host: "example.com", Port: 80}, "http://example.com"},
	"http://example.com:80":    {egress.Entry{Scheme: "http", Host: "example.com", Port: 80}, "http://example.com"},
	"http://example.com:443":   {egress.Entry{Scheme: "http", Host: "example.com", Port: 443}, "http://example.com:443"},
	"example.com:80":           {egress.Entry{Scheme: "https", Host: "example.com", Port: 80}, "example.com:80"},
	"example.com:65535":        {egress.Entry{Scheme: "https", Host: "example.com", Port: 65535}, "example.com:65535"},
	"*.example.com": {egress.Entry{Scheme: "https", Host: "example.com", Wildcard: true, Port: 443},
		"*.example.com"},
	"http://*.bücher.de:8080": {egress.Entry{Scheme: "http", Host: "xn--bcher-kva.de", Wildcard: true, Port: 8080},
		"http://*.xn--bcher-kva.de:8080"},
	"*.city.kawasaki.jp": {egress.Entry{Scheme: "https", Host: "city.kawasaki.jp", Wildcard: true, Port: 443},
		"*.city.kawasaki.jp"},
	"*.a.github.io": {egress.Entry{Scheme: "https", Host: "a.github.io", Wildcard: true, Port: 443},
		"*.a.github.io"},
	"github.io":        {egress.Entry{Scheme: "https", Host: "github.io", Port: 443}, "github.io"},
	"localhost:8080":   {egress.Entry{Scheme: "https", Host: "localhost", Port: 8080}, "localhost:8080"},
	"http://nas.local": {egress.Entry{Scheme: "http", Host: "nas.local", Port: 80}, "http://nas.local"},
	"metadata.google.internal": {egress.Entry{Scheme: "https", Host: "metadata.google.internal", Port: 443},
		"metadata.google.internal"},
	"192.168.1.2:8443":         {egress.Entry{Scheme: "https", Host: "192.168.1.2", Port: 8443}, "192.168.1.2:8443"},
	"[::1]":                    {egress.Entry{Scheme: "https", Host: "::1", Port: 443}, "[::1]"},
	"http://[FD00::0001]:8080": {egress.Entry{Scheme: "http", Host: "fd00::1", Port: 8080}, "http://[fd00::1]:8080"},
	"[::ffff:127.0.0.1]:1": {egress.Entry{Scheme: "https", Host: "::ffff:127.0.0.1", Port: 1},
		"[::ffff:127.0.0.1]:1"},
	"https://127.0.0.1.nip.io.": {egress.Entry{Scheme: "https", Host: "127.0.0.1.nip.io", Port: 443}, "127.0.0.1.nip.io"},
}

func TestParseEntry(t *testing.T) {
	for s, want := range goodEntries {
		got, err := egress.ParseEntry(s)
		if err != nil {
			t.Errorf("ParseEntry(%q): %v", s, err)
			continue
		}
		if diff := cmp.Diff(want.entry, got); diff != "" {
			t.Errorf("ParseEntry(%q): -want +got\n%s", s, diff)
		}
		if got.String() != want.text {
			t.Errorf("ParseEntry(%q) is written %q, want %q", s, got, want.text)
		}
	}
}

// FuzzEntry: String reads back as the same entry, and the entry allows its own
// host and nothing that its text cannot name.
func FuzzEntry(f *testing.F) {
	for _, s := range append(hostileEntries, hostileHosts...) {
		f.Add(s)
	}
	for s := range goodEntries {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := egress.ParseEntry(s)
		if err != nil {
			if !errors.Is(err, egress.ErrEntry) || e != (egress.Entry{}) {
				t.Fatalf("ParseEntry(%q) = %+v, %v", s, e, err)
			}
			return
		}
		again, err := egress.ParseEntry(e.String())
		if err != nil || again != e || e.Private {
			t.Fatalf("ParseEntry(%q) = %+v, written %q, which is %+v, %v", s, e, e, again, err)
		}
		if e.Port == 0 || e.Wildcard && egress.Special(e.Host) || e.Scheme != "http" && e.Scheme != "https" {
			t.Fatalf("ParseEntry(%q) = %+v", s, e)
		}
		p := egress.NewPolicy(e)
		if got, step := p.Match(e.Scheme, e.Host, e.Port); (step == "") == e.Wildcard || got.Wildcard {
			t.Fatalf("%q matches its own host: %+v, %q", e, got, step)
		}
		if got, step := p.Match(e.Scheme, "other.example", e.Port); step == "" && e.Host != "other.example" {
			t.Fatalf("%q matches other.example: %+v", e, got)
		}
	})
}

func entries(t *testing.T, list ...string) []egress.Entry {
	t.Helper()
	var out []egress.Entry
	for _, s := range list {
		e, err := egress.ParseEntry(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestMatch(t *testing.T) {
	p := egress.NewPolicy(entries(t, "example.com", "http://plain.example", "*.wild.example", "multi.example:8443",
		"http://multi.example",
		"localhost:8080", "192.0.2.1", "[2001:db8::1]:8443", "*.goog.example", "*.tencentyun.com", "deep.wild.example:99")...)
	for _, c := range []struct {
		scheme, host string
		port         uint16
		step, entry  string
	}{
		{"https", "example.com", 443, "", "example.com"},
		{"http", "example.com", 443, "scheme", ""},
		{"http", "example.com", 80, "scheme", ""},
		{"https", "example.com", 80, "port", ""},
		{"https", "example.com", 0, "port", ""},
		{"", "example.com", 443, "scheme", ""},
		{"HTTPS", "example.com", 443, "scheme", ""},
		{"ftp", "example.com", 443, "scheme", ""},
		{"https", "www.example.com", 443, "host", ""},
		{"https", "com", 443, "host", ""},
		{"https", "notexample.com", 443, "host", ""},
		{"https", "example.com.evil.test", 443, "host", ""},
		{"http", "plain.example", 80, "", "http://plain.example"},
		{"https", "plain.example", 443, "scheme", ""},

		{"https", "a.wild.example", 443, "", "*.wild.example"},
		{"https", "a.b.c.wild.example", 443, "", "*.wild.example"},
		{"https", "wild.example", 443, "host", ""},
		{"https", "awild.example", 443, "host", ""},
		{"http", "a.wild.example", 443, "scheme", ""},
		{"https", "a.wild.example", 444, "port", ""},
		{"https", "deep.wild.example", 99, "", "deep.wild.example:99"},
		{"https", "deep.wild.example", 443, "", "*.wild.example"},
		{"https", "metadata.tencentyun.com", 443, "host", ""},
		{"https", "a.tencentyun.com", 443, "", "*.tencentyun.com"},

		{"https", "multi.example", 8443, "", "multi.example:8443"},
		{"http", "multi.example", 80, "", "http://multi.example"},
		{"https", "multi.example", 80, "port", ""},
		{"http", "multi.example", 8443, "port", ""},
		{"ws", "multi.example", 80, "scheme", ""},

		{"https", "localhost", 8080, "", "localhost:8080"},
		{"https", "a.localhost", 8080, "host", ""},
		{"https", "192.0.2.1", 443, "", "192.0.2.1"},
		{"https", "::ffff:192.0.2.1", 443, "host", ""},
		{"https", "192.0.2.2", 443, "host", ""},
		{"https", "2001:db8::1", 8443, "", "[2001:db8::1]:8443"},
		{"https", "2001:db8::1", 443, "port", ""},

		// Hosts that are not canonical match nothing, a wildcard's either.
		{"https", "EXAMPLE.com", 443, "host", ""},
		{"https", "example.com.", 443, "host", ""},
		{"https", "a.wild.example.", 443, "host", ""},
		{"https", "A.wild.example", 443, "host", ""},
		{"https", "ü.wild.example", 443, "host", ""},
		{"https", "evil.test/.wild.example", 443, "host", ""},
		{"https", "evil.test#.wild.example", 443, "host", ""},
		{"https", "a@b.wild.example", 443, "host", ""},
		{"https", ".wild.example", 443, "host", ""},
		{"https", "..wild.example", 443, "host", ""},
		{"https", "*.wild.example", 443, "host", ""},
		{"https", "METADATA.tencentyun.com", 443, "host", ""},
		{"https", "[2001:db8::1]", 8443, "host", ""},
		{"https", "2001:DB8::1", 8443, "host", ""},
		{"https", "", 443, "host", ""},
	} {
		e, step := p.Match(c.scheme, c.host, c.port)
		got := ""
		if e != (egress.Entry{}) {
			got = e.String()
		}
		if step != c.step || got != c.entry {
			t.Errorf("Match(%q, %q, %d) = %q, %q; want %q, %q", c.scheme, c.host, c.port, got, step, c.entry, c.step)
		}
	}
}

// TestMatchOrder fails when the step depends on the order of the entries.
func TestMatchOrder(t *testing.T) {
	list := entries(t, "http://a.example", "a.example:8443", "http://b.example")
	for _, order := range [][]egress.Entry{{list[0], list[1], list[2]}, {list[2], list[1], list[0]},
		{list[1], list[0], list[2]}} {
		if _, step := egress.NewPolicy(order...).Match("https", "a.example", 443); step != "port" {
			t.Errorf("entries %v: the step is %q, want port", order, step)
		}
	}
}

func TestZeroPolicy(t *testing.T) {
	for _, p := range []*egress.Policy{{}, egress.NewPolicy()} {
		if e, step := p.Match("https", "example.com", 443); step != "host" || e != (egress.Entry{}) {
			t.Errorf("Match = %+v, %q", e, step)
		}
	}
}

func TestPrivate(t *testing.T) {
	list := entries(t, "nas.example.com:8443", "*.example.com:8443", "nas.example.com:8443")
	list[2].Private = true
	private := list[2]
	for _, order := range [][]egress.Entry{list, {list[2], list[1], list[0]}, {list[1], list[2], list[0]}} {
		if e, step := egress.NewPolicy(order...).Match("https", "nas.example.com", 8443); step != "" || e != private {
			t.Errorf("of %+v Match prefers %+v, %q", order, e, step)
		}
	}
	// Exactly that host and port, and never a wildcard.
	p := egress.NewPolicy(private,
		egress.Entry{Scheme: "https", Host: "example.com", Wildcard: true, Port: 443, Private: true})
	if e, step := p.Match("https", "nas.example.com", 443); step != "" || e.Private {
		t.Errorf("Match = %+v, %q; want the wildcard without Private", e, step)
	}
	if e, step := p.Match("https", "nas.example.com", 8444); step != "port" || e.Private {
		t.Errorf("Match = %+v, %q; want port", e, step)
	}
}

// TestMadeEntries: an entry that no text makes allows nothing.
func TestMadeEntries(t *testing.T) {
	for _, e := range []egress.Entry{
		{},
		{Scheme: "https", Host: "a.example"},
		{Scheme: "", Host: "a.example", Port: 443},
		{Scheme: "ftp", Host: "a.example", Port: 443},
		{Scheme: "https", Host: "example", Wildcard: true, Port: 443},
		{Scheme: "https", Host: "", Wildcard: true, Port: 443},
		{Scheme: "https", Host: "*", Port: 443},
		{Scheme: "https", Host: "*.a.example", Port: 443},
		{Scheme: "https", Host: "A.example", Port: 443},
		{Scheme: "https", Host: "a.example.", Port: 443},
		{Scheme: "https", Host: "a.example:443", Port: 443},
	} {
		p := egress.NewPolicy(e)
		for _, host := range []string{"a.example", "b.a.example", "A.example", "a.example.", "*", ""} {
			for _, port := range []uint16{0, 443} {
				if got, step := p.Match(e.Scheme, host, port); step == "" {
					t.Errorf("%+v allows %q as %+v", e, host, got)
				}
			}
		}
	}
}

func TestMatchHammer(t *testing.T) {
	p := egress.NewPolicy(entries(t, "example.com", "*.example.com")...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if _, step := p.Match("https", "a.example.com", 443); step != "" {
					t.Errorf("the step is %q", step)
				}
			}
		})
	}
	wg.Wait()
}
