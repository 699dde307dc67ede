package abi

import (
	"slices"
	"strings"
)

// A SessionToken is a place in the answers of one server whose value becomes a
// handle before the guest sees it: what a login gives back for a sealed password.
// It may go back to the origin that it came from, and nowhere else.
type SessionToken struct {
	Name       string
	Origin     string // of the answers, or OwnerOrigin
	PathPrefix string // of the requests whose answers have it
	// One of them says where.
	Pointer string // into a body of JSON
	Header  string
	Cookie  string

	Placements []string // where it may be put in requests to that origin
}

// Place is where an answer has it, in words.
func (t SessionToken) Place() string {
	switch {
	case t.Pointer != "":
		return "at " + t.Pointer
	case t.Header != "":
		return "in the header " + t.Header
	}
	return "in the cookie " + t.Cookie
}

// Same reports whether another place is the same, but for where its value may go.
func (t SessionToken) Same(o SessionToken) bool {
	return t.Name == o.Name && t.Origin == o.Origin && t.PathPrefix == o.PathPrefix && t.Pointer == o.Pointer && t.Header == o.Header && t.Cookie == o.Cookie
}

// maxTokens bounds the places of a manifest.
const maxTokens = 16

// sessionTokens reads the places of session tokens, whose names no secret has.
func (r *manifestReader) sessionTokens(b *SluiceBlock, a at) {
	names := map[string]bool{}
	for _, f := range b.Secrets {
		names[f.Name] = true
	}
	r.list(a, maxTokens, func(i at) {
		if !r.object(i, true) {
			return
		}
		t := SessionToken{
			Name: r.text(i.member("name"), 64, true), Origin: r.text(i.member("origin"), 512, true), PathPrefix: r.text(i.member("path_prefix"), 512, true),
			Pointer: r.text(i.member("pointer"), 512, false), Header: r.text(i.member("header"), 64, false), Cookie: r.text(i.member("cookie"), 64, false),
			Placements: r.texts(i.member("placements"), 16),
		}
		if !isFieldName(t.Name) || strings.Contains(t.Name, ".") || names[t.Name] {
			r.fail(i.member("name"), "session_token_name_invalid", "^[A-Za-z0-9_-]{1,64}$, and no name of another token or secret")
		}
		names[t.Name] = true
		if t.Origin != OwnerOrigin && !strings.HasPrefix(t.Origin, "https://") && !strings.HasPrefix(t.Origin, "http://") {
			r.fail(i.member("origin"), "session_token_origin_invalid", "https://HOST, http:// for this machine itself, or owner")
		}
		if !strings.HasPrefix(t.PathPrefix, "/") {
			r.fail(i.member("path_prefix"), "session_token_path_invalid", "the path of the login, beginning with /")
		}
		r.tokenPlace(t, i)
		b.SessionTokens = append(b.SessionTokens, t)
	})
}

// tokenPlace checks where a token is, and where it may go.
func (r *manifestReader) tokenPlace(t SessionToken, a at) {
	places := 0
	for _, p := range []string{t.Pointer, t.Header, t.Cookie} {
		if p != "" {
			places++
		}
	}
	switch {
	case places != 1:
		r.fail(a, "session_token_place_invalid", "one of pointer, header and cookie")
	case t.Pointer != "" && !strings.HasPrefix(t.Pointer, "/"):
		r.fail(a.member("pointer"), "session_token_place_invalid", "a JSON pointer, beginning with /")
	case t.Header != "" && (!isToken(t.Header) || slices.Contains(tokenless, strings.ToLower(t.Header))):
		r.fail(a.member("header"), "session_token_place_invalid", "the name of a header that holds a token")
	case t.Cookie != "" && !isToken(t.Cookie):
		r.fail(a.member("cookie"), "session_token_place_invalid", "the name of a cookie")
	}
	if len(t.Placements) == 0 {
		r.fail(a.member("placements"), "session_token_placement_invalid", "body or header:NAME, at least one")
	}
	for _, p := range t.Placements {
		name, header := strings.CutPrefix(p, "header:")
		if p != "body" && !(header && isToken(name)) {
			r.fail(a.member("placements"), "session_token_placement_invalid", "body or header:NAME, at least one")
		}
	}
}

// tokenless are headers by which an answer is understood, or that no guest sees.
var tokenless = []string{"set-cookie", "set-cookie2", "location", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection",
	"content-range", "trailer", "upgrade"}

// isToken is a name as headers and cookies have it (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
