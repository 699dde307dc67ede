package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/egress"
)

var hostileHosts = []string{
	// What some programs read as an address.
	"127.1", "0", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.01", "0x7f000001", "127.0.0.0x1", "1.2.3", "1.2.3.4.5",
	"256.0.0.1", "1.2.3.0x", "1.2.3.4..", "127.1.", "0x", "0xg", "a.0xz", "example.123", "00", "1.2.3.-4",
	"1e3.0", "4294967296",
	// Names that become one by mapping.
	"127。0。0。1", "①②⑦.0.0.1", "１２７.0.0.1", "127.0.0.1。", "127.0.0.\u00ad1", "0\u200bx7f",
	"127．0．0．1", "127｡0｡0｡1", "𝟭𝟮𝟳.𝟬.𝟬.𝟭", "²130706433", "127.0.0.٣", "：：1",
	"[：：1]", "0Ⅹ7f",
	// IPv6.
	"fe80::1%eth0", "[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1", "::1]", "[::1]]", "[[::1]]", "[::1].", "::1.", "[]",
	"[:]", ":", "[::1]:80", "[127.0.0.1]", "[example.com]", "[v1.a]", "12345::", ":::", "::ffff:127.1",
	"::ffff:0177.0.0.1", "1:2:3:4:5:6:7", "[ ::1]",
	// Malformed names.
	"", ".", "..", ".com", "a..b", "example.com..", "example..", "a.。b", "。", "\u00ad", "a.\u00ad.b", "example.com。",
	"-a.com", "a-.com", "a.-", "ab--cd.com", "xn--", "xn--.com", "xn--a.com", "xn--127-.com", "xn--example-.com",
	"xn--99999999999.com", "xn--a-ecp.ru", "xn--\u00fc", "xn--xn--a-.com", "a\u200db.com", "\u0300a.com", "אa.com",
	strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 127) + "a", strings.Repeat("ü", 60) + ".com",
	strings.Repeat("a", 5000), strings.Repeat("\u00ad", 600) + "a.com",
	// What does not belong in a host.
	"user@example.com", "user:pass@example.com", "example.com:443", "example.com/", "example.com?a",
	"example.com#a", `example.com\a`, "exa mple.com", " example.com", "example.com ", "example.com\n", "example\x00.com",
	"example.com\r\nHost: a", "\x7f.com", "a\tb.com", "*.example.com", "*", "_dmarc.example.com", "a,b.com", "a;b.com",
	"a%2eb.com", "%6c", "a=b.com", "<a>.com", "a|b", "$(a).com", "a'b.com", "\xff.com", "a\xc0\xaeb.com", "\ufffd.com",
	"a\u2028b.com", "a\ue000.com", "a／b.com", "a＠b.com", "a：80", "a？.com", "℀.com", "a\u202eb.com",
	"\U000e0041.com", "a\ufeff.\ufeff", "example\u3002\u3002com",
}

func TestCanonicalHostRefuses(t *testing.T) {
	for _, host := range hostileHosts {
		got, err := egress.CanonicalHost(host)
		if !errors.Is(err, egress.ErrHost) || got != "" {
			t.Errorf("CanonicalHost(%.80q) = %q, %v; want ErrHost", host, got, err)
		} else if msg := err.Error(); len(msg) > 2000 ||
			strings.ContainsFunc(msg, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("CanonicalHost(%.80q) says %q", host, msg)
		}
	}
}

var goodHosts = map[string]string{
	"example.com": "example.com", "EXAMPLE.Com": "example.com", "example.com.": "example.com",
	"a-b.c1.example": "a-b.c1.example", "localhost": "localhost", "LOCALHOST.": "localhost", "1and1.com": "1and1.com",
	"0xa.com": "0xa.com", "127.0.0.1.nip.io": "127.0.0.1.nip.io", "bücher.de": "xn--bcher-kva.de",
	"BÜCHER.de": "xn--bcher-kva.de", "bu\u0308cher.de": "xn--bcher-kva.de", "xn--bcher-kva.de": "xn--bcher-kva.de",
	"XN--BCHER-KVA.de": "xn--bcher-kva.de", "faß.de": "xn--fa-hia.de", "ｅｘａｍｐｌｅ.com": "example.com",
	"example。com": "example.com", "exam\u00adple.com": "example.com", "例え.jp": "xn--r8jz45g.jp", "K.com": "k.com",
	"①.com": "1.com", "127.0.0.1": "127.0.0.1", "8.8.8.8.": "8.8.8.8", "0.0.0.0": "0.0.0.0",
	"255.255.255.255": "255.255.255.255", "::1": "::1", "[::1]": "::1", "[0:0:0:0:0:0:0:1]": "::1",
	"2001:DB8::0001": "2001:db8::1", "::ffff:7f00:1": "::ffff:127.0.0.1", "[::FFFF:127.0.0.1]": "::ffff:127.0.0.1",
	"64:ff9b::127.0.0.1": "64:ff9b::7f00:1", "::": "::", strings.Repeat("a", 63) + ".com": strings.Repeat("a", 63) +
		".com", strings.Repeat("a.", 126) + "a": strings.Repeat("a.", 126) + "a",
}

func TestCanonicalHost(t *testing.T) {
	for host, want := range goodHosts {
		if got, err := egress.CanonicalHost(host); err != nil || got != want {
			t.Errorf("CanonicalHost(%q) = %q, %v; want %q", host, got, err, want)
		}
	}
}

// FuzzHost: what is canonical stays so, is plain ASCII, and is an address only
// if the text was that address.
func FuzzHost(f *testing.F) {
	for _, host := range hostileHosts {
		f.Add(host)
	}
	for host := range goodHosts {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		got, err := egress.CanonicalHost(host)
		if err != nil {
			if !errors.Is(err, egress.ErrHost) || got != "" {
				t.Fatalf("CanonicalHost(%q) = %q, %v", host, got, err)
			}
			return
		}
		if again, err := egress.CanonicalHost(got); err != nil || again != got {
			t.Fatalf("CanonicalHost(%q) = %q, and of that %q, %v", host, got, again, err)
		}
		if bad := strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789-.:"); got == "" || len(got) > 253 || bad != "" {
			t.Fatalf("CanonicalHost(%q) = %q", host, got)
		}
		if strings.HasPrefix(got, ".") || strings.HasSuffix(got, ".") || strings.Contains(got, "..") {
			t.Fatalf("CanonicalHost(%q) = %q: an empty label", host, got)
		}
		fuzzAddress(t, host, got)
	})
}

func fuzzAddress(t *testing.T, host, got string) {
	address, err := netip.ParseAddr(got)
	if err != nil {
		last := got[strings.LastIndexByte(got, '.')+1:]
		if strings.Contains(got, ":") || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
			t.Fatalf("CanonicalHost(%q) = %q: some would read an address", host, got)
		}
		return
	}
	text := host
	if address.Is4() {
		text = strings.TrimSuffix(text, ".")
	} else if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	if written, err := netip.ParseAddr(text); err != nil || written != address || address.Zone() != "" {
		t.Fatalf("CanonicalHost(%q) = %q: an address from what is none", host, got)
	}
	if !egress.Special(got) {
		t.Fatalf("Special(%q) = false for an address", got)
	}
}

func TestSpecial(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "8.8.8.8": true, "::1": true, "2606:4700::1": true, "::ffff:8.8.8.8": true,
		"com": true, "intranet": true, "localhost": true, "instance-data": true, "kubernetes": true,
		"a.localhost": true, "printer.local": true, "a.b.local": true, "db.internal": true, "metadata.google.internal": true,
		"instance-data.ec2.internal": true, "metadata.azure.internal": true, "metadata.goog": true, "a.metadata.goog": true,
		"metadata.tencentyun.com": true, "metadata.platformequinix.com": true, "metadata.packet.net": true,
		"api.metadata.cloud.ibm.com": true, "home.arpa": true, "nas.home.arpa": true, "abc.onion": true, "a.abc.onion": true,
		"example.com": false, "localhost.com": false, "notlocal.example": false, "mylocal.de": false, "a.mylocal": false,
		"internal.example.com": false, "onion.example": false, "127.0.0.1.nip.io": false, "goog.com": false,
		"notmetadata.goog": false, "tencentyun.com": false, "a.homearpa": false, "arpa.com": false,
	} {
		if got := egress.Special(host); got != want {
			t.Errorf("Special(%q) = %v, want %v", host, got, want)
		}
	}
}
