package network

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"
)

// Limits of a jar.
const (
	cookieBytes    = 4 << 10
	cookiesPerHost = 50
	cookiesInAll   = 500
	cookieHeader   = 32 << 10 // of one request
)

// A jar keeps the cookies of one run, and drops those beyond a limit.
type jar struct {
	cookies *cookiejar.Jar

	mu   sync.Mutex                       // guards seen and all
	seen map[string]map[string]heldCookie // cookies last set, by setting host and name
	all  int
}

func newJar() (*jar, error) {
	c, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	return &jar{cookies: c, seen: map[string]map[string]heldCookie{}}, err
}

// keep takes the cookies of a response.
func (j *jar) keep(u *url.URL, r *http.Response) { j.take(u, r.Cookies()) }

// take keeps the cookies for which there is room and returns their number. The jar decides
// about domains.
func (j *jar) take(u *url.URL, cookies []*http.Cookie) int {
	var kept []*http.Cookie
	j.mu.Lock()
	for _, c := range cookies {
		if len(c.Name)+len(c.Value)+len(c.Domain)+len(c.Path) <= cookieBytes && prefixed(u, c) && j.room(u, c) {
			kept = append(kept, c)
		}
	}
	j.mu.Unlock()
	j.cookies.SetCookies(u, kept)
	return len(kept)
}

// room reserves room for a cookie, if there is some.
func (j *jar) room(u *url.URL, c *http.Cookie) bool {
	host, name := u.Hostname(), c.Domain+";"+c.Path+";"+c.Name
	names := j.seen[host]
	if _, known := names[name]; !known && (len(names) >= cookiesPerHost || j.all >= cookiesInAll) {
		return false
	} else if !known {
		j.all++
	}
	if names == nil {
		names = map[string]heldCookie{}
		j.seen[host] = names
	}
	names[name] = holdCookie(u, c)
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

// send adds the cookies to a request, up to the limits.
func (j *jar) send(r *http.Request) {
	size := 0
	for i, c := range j.cookies.Cookies(r.URL) {
		if size += len(c.Name) + len(c.Value); i == cookiesPerHost || size > cookieHeader {
			return
		}
		r.AddCookie(c)
	}
}
