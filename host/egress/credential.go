package egress

import (
	"bytes"
	"encoding/base64"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// Credentials that no manifest declares, such as a token that a server returned for a
// password, are recognised by their place and then hidden wherever they occur.

// credentialHeaders contain only credentials.
var credentialHeaders = []string{"authorization", "x-api-key", "api-key", "apikey", "x-auth-token",
	"x-access-token", "x-session-token",
	"x-csrf-token", "x-xsrf-token", "private-token", "x-amz-security-token"}

// credentialNames are names of JSON members and of form and query parameters, in lower case
// and without - and _.
var credentialNames = []string{"accesstoken", "refreshtoken", "idtoken", "token", "authtoken", "sessiontoken",
	"csrftoken", "xsrftoken", "bearertoken",
	"apikey", "apitoken", "secret", "clientsecret", "password", "passwd", "sessionid", "assertion",
	"clientassertion", "signature", "sig", "xamzsignature", "xamzsecuritytoken", "xamzcredential"}

// shortestCredential excludes words of ordinary text.
const shortestCredential = 8

func isCredentialHeader(name string) bool {
	return slices.Contains(credentialHeaders, strings.ToLower(name))
}

func isCredentialName(name string) bool {
	return slices.Contains(credentialNames, strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)))
}

// credentials yields the credentials in a message: a URL, headers and a body.
func credentials(address string, headers [][2]string, body []byte, yield func(string)) {
	give := func(text string) {
		if len(text) >= shortestCredential && !strings.Contains(text, handlePrefix) {
			yield(text)
		}
	}
	inURL := func(text string) {
		if u, err := url.Parse(text); err == nil {
			parameters(u.RawQuery, give)
			parameters(u.EscapedFragment(), give) // where RFC 6749 section 4.2.2 has tokens
		}
	}
	inURL(address)
	kind := ""
	for _, pair := range headers {
		switch name := strings.ToLower(pair[0]); {
		case isCredentialHeader(name):
			scheme, rest, ok := strings.Cut(pair[1], " ")
			if !ok || name != "authorization" {
				rest = pair[1]
			}
			give(rest)
			if b, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
				_, password, _ := strings.Cut(string(b), ":")
				give(password)
			}
		case name == "content-type":
			kind, _, _ = mime.ParseMediaType(pair[1])
		case name == "location":
			inURL(pair[1])
		}
	}
	if kind == "application/x-www-form-urlencoded" {
		parameters(string(body), give)
	} else if b := bytes.TrimLeft(body, " \t\r\n"); len(b) > 0 && (b[0] == '{' || b[0] == '[') {
		if v, err := strictjson.Parse(body, strictjson.ParseOptions{AnyKind: true}); err == nil {
			members(v, give)
		}
	}
}

func parameters(query string, give func(string)) {
	q, _ := url.ParseQuery(query) // the valid part of it
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, text := range q[name] {
			if isCredentialName(name) {
				give(text)
			}
		}
	}
}

func members(v strictjson.Value, give func(string)) {
	for name, m := range v.Members() {
		if text, ok := m.Text(); ok && isCredentialName(name) {
			give(text)
		}
		members(m, give)
	}
	for item := range v.Items() {
		members(item, give)
	}
}
