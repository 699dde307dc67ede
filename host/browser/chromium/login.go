package chromium

import (
	"context"
	"net/url"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A login answers a server that asks for HTTP authentication.
type login struct {
	origin             string
	username, password string
	given              map[fetch.RequestID]bool
}

// maxGiven bounds the requests of one navigation that are answered.
const maxGiven = 1000

// Login implements page.Tab. While it is active, every request to the origin is paused briefly,
// since the browser asks only about paused requests.
func (n *traffic) Login(ctx context.Context, origin, username, password string) (release func(), err error) {
	origin, ok := plainOrigin(origin)
	if !ok {
		return nil, page.ErrScheme
	}
	n.tab.mu.Lock()
	n.login = &login{origin: origin, username: username, password: password, given: map[fetch.RequestID]bool{}}
	n.tab.mu.Unlock()
	release = func() {
		n.tab.mu.Lock()
		n.login = nil
		n.tab.mu.Unlock()
		ctx, cancel := context.WithTimeout(n.tab.ctx, spawned)
		defer cancel()
		_, _ = cdp.Call(ctx, n.tab.session, fetch.Disable, cdp.Empty{}) // before the next login enables it
	}
	err = n.tab.call(ctx, func(ctx context.Context) error {
		_, err := cdp.Call(ctx, n.tab.session, fetch.Enable, fetch.EnableParams{
			Patterns: []*fetch.RequestPattern{{URLPattern: origin + "/*"}}, HandleAuthRequests: new(true)})
		return err
	})
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// askedLogin answers a request for authentication.
func (n *traffic) askedLogin(ev *fetch.EventAuthRequired) {
	answer := &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}
	n.tab.mu.Lock()
	l := n.login
	switch ours := l != nil && ev.AuthChallenge.Source == fetch.AuthChallengeSourceServer &&
		sameOrigin(ev.AuthChallenge.Origin, l.origin); {
	case ev.AuthChallenge.Source == fetch.AuthChallengeSourceProxy:
		answer.Response = fetch.AuthChallengeResponseResponseDefault
	case ours && !l.given[ev.RequestID] && len(l.given) < maxGiven: // a second request means that the answer was rejected
		l.given[ev.RequestID] = true
		answer = &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseProvideCredentials,
			Username: l.username, Password: l.password}
	}
	n.tab.mu.Unlock()
	n.tab.spawn(func(ctx context.Context) {
		_, _ = cdp.Call(ctx, n.tab.session, fetch.ContinueWithAuth,
			fetch.ContinueWithAuthParams{RequestID: ev.RequestID, AuthChallengeResponse: answer})
	})
}

// heldUp continues a paused request.
func (n *traffic) heldUp(ev *fetch.EventRequestPaused) {
	n.tab.spawn(func(ctx context.Context) {
		_, _ = cdp.Call(ctx, n.tab.session, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: ev.RequestID})
	})
}

// plainOrigin returns an origin as the browser writes it: scheme and host in lower case, without
// the scheme's default port. It reports false if it is none.
func plainOrigin(origin string) (string, bool) {
	u, err := url.Parse(strings.ToLower(origin))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		strings.ContainsAny(u.Host, "*?\\") {
		return "", false
	}
	host, port := u.Hostname(), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && (u.Scheme != "http" || port != "80") && (u.Scheme != "https" || port != "443") {
		host += ":" + port
	}
	return u.Scheme + "://" + host, true
}

// sameOrigin compares two origins; b is canonical.
func sameOrigin(a, b string) bool {
	a, ok := plainOrigin(a)
	return ok && a == b
}
