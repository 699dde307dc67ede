package chromium

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

const blank = "about:blank"

// check judges an address of a main frame (B250): http and https that the caller
// allows, and the blank page.
func (t *Tab) check(address string) error {
	if address == blank || address == "" || strings.HasPrefix(address, blank+"#") {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || (!strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https")) || u.Host == "" {
		return page.ErrScheme
	}
	if t.options.Allowed == nil {
		return nil
	}
	return t.options.Allowed(address)
}

// frameScheme reports whether a frame inside of a page may show an address of this
// kind; which hosts it reaches is the proxy's to say.
func frameScheme(address string) bool {
	scheme, _, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "data", "blob", "":
		return true
	case "about":
		return strings.HasPrefix(address, blank) || strings.HasPrefix(address, "about:srcdoc")
	case "chrome-error":
		return true
	}
	return false
}

// external reports whether an address is for another program.
func external(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "about", "data", "blob", "javascript", "file", "chrome", "chrome-error", "chrome-extension", "devtools", "view-source", "ftp", "filesystem":
		return false
	}
	return true
}

// hostOf is the host of an address with the port if there is one, "" for none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return cutText(u.Host, 255)
}

// originOf is an origin as nodes have it; what has none is opaque.
func originOf(s string) string {
	if s == "" || s == "://" || s == "null" {
		return "null"
	}
	return cutText(s, 512)
}

// cutText is s, or as much of its start as fits n bytes, as valid UTF-8.
func cutText(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
