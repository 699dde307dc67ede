package abi

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// OAuth says how the host obtains a secret. The secret's handle stands for the current
// access token; nothing else of OAuth 2.0 reaches the connector.
type OAuth struct {
	Grant     string   // refresh_token or client_credentials
	Authorize []string // flows with which the owner can authorize a refresh_token
	// Invariant: the URLs are https, or http to this machine.
	TokenURL     string
	DeviceURL    string // of device_code
	AuthorizeURL string // of authorization_code; only the owner's browser opens it
	RedirectPath string // of authorization_code, below http://127.0.0.1:PORT
	Scopes       []string
	ClientID     string // "" if a setting has it
	ClientIDFrom string // name of the setting
	ClientSecret string // name of another secret, "" for a public client
	ClientAuth   string // client_secret_basic or client_secret_post
	Audience     string
	// Params are extra parameters of authorization requests or, if the grant has none, of
	// token requests.
	Params map[string]string
}

// The supported grants, flows and client authentication methods of OAuth 2.0.
const (
	OAuthRefresh     = "refresh_token"
	OAuthClient      = "client_credentials"
	OAuthDevice      = "device_code"
	OAuthCode        = "authorization_code"
	ClientAuthBasic  = "client_secret_basic"
	ClientAuthPost   = "client_secret_post"
	oauthURLBytes    = 1024
	oauthParamBytes  = 512
	oauthScopes      = 64
	oauthParams      = 16
	defaultRedirect  = "/callback"
	wantRedirectPath = "a path such as /callback, without query, dots and escapes"
)

// oauthReserved are the parameters that the host sets itself.
var oauthReserved = []string{
	"audience", "assertion", "client_assertion", "client_assertion_type", "client_id", "client_secret", "code",
	"code_challenge", "code_challenge_method", "code_verifier", "device_code", "grant_type", "password", "redirect_uri",
	"refresh_token", "request", "request_uri", "response_mode", "response_type", "scope", "state", "username",
}

func (r *manifestReader) oauth(a at) *OAuth {
	if !r.object(a, false) {
		return nil
	}
	o := &OAuth{
		Grant:        r.oneOf(a.member("grant"), true, OAuthRefresh, OAuthClient),
		TokenURL:     r.endpoint(a.member("token_url"), true),
		ClientSecret: r.text(a.member("client_secret"), 64, false),
		ClientAuth:   r.oneOf(a.member("client_auth"), false, ClientAuthBasic, ClientAuthPost),
		Audience:     r.text(a.member("audience"), oauthParamBytes, false),
	}
	r.list(a.member("scopes"), oauthScopes, func(i at) {
		s := r.text(i, 256, true)
		if strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			r.fail(i, "oauth_scope_invalid", "one scope, without blanks")
		}
		o.Scopes = append(o.Scopes, s)
	})
	r.oauthClient(o, a)
	r.oauthFlows(o, a)
	r.oauthParams(o, a.member("params"))
	return o
}

func (r *manifestReader) oauthClient(o *OAuth, a at) {
	if id := a.member("client_id"); id.Is(strictjson.KindObject) {
		o.ClientIDFrom = r.text(id.member("setting"), 256, true)
	} else {
		o.ClientID = r.text(id, oauthParamBytes, true)
	}
	if o.ClientSecret == "" && o.Grant == OAuthClient {
		r.fail(a.member("client_secret"), "oauth_secret_missing", "the name of the secret that client_credentials needs")
	}
	if o.ClientAuth == "" {
		o.ClientAuth = ClientAuthBasic
	}
}

// oauthFlows reads how an owner authorizes, which refresh_token requires.
func (r *manifestReader) oauthFlows(o *OAuth, a at) {
	r.list(a.member("authorize"), 2, func(i at) {
		flow := r.oneOf(i, true, OAuthDevice, OAuthCode)
		if slices.Contains(o.Authorize, flow) {
			r.fail(i, "oauth_flow_duplicate", "a flow that is not there yet")
		}
		o.Authorize = append(o.Authorize, flow)
	})
	switch {
	case o.Grant == OAuthRefresh && len(o.Authorize) == 0:
		r.fail(a.member("authorize"), "oauth_flow_missing", "a list of device_code, authorization_code or both")
	case o.Grant == OAuthClient && len(o.Authorize) > 0:
		r.fail(a.member("authorize"), "oauth_flow_unused", "no flows: nobody authorizes client_credentials")
	}
	o.DeviceURL = r.endpoint(a.member("device_url"), slices.Contains(o.Authorize, OAuthDevice))
	o.AuthorizeURL = r.endpoint(a.member("authorize_url"), slices.Contains(o.Authorize, OAuthCode))
	to := a.member("redirect_path")
	if o.RedirectPath = r.text(to, 128, false); o.RedirectPath == "" {
		o.RedirectPath = defaultRedirect
	}
	if !plainPath(o.RedirectPath) {
		r.fail(to, "oauth_redirect_invalid", wantRedirectPath)
	}
}

// plainPath reports whether p is a path that every parser of URLs reads alike.
func plainPath(p string) bool {
	return strings.HasPrefix(p, "/") && path.Clean(p) == p && !strings.ContainsFunc(p, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("/-_.", c)
	})
}

// endpoint reads a URL to which tokens and codes may be sent.
func (r *manifestReader) endpoint(a at, required bool) string {
	text := r.text(a, oauthURLBytes, required)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || !plainHost(u) || u.User != nil || u.Opaque != "" || u.Fragment != "" || u.RawQuery != "" ||
		u.ForceQuery || !plainPath("/"+strings.TrimPrefix(strings.TrimSuffix(u.EscapedPath(), "/"), "/")):
		r.fail(a, "oauth_url_invalid",
			"an absolute URL, its host in lower case and ASCII, without user, query, fragment, dots and escapes")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLocal(u.Hostname())):
		r.fail(a, "oauth_url_insecure", "an https URL, or http of 127.0.0.1, [::1] or localhost")
	}
	return text
}

// plainHost reports whether u's host is in canonical form, so that equal hosts are spelled
// alike.
func plainHost(u *url.URL) bool {
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String() == host && a.Zone() == "" && !a.Is4In6()
	}
	return host != "" && !strings.HasSuffix(host, ".") && !strings.ContainsFunc(host, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
	})
}

func isLocal(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost"
}

func (r *manifestReader) oauthParams(o *OAuth, a at) {
	if !r.object(a, false) {
		return
	}
	if n := a.Value.Len(); n > oauthParams {
		r.fail(a, "oauth_params_too_many", fmt.Sprintf("at most %d parameters", oauthParams))
	}
	o.Params = map[string]string{}
	for name := range a.Members() {
		p := a.member(name)
		if !isFieldName(name) || slices.Contains(oauthReserved, strings.ToLower(name)) {
			r.fail(p, "oauth_param_reserved", "a parameter that the host does not set itself, ^[A-Za-z0-9_.-]{1,64}$")
		}
		o.Params[name] = r.text(p, oauthParamBytes, true)
	}
}

// oauthSecrets checks secrets against each other: an access token is sealed and never sent
// to a token endpoint, and a client secret never leaves the host in a connector's request.
func (r *manifestReader) oauthSecrets(b *SluiceBlock, list at) {
	for i, f := range b.Secrets {
		if f.OAuth == nil {
			continue
		}
		a := at{strictjson.Value{}, fmt.Sprintf("%s/%d", list.path, i)}
		o := a.member("oauth")
		if f.Delivery == "plain" {
			r.fail(a.member("delivery"), "oauth_plain", "sealed: an access token is never shown to the connector")
		}
		for n, d := range f.Destinations {
			if f.OAuth.reached(d) {
				r.fail(at{strictjson.Value{}, fmt.Sprintf("%s/destinations/%d", a.path, n)}, "oauth_destination",
					"an origin in lower case and ASCII, with a path_prefix below which no URL of oauth is")
			}
		}
		if name := f.OAuth.ClientIDFrom; name != "" && !b.Settings.text(name) {
			r.fail(o.member("client_id"), "oauth_setting_unknown", "the name of a setting of type string")
		}
		if f.OAuth.ClientSecret != "" {
			r.clientSecret(b, f.OAuth.ClientSecret, o.member("client_secret"))
		}
	}
}

func (r *manifestReader) clientSecret(b *SluiceBlock, name string, a at) {
	i := slices.IndexFunc(b.Secrets, func(f SecretField) bool { return f.Name == name })
	switch {
	case i < 0 || b.Secrets[i].OAuth != nil:
		r.fail(a, "oauth_secret_unknown", "the name of another secret, without oauth")
	case b.Secrets[i].Delivery == "plain" || len(b.Secrets[i].Destinations) > 0 || len(b.Secrets[i].Env) > 0:
		r.fail(a, "oauth_secret_shared",
			"the name of a secret without destinations and env that is not plain: only the host uses it")
	}
}

func (s *Settings) text(name string) bool {
	return s != nil && slices.ContainsFunc(s.Properties,
		func(p Setting) bool { return p.Name == name && p.Type == "string" })
}

// Endpoints returns the URLs to which the host sends token requests.
func (o *OAuth) Endpoints() []string {
	if o.DeviceURL == "" {
		return []string{o.TokenURL}
	}
	return []string{o.TokenURL, o.DeviceURL}
}

// reached reports whether a value sent to d could be exchanged for other tokens there,
// whose answer the connector would read.
func (o *OAuth) reached(d Destination) bool {
	to, err := url.Parse(d.Origin)
	if err != nil || !plainHost(to) {
		return true
	}
	return slices.ContainsFunc(o.Endpoints(), func(text string) bool {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() != to.Hostname() || portOf(u) != portOf(to) {
			return false
		}
		prefix := strings.TrimSuffix(d.PathPrefix, "/")
		return !strings.HasPrefix(prefix, "/") || strings.HasPrefix(u.Path+"/", prefix+"/")
	})
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// ClientSecrets returns the names of the secrets that only the host uses.
func (b *SluiceBlock) ClientSecrets() []string {
	var out []string
	if b == nil {
		return nil
	}
	for _, f := range b.Secrets {
		if f.OAuth != nil && f.OAuth.ClientSecret != "" && !slices.Contains(out, f.OAuth.ClientSecret) {
			out = append(out, f.OAuth.ClientSecret)
		}
	}
	return out
}

// A SessionToken is a place in one server's answers whose value becomes a handle before the
// guest sees it, such as what a login returns for a sealed password. The value may be sent
// back to that origin only.
type SessionToken struct {
	Name       string
	Origin     string // of the answers, or OwnerOrigin
	PathPrefix string // of the requests whose answers contain it
	// Exactly one of these is set.
	Pointer string // JSON pointer into the body
	Header  string
	Cookie  string

	Placements []string // where requests to that origin may contain it
}

// Place describes in words where an answer contains the token.
func (t SessionToken) Place() string {
	switch {
	case t.Pointer != "":
		return "at " + t.Pointer
	case t.Header != "":
		return "in the header " + t.Header
	}
	return "in the cookie " + t.Cookie
}

// Same reports whether t and o are the same place, whatever their Placements.
func (t SessionToken) Same(o SessionToken) bool {
	return t.Name == o.Name && t.Origin == o.Origin && t.PathPrefix == o.PathPrefix && t.Pointer == o.Pointer &&
		t.Header == o.Header && t.Cookie == o.Cookie
}

// maxTokens bounds the session tokens of a manifest.
const maxTokens = 16

// sessionTokens reads session tokens, whose names must differ from those of secrets.
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
			Name: r.text(i.member("name"), 64, true), Origin: r.text(i.member("origin"), 512, true),
			PathPrefix: r.text(i.member("path_prefix"), 512, true), Pointer: r.text(i.member("pointer"), 512, false),
			Header: r.text(i.member("header"), 64, false), Cookie: r.text(i.member("cookie"), 64, false),
			Placements: r.texts(i.member("placements"), 16),
		}
		if !isFieldName(t.Name) || strings.Contains(t.Name, ".") || names[t.Name] {
			r.fail(i.member("name"), "session_token_name_invalid",
				"^[A-Za-z0-9_-]{1,64}$, and no name of another token or secret")
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

// tokenPlace checks where a token is found, and where it may be sent.
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
	case t.Header != "" && (!isToken(t.Header) || slices.Contains(tokenlessHeaders, strings.ToLower(t.Header))):
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

// tokenlessHeaders are headers that a session token cannot be taken from: they frame the
// answer, or no guest sees them.
var tokenlessHeaders = []string{"set-cookie", "set-cookie2", "location", "content-type", "content-length",
	"content-encoding", "transfer-encoding", "connection",
	"content-range", "trailer", "upgrade"}

// isToken reports whether s is a token of RFC 9110 section 5.6.2, the form of header and
// cookie names.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') &&
			strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
