package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
)

// browserTime bounds how long the owner may take on the server's page.
const browserTime = 10 * time.Minute

// Browser authorizes in the owner's browser, which is redirected to a loopback address (RFC 8252),
// with PKCE (RFC 7636). show is called once with the URL to open. ctx ends it. The error is an
// *Error or ctx's.
func (c *Client) Browser(ctx context.Context, show func(url string)) (Stored, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return Stored{}, &Error{CodeUnavailable, "no address of this machine is free to wait on", err}
	}
	conf := c.config()
	conf.RedirectURL = "http://" + l.Addr().String() + c.Declared.RedirectPath
	verifier := oauth2.GenerateVerifier()
	cb := &callback{host: l.Addr().String(), path: c.Declared.RedirectPath, state: newState(),
		answers: make(chan url.Values, 1)}
	shut := cb.serve(l)
	show(conf.AuthCodeURL(cb.state, append(c.options(), oauth2.S256ChallengeOption(verifier))...))
	answer, err := cb.wait(ctx)
	shut()
	if err != nil {
		return Stored{}, err
	}
	if answer.Get("code") == "" {
		return Stored{}, refusedBy(hostOf(c.Declared.AuthorizeURL), &oauth2.RetrieveError{
			Response: &http.Response{StatusCode: http.StatusBadRequest}, ErrorCode: answer.Get("error"),
		})
	}
	t, err := conf.Exchange(c.through(ctx), answer.Get("code"), oauth2.VerifierOption(verifier))
	if t, err = c.checked(ctx, t, err); err != nil {
		return Stored{}, flowError(ctx, err)
	}
	return c.authorization(t)
}

func newState() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// A callback accepts the one answer with the right state. Any process of this machine can send
// others, which have no effect; a code for another challenge is useless.
type callback struct {
	host, path, state string
	answers           chan url.Values
}

// serve answers until shut is called, which waits for the last page to be sent.
func (cb *callback) serve(l net.Listener) (shut func()) {
	s := &http.Server{
		Handler: cb, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		MaxHeaderBytes: 32 << 10, ErrorLog: log.New(io.Discard, "", 0),
	}
	s.SetKeepAlivesEnabled(false)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // reports only the shutdown
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close() // a connection is still open
		}
		<-ended
	}
}

func (cb *callback) wait(ctx context.Context) (url.Values, error) {
	late := time.NewTimer(browserTime)
	defer late.Stop()
	select {
	case v := <-cb.answers:
		return v, nil
	case <-late.C:
		return nil, errorf(CodeExpired, "nothing was decided in the browser for %s", browserTime)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHTTP accepts GET of the exact path, with this address as host.
func (cb *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
	} {
		w.Header().Set(name, value)
	}
	status, text := cb.take(r)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the browser may be gone
}

func (cb *callback) take(r *http.Request) (status int, text string) {
	if r.Method != http.MethodGet || r.Host != cb.host || r.URL.EscapedPath() != cb.path {
		return http.StatusNotFound, "There is nothing here."
	}
	v, err := cb.answer(r.URL.RawQuery)
	if err != nil {
		return http.StatusBadRequest, "This is not an answer to what Sluice asked for. Nothing was done."
	}
	select {
	case cb.answers <- v:
		return http.StatusOK, "Sluice has the answer. You may close this page and go back to the terminal."
	default:
		return http.StatusGone, "Sluice has an answer already."
	}
}

var errAnswer = errors.New("no answer to what was asked")

// answer parses one state, and one code or one error.
func (cb *callback) answer(query string) (url.Values, error) {
	v, err := url.ParseQuery(query)
	if err != nil || len(v["state"]) != 1 || len(v["code"])+len(v["error"]) != 1 {
		return nil, errAnswer
	}
	if subtle.ConstantTimeCompare([]byte(v.Get("state")), []byte(cb.state)) != 1 {
		return nil, errAnswer
	}
	if v.Has("code") && !sendable(v.Get("code")) {
		return nil, errAnswer
	}
	return v, nil
}
