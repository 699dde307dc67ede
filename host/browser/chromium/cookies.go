package chromium

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpnetwork "github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"
)

// cookieLimit bounds how many cookies are returned.
const cookieLimit = 1000

// Cookies returns the cookies that the browser would send to one of the hosts, which are lower-case
// names without ports. Expired cookies are left out; the caller has to honour Path, Secure,
// HttpOnly and expiry.
func (b *Browser) Cookies(ctx context.Context, hosts []string) ([]*http.Cookie, error) {
	all, err := cdp.Call(ctx, b.cdp, storage.GetCookies, storage.GetCookiesParams{})
	if err != nil {
		return nil, b.why(ctx, err)
	}
	var out []*http.Cookie
	for _, c := range all.Cookies {
		if len(out) < cookieLimit && sentTo(c.Domain, hosts) && !(c.Expires > 0 && expiry(c.Expires).Before(time.Now())) {
			out = append(out, cookie(c))
		}
	}
	return out, nil
}

// sentTo matches a cookie's domain; one with a leading dot includes subdomains.
func sentTo(domain string, hosts []string) bool {
	domain = strings.ToLower(domain)
	wide := strings.HasPrefix(domain, ".")
	for _, h := range hosts {
		if h == strings.TrimPrefix(domain, ".") || wide && strings.HasSuffix(h, domain) {
			return true
		}
	}
	return false
}

func expiry(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)) }

func cookie(c *cdpnetwork.Cookie) *http.Cookie {
	out := &http.Cookie{Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Secure: c.Secure, HttpOnly: c.HTTPOnly} // #nosec G124 -- the attributes are the cookie's own
	if !c.Session && c.Expires > 0 {
		out.Expires = expiry(c.Expires)
	}
	switch c.SameSite {
	case cdpnetwork.CookieSameSiteStrict:
		out.SameSite = http.SameSiteStrictMode
	case cdpnetwork.CookieSameSiteLax:
		out.SameSite = http.SameSiteLaxMode
	case cdpnetwork.CookieSameSiteNone:
		out.SameSite = http.SameSiteNoneMode
	}
	return out
}
