package oauth

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/sluicehost/sluice/abi"
)

// A Client requests tokens from an authorization server. It is safe for concurrent use.
type Client struct {
	Declared *abi.OAuth
	ID       string
	Secret   string // "" for a public client
	// Via makes all requests. It is required; nothing falls back to net/http's default client.
	Via http.RoundTripper
}

// Bounds of answers.
const (
	leastToken = 8 // shorter values could not be distinguished from other text
	mostToken  = 8 * abi.KiB
	mostAnswer = 64 * abi.KiB
)

// Host returns the host of the token server.
func (c *Client) Host() string { return hostOf(c.Declared.TokenURL) }

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the server"
	}
	return u.Host
}

// style returns the fixed style of client authentication, since trying another would send a refresh
// token twice.
func (c *Client) style() oauth2.AuthStyle {
	if c.Secret == "" || c.Declared.ClientAuth == abi.ClientAuthPost {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

func (c *Client) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, Scopes: c.Declared.Scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: c.Declared.AuthorizeURL, DeviceAuthURL: c.Declared.DeviceURL, TokenURL: c.Declared.TokenURL,
			AuthStyle: c.style(),
		},
	}
}

// params returns the parameters that the manifest adds.
func (c *Client) params() url.Values {
	v := url.Values{}
	for name, value := range c.Declared.Params {
		v.Set(name, value)
	}
	if c.Declared.Audience != "" {
		v.Set("audience", c.Declared.Audience)
	}
	return v
}

func (c *Client) options() []oauth2.AuthCodeOption {
	var out []oauth2.AuthCodeOption
	for name, values := range c.params() {
		out = append(out, oauth2.SetAuthURLParam(name, values[0]))
	}
	return out
}

// through returns a context in which all requests go through Via, end with ctx and are not
// redirected, since what they carry is for one server.
func (c *Client) through(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, &http.Client{
		Transport:     within{ctx, c.Via},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
}

// within makes requests end with a context, even if they were made without it.
type within struct {
	ctx context.Context
	via http.RoundTripper
}

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.via == nil {
		return nil, errorf(CodeUnavailable, "there is no way to %s", r.URL.Host)
	}
	r = r.Clone(w.ctx)
	r.Header.Set("Accept", "application/json") // some servers otherwise answer with forms
	answer, err := w.via.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	_ = answer.Body.Close() // read
	switch {
	case err != nil:
		return nil, err
	case len(body) > mostAnswer, string(bytes.TrimSpace(body)) == "null": // x/oauth2 does not handle null
		return nil, errorf(CodeUnavailable, "%s answered with what is no token", r.URL.Host)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// refresh exchanges a refresh token for an access token.
func (c *Client) refresh(ctx context.Context, refreshToken string) (*oauth2.Token, error) {
	t, err := c.config().TokenSource(c.through(ctx), &oauth2.Token{RefreshToken: refreshToken}).Token()
	return c.checked(ctx, t, err)
}

// own obtains an access token by client credentials.
func (c *Client) own(ctx context.Context) (*oauth2.Token, error) {
	conf := clientcredentials.Config{
		ClientID: c.ID, ClientSecret: c.Secret, TokenURL: c.Declared.TokenURL, Scopes: c.Declared.Scopes,
		EndpointParams: c.params(), AuthStyle: c.style(),
	}
	t, err := conf.Token(c.through(ctx))
	return c.checked(ctx, t, err)
}

// checked refuses tokens that could not be sent, stored or found in texts.
func (c *Client) checked(ctx context.Context, t *oauth2.Token, err error) (*oauth2.Token, error) {
	if err != nil {
		return nil, explain(ctx, c.Host(), err)
	}
	switch kind := strings.ToLower(t.TokenType); {
	case kind == "mac" || kind == "dpop" || kind == "pop" || kind == "n_a":
		return nil, errorf(CodeRefused, "%s gave a token of a type that cannot be used", c.Host())
	case len(t.AccessToken) < leastToken || !sendable(t.AccessToken):
		return nil, errorf(CodeUnavailable, "%s gave what cannot be an access token", c.Host())
	case t.RefreshToken != "" && !sendable(t.RefreshToken):
		return nil, errorf(CodeUnavailable, "%s gave what cannot be a refresh token", c.Host())
	}
	return t, nil
}

// sendable reports whether a token is visible ASCII (RFC 6749, appendix A) within the length limit.
func sendable(token string) bool {
	return token != "" && len(token) <= mostToken &&
		!strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' })
}

// authorization returns the authorization at the end of a flow.
func (c *Client) authorization(t *oauth2.Token) (Stored, error) {
	if t.RefreshToken == "" {
		return Stored{}, errorf(CodeRefused,
			"%s gave no refresh token; its manual says which scope or parameter asks for one", c.Host())
	}
	return Stored{
		Version: version, RefreshToken: t.RefreshToken, TokenURL: c.Declared.TokenURL, ClientID: c.ID,
		Scopes: c.Declared.Scopes, ObtainedAt: time.Now().UTC().Truncate(time.Second),
	}, nil
}
