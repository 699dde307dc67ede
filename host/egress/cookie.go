package egress

import (
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

// Limits of a jar.
const (
	maxCookieBytes    = 4 << 10
	maxCookiesPerHost = 50
	maxCookies        = 500
	maxCookieHeader   = 32 << 10 // of one request
)

// A jar keeps the cookies of one run, and drops those beyond a limit.
type jar struct {
	cookies *cookiejar.Jar

	mu     sync.Mutex                        // guards stored and total
	stored map[string]map[string]SavedCookie // cookies last set, by setting host and name
	total  int
}

func newJar() (*jar, error) {
	c, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	return &jar{cookies: c, stored: map[string]map[string]SavedCookie{}}, err
}

// storeFrom takes the cookies of a response.
func (j *jar) storeFrom(u *url.URL, r *http.Response) { j.store(u, r.Cookies()) }

// store keeps the cookies for which there is room and returns their number. The jar decides
// about domains.
func (j *jar) store(u *url.URL, cookies []*http.Cookie) int {
	var kept []*http.Cookie
	j.mu.Lock()
	for _, c := range cookies {
		if len(c.Name)+len(c.Value)+len(c.Domain)+len(c.Path) <= maxCookieBytes && prefixed(u, c) && j.reserve(u, c) {
			kept = append(kept, c)
		}
	}
	j.mu.Unlock()
	j.cookies.SetCookies(u, kept)
	return len(kept)
}

// reserve reserves room for a cookie, if there is some.
func (j *jar) reserve(u *url.URL, c *http.Cookie) bool {
	host, name := u.Hostname(), c.Domain+";"+c.Path+";"+c.Name
	names := j.stored[host]
	if _, known := names[name]; !known && (len(names) >= maxCookiesPerHost || j.total >= maxCookies) {
		return false
	} else if !known {
		j.total++
	}
	if names == nil {
		names = map[string]SavedCookie{}
		j.stored[host] = names
	}
	names[name] = saveCookie(u, c)
	return true
}

// prefixed enforces the rules for names with __Secure- and __Host-.
func prefixed(u *url.URL, c *http.Cookie) bool {
	name := strings.ToLower(c.Name)
	secure := u.Scheme == "https" && c.Secure
	switch {
	case strings.HasPrefix(name, "__host-"):
		return secure && c.Domain == "" && c.Path == "/"
	case strings.HasPrefix(name, "__secure-"):
		return secure
	}
	return true
}

// addTo adds the cookies to a request, up to the limits.
func (j *jar) addTo(r *http.Request) {
	size := 0
	for i, c := range j.cookies.Cookies(r.URL) {
		if size += len(c.Name) + len(c.Value); i == maxCookiesPerHost || size > maxCookieHeader {
			return
		}
		r.AddCookie(c)
	}
}

// A SavedCookie is a cookie as it was set. The guest never sees it.
type SavedCookie struct {
	URL    string       `json:"url"`
	Cookie *http.Cookie `json:"cookie"`
}

// saveCookie converts a cookie's age to an absolute expiry, so that it does not change when
// it is set again.
func saveCookie(u *url.URL, c *http.Cookie) SavedCookie {
	saved := *c // #nosec G124 -- a cookie that a server set, not one of ours
	saved.Raw, saved.Unparsed = "", nil
	if saved.MaxAge > 0 {
		saved.Expires, saved.MaxAge = time.Now().Add(time.Duration(min(saved.MaxAge, 400*24*3600))*time.Second), 0
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return SavedCookie{at.String(), &saved}
}

// saved lists the cookies that were set, in no particular order.
func (j *jar) saved() (out []SavedCookie) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, names := range j.stored {
		for _, c := range names {
			out = append(out, c)
		}
	}
	return out
}

// TakeCookies adds cookies of a host that did not come in an answer to this client, and returns how many it
// accepted.
func (c *Client) TakeCookies(host string, cookies []*http.Cookie) int {
	return c.jar.store(&url.URL{Scheme: "https", Host: host, Path: "/"}, cookies)
}

// Cookies lists the cookies that the client keeps, for a client that goes on in its place.
func (c *Client) Cookies() []SavedCookie { return c.jar.saved() }

// RestoreCookies adds cookies that an earlier client kept.
func (c *Client) RestoreCookies(list []SavedCookie) error {
	for _, k := range list {
		u, err := url.Parse(k.URL)
		if err != nil || k.Cookie == nil {
			return errBadCookie
		}
		c.jar.store(u, []*http.Cookie{k.Cookie})
	}
	return nil
}

var errBadCookie = errors.New("no cookie")
