// Package oauthtest is an authorization server and an API that wants its tokens,
// for tests: strict where RFC 6749, RFC 7636 and RFC 8628 are, and as faulty as
// a test wants.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Server issues tokens at /token, device codes at /device and authorization codes at /authorize,
// where everybody consents. /api/ requires a token and echoes the request; /api/revoke revokes all
// access tokens. The zero Server has no clients.
type Server struct {
	ClientID     string
	ClientSecret string        // "": the client is public
	Lifetime     time.Duration // of access tokens, in whole seconds; 0: not stated
	Rotate       bool          // each refresh returns a new refresh token and revokes the old one
	Pending      int           // polls before a device code is approved
	Entered      bool          // a device code is approved only after /enter was opened
	Refusal      string        // answer of /authorize and of polls, instead of consent
	// Token handles /token first; true means that it has answered.
	Token func(w http.ResponseWriter, r *http.Request) bool
	// Device does the same for /device.
	Device func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex // guards what follows
	access  map[string]time.Time
	refresh map[string]bool
	codes   map[string]url.Values
	devices map[string]int
	entered bool // /enter was opened since the last device code
	issued  []string
	asked   []url.Values
	calls   []string
}

// Issued returns all tokens and codes, which only the host may have.
func (s *Server) Issued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.issued)
}

// Asked returns the forms received at /token.
func (s *Server) Asked() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Calls returns the bearer tokens received at /api/.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Authorization returns a new refresh token, as if somebody had consented.
func (s *Server) Authorization() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newRefresh()
}

// Refuse sets Refusal, also while the server is running.
func (s *Server) Refuse(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Refusal = code
}

// Revoke revokes all access tokens, and with everything the refresh tokens too.
func (s *Server) Revoke(everything bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	if everything {
		clear(s.refresh)
	}
}

func (s *Server) issue(kind string) string {
	var b [24]byte
	rand.Read(b[:])
	v := kind + "-" + base64.RawURLEncoding.EncodeToString(b[:])
	s.issued = append(s.issued, v)
	return v
}

func (s *Server) newRefresh() string {
	v := s.issue("refresh")
	if s.refresh == nil {
		s.refresh = map[string]bool{}
	}
	s.refresh[v] = true
	return v
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /token":
		if s.Token == nil || !s.Token(w, r) {
			s.token(w, r)
		}
		return
	case "POST /device":
		if s.Device == nil || !s.Device(w, r) {
			s.device(w, r)
		}
		return
	case "GET /authorize":
		s.authorize(w, r)
		return
	case "GET /enter":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.entered = true
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		s.api(w, r)
		return
	}
	http.NotFound(w, r)
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // to a test
}

func refuse(w http.ResponseWriter, code string) {
	answer(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": "no"})
}

// client authenticates the client. The id of a public client is in the form.
func (s *Server) client(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if basic { // form-encoded first, by RFC 6749, section 2.3.1
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	return s.ClientID != "" && id == s.ClientID && subtle.ConstantTimeCompare([]byte(secret), []byte(s.ClientSecret)) == 1
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil || !s.client(r) {
		refuse(w, "invalid_client")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.PostForm)
	refresh, code := "", ""
	switch f := r.PostForm; f.Get("grant_type") {
	case "refresh_token":
		refresh, code = s.refreshed(f.Get("refresh_token"))
	case "client_credentials":
		if s.ClientSecret == "" {
			code = "unauthorized_client"
		}
	case "authorization_code":
		refresh, code = s.redeemed(f)
	case "urn:ietf:params:oauth:grant-type:device_code":
		refresh, code = s.polled(f.Get("device_code"))
	default:
		code = "unsupported_grant_type"
	}
	if code != "" {
		refuse(w, code)
		return
	}
	body := map[string]any{"access_token": s.issue("access"), "token_type": "Bearer"}
	if s.access == nil {
		s.access = map[string]time.Time{}
	}
	s.access[body["access_token"].(string)] = time.Now().Add(max(s.Lifetime, time.Second))
	if s.Lifetime > 0 {
		body["expires_in"] = int(s.Lifetime / time.Second)
	} else {
		s.access[body["access_token"].(string)] = time.Now().Add(time.Hour)
	}
	if refresh != "" {
		body["refresh_token"] = refresh
	}
	answer(w, http.StatusOK, body)
}

func (s *Server) refreshed(old string) (next, code string) {
	switch {
	case !s.refresh[old]:
		return "", "invalid_grant"
	case s.Rotate:
		delete(s.refresh, old)
		return s.newRefresh(), ""
	}
	return "", ""
}

// redeemed implements RFC 7636, section 4.6.
func (s *Server) redeemed(f url.Values) (refresh, code string) {
	asked, ok := s.codes[f.Get("code")]
	delete(s.codes, f.Get("code"))
	sum := sha256.Sum256([]byte(f.Get("code_verifier")))
	if !ok || asked.Get("redirect_uri") != f.Get("redirect_uri") || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		return "", "invalid_grant"
	}
	return s.newRefresh(), ""
}

func (s *Server) polled(device string) (refresh, code string) {
	left, ok := s.devices[device]
	switch {
	case !ok:
		return "", "invalid_grant"
	case left > 0:
		s.devices[device]--
		return "", "authorization_pending"
	case s.Refusal != "":
		return "", s.Refusal
	case s.Entered && !s.entered:
		return "", "authorization_pending"
	}
	delete(s.devices, device)
	return s.newRefresh(), ""
}

func (s *Server) device(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("client_id") != s.ClientID {
		refuse(w, "invalid_client")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	code := s.issue("device")
	if s.devices == nil {
		s.devices = map[string]int{}
	}
	s.devices[code], s.entered = s.Pending, false
	answer(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": "http://" + r.Host + "/enter",
		"expires_in": 600, "interval": 1,
	})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	to, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != s.ClientID || q.Get("response_type") != "code" || to.Hostname() != "127.0.0.1" {
		http.Error(w, "not a request for authorization", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := url.Values{"state": {q.Get("state")}}
	if s.Refusal != "" {
		v.Set("error", s.Refusal)
	} else {
		code := s.issue("code")
		if s.codes == nil {
			s.codes = map[string]url.Values{}
		}
		s.codes[code] = q
		v.Set("code", code)
	}
	to.RawQuery = v.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

func (s *Server) api(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	until, ok := s.access[token]
	s.calls = append(s.calls, token)
	s.mu.Unlock()
	if !ok || time.Now().After(until) {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token", "you_sent": token})
		return
	}
	if r.URL.Path == "/api/revoke" {
		s.Revoke(false)
	}
	answer(w, http.StatusOK, map[string]any{"welcome": token, "path": r.URL.Path})
}
