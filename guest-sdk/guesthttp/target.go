package guesthttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// targetOf is the URL of a request as the host takes it: without user-info,
// which http.Client has turned into a header, and without the fragment.
func targetOf(req *http.Request) (string, error) {
	switch {
	case req.URL == nil:
		return "", errors.New("guesthttp: the request has no URL")
	case req.URL.Host == "":
		return "", errors.New("guesthttp: the URL has no host")
	case len(req.Trailer) > 0:
		return "", errors.New("guesthttp: the network binding has no trailers")
	case req.Host != "" && req.Host != req.URL.Host && authority(req.URL.Scheme, req.Host) != authority(req.URL.Scheme, req.URL.Host):
		return "", fmt.Errorf("guesthttp: the Host %q is not that of the URL, %q: the host sends the URL's (S73)", req.Host, req.URL.Host)
	case req.URL.Opaque != "":
		return opaque(req.URL)
	}
	if req.URL.User == nil && req.URL.Fragment == "" {
		return req.URL.String(), nil
	}
	u := *req.URL
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return u.String(), nil
}

// opaque is a URL that keeps its path, maybe with the host before it, in
// Opaque: net/http sends that to URL.Host as it stands.
func opaque(u *url.URL) (string, error) {
	path := strings.TrimPrefix(u.Opaque, "//"+u.Host)
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return "", fmt.Errorf("guesthttp: the opaque part of the URL is no path on %q", u.Host)
	}
	rest := url.URL{Opaque: path, ForceQuery: u.ForceQuery, RawQuery: u.RawQuery}
	return u.Scheme + "://" + u.Host + rest.RequestURI(), nil
}

// authority is host and port, comparable.
func authority(scheme, host string) string {
	u := url.URL{Host: host}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}
