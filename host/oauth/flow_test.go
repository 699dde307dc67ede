package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/oauth/oauthtest"
)

func clientOf(s *oauthtest.Server) *oauth.Client {
	s.ClientID = "client"
	return &oauth.Client{Declared: declared(abi.OAuthRefresh), ID: "client", Secret: s.ClientSecret, Via: direct{s}}
}

// RFC 8628: the code is shown, the server asked at its pace, and what is kept
// says for whom it is.
func TestDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Pending: 3}
		var shown []oauth.DeviceCode
		began := time.Now()
		got, err := clientOf(s).Device(context.Background(), func(d oauth.DeviceCode) { shown = append(shown, d) })
		if err != nil {
			t.Fatal(err)
		}
		if len(shown) != 1 || shown[0].Code != "WDJB-MJHT" || shown[0].URL != "http://auth.example/enter" ||
			shown[0].Host != "auth.example" {
			t.Errorf("shown %+v", shown)
		}
		if d := time.Since(began); d != 4*time.Second {
			t.Errorf("took %s, want 4s", d)
		}
		if got.TokenURL != "https://auth.example/token" || got.ClientID != "client" ||
			!strings.HasPrefix(got.RefreshToken, "refresh-") {
			t.Errorf("kept for %s of %s", got.ClientID, got.TokenURL)
		}
		b, err := got.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := oauth.ReadStored(b); err != nil || again.RefreshToken != got.RefreshToken ||
			again.For(declared(abi.OAuthRefresh), "client") != nil {
			t.Errorf("read back: %v", err)
		}
	})
}

// RFC 8628 section 3.5: slow_down adds five seconds for good.
func TestDeviceSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		s := &oauthtest.Server{}
		s.Token = func(w http.ResponseWriter, _ *http.Request) bool {
			if polls++; polls > 2 {
				return false
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error": "slow_down"}`)
			return true
		}
		began := time.Now()
		if _, err := clientOf(s).Device(context.Background(), func(oauth.DeviceCode) {}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != (1+6+11)*time.Second {
			t.Errorf("took %s, want 18s", d)
		}
	})
}

func TestDeviceFailures(t *testing.T) {
	type device = map[string]any
	fine := func(change device) device {
		d := device{"device_code": "d", "user_code": "U", "verification_uri": "https://auth.example/enter",
			"expires_in": 600, "interval": 1}
		for k, v := range change {
			d[k] = v
		}
		return d
	}
	for _, tt := range []struct {
		name, refusal, want string
		body                any
	}{
		{"denied", "access_denied", oauth.CodeRefused, fine(nil)},
		{"too late", "expired_token", oauth.CodeExpired, fine(nil)},
		{"never", "authorization_pending", oauth.CodeExpired, fine(nil)},
		{"never, and no time is said", "authorization_pending", oauth.CodeExpired, fine(device{"expires_in": 0})},
		{"a long time", "authorization_pending", oauth.CodeExpired, fine(device{"expires_in": 1e9, "interval": 1e9})},
		{"long ago", "authorization_pending", oauth.CodeExpired, fine(device{"expires_in": -5})},
		{"null", "", oauth.CodeUnavailable, nil}, // which makes x/oauth2 panic
		{"script", "", oauth.CodeUnavailable, fine(device{"verification_uri": "javascript:alert(1)"})},
		{"file", "", oauth.CodeUnavailable, fine(device{"verification_uri": "file:///etc/passwd"})},
		{"another's name", "", oauth.CodeUnavailable, fine(device{"verification_uri": "https://auth.example@evil.example/"})},
		{"look-alike", "", oauth.CodeUnavailable, fine(device{"verification_uri": "https://аuth.example/"})},
		{"escape in the URL", "", oauth.CodeUnavailable, fine(device{"verification_uri": "https://auth.example/\x1b[2J"})},
		{"escape in the code", "", oauth.CodeUnavailable, fine(device{"user_code": "A\x1b[2J"})},
		{"lines in the code", "", oauth.CodeUnavailable, fine(device{"user_code": "A\nOpen https://evil.example"})},
		{"long code", "", oauth.CodeUnavailable, fine(device{"user_code": strings.Repeat("A", 65)})},
		{"no device code", "", oauth.CodeUnavailable, fine(device{"device_code": ""})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &oauthtest.Server{}
				s.Device = func(w http.ResponseWriter, _ *http.Request) bool {
					_ = json.NewEncoder(w).Encode(tt.body)
					return true
				}
				s.Token = func(w http.ResponseWriter, _ *http.Request) bool {
					w.WriteHeader(http.StatusBadRequest)
					_ = json.NewEncoder(w).Encode(map[string]string{"error": tt.refusal})
					return true
				}
				began, shown := time.Now(), false
				_, err := clientOf(s).Device(context.Background(), func(oauth.DeviceCode) { shown = true })
				if code(err) != tt.want || shown == (tt.refusal == "") {
					t.Errorf("shown %v, got %s: %v", shown, code(err), err)
				}
				if d := time.Since(began); d > 31*time.Minute {
					t.Errorf("took %s", d)
				}
			})
		})
	}
}

// A server that does not answer at all ends with the owner's patience.
func TestDeviceInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{}
		s.Device = func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := clientOf(s).Device(ctx, func(oauth.DeviceCode) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// browser is what opens the pages that it is sent to.
func browser(t *testing.T, u string) (status int, body string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(u)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	if r.Header.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" ||
		r.Header.Get("Content-Type") != "text/plain; charset=utf-8" || r.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("headers %v", r.Header)
	}
	return r.StatusCode, string(b)
}

// consenting is a server on a port of its own, whose page consents.
func consenting(t *testing.T, s *oauthtest.Server) *oauth.Client {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c := clientOf(s)
	c.Via = web.Client().Transport
	c.Declared.TokenURL, c.Declared.AuthorizeURL = web.URL+"/token", web.URL+"/authorize"
	return c
}

// RFC 8252 and RFC 7636: the server, which checks the verifier and the redirect,
// is content.
func TestBrowser(t *testing.T) {
	c := consenting(t, &oauthtest.Server{ClientSecret: "secret"})
	done := make(chan struct{})
	got, err := c.Browser(context.Background(), func(u string) {
		go func() {
			defer close(done)
			if status, body := browser(t, u); status != http.StatusOK || strings.Contains(body, "<") {
				t.Errorf("page: %d %s", status, body)
			}
		}()
	})
	<-done
	if err != nil || !strings.HasPrefix(got.RefreshToken, "refresh-") {
		t.Errorf("got %v", err)
	}
}

func TestBrowserDenied(t *testing.T) {
	c := consenting(t, &oauthtest.Server{Refusal: "access_denied"})
	_, err := c.Browser(context.Background(), func(u string) { go browser(t, u) })
	if code(err) != oauth.CodeRefused || !strings.Contains(err.Error(), "access was denied") {
		t.Errorf("got %v", err)
	}
}

// Other processes of the machine can reach the address. What they say changes
// nothing; the owner's browser is still heard.
func TestBrowserStrangers(t *testing.T) {
	s := &oauthtest.Server{}
	c := consenting(t, s)
	done := make(chan struct{})
	got, err := c.Browser(context.Background(), func(u string) {
		asked, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		q := asked.Query()
		to, state := q.Get("redirect_uri"), q.Get("state")
		if q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(state) != 43 ||
			!strings.HasPrefix(to, "http://127.0.0.1:") {
			t.Errorf("asked with %v", q)
		}
		go func() {
			defer close(done)
			for _, tt := range []struct {
				path   string
				status int
			}{
				{"?code=stolen", http.StatusBadRequest},
				{"?code=stolen&state=", http.StatusBadRequest},
				{"?code=stolen&state=" + strings.Repeat("A", 43), http.StatusBadRequest},
				{"?error=access_denied&state=x", http.StatusBadRequest},
				{"?code=a&code=b&state=" + state, http.StatusBadRequest},
				{"?code=a&error=b&state=" + state, http.StatusBadRequest},
				{"?code=a&state=x&state=" + state, http.StatusBadRequest},
				{"?code=a%00b&state=" + state, http.StatusBadRequest},
				{"?code=" + strings.Repeat("a", 9000) + "&state=" + state, http.StatusBadRequest},
				{"?state=" + state, http.StatusBadRequest},
				{"/more?code=a&state=" + state, http.StatusNotFound},
				{"%2f?code=a&state=" + state, http.StatusNotFound},
			} {
				if status, _ := browser(t, to+tt.path); status != tt.status {
					t.Errorf("%s: %d, want %d", tt.path, status, tt.status)
				}
			}
			if status, _ := foreign(t, to+"?code=a&state="+state); status != http.StatusNotFound {
				t.Errorf("by another name: %d", status)
			}
			browser(t, u)
		}()
	})
	<-done
	if err != nil || !strings.HasPrefix(got.RefreshToken, "refresh-") {
		t.Errorf("got %v", err)
	}
	if n := len(s.Asked()); n != 1 {
		t.Errorf("%d codes were tried, want 1", n)
	}
}

// foreign asks by a name that leads to this machine (DNS rebinding).
func foreign(t *testing.T, u string) (int, error) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	got, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return got.StatusCode, got.Body.Close()
}

// A code that somebody else got, sent with the state that they saw, is for
// another challenge: the server refuses it (RFC 7636), and nothing is kept.
func TestBrowserInjection(t *testing.T) {
	s := &oauthtest.Server{}
	c := consenting(t, s)
	_, err := c.Browser(context.Background(), func(u string) {
		asked, _ := url.Parse(u)
		mine := asked.Query()
		mine.Set("code_challenge", strings.Repeat("A", 43)) // the attacker's own
		asked.RawQuery = mine.Encode()
		go browser(t, asked.String())
	})
	if code(err) != oauth.CodeExpired {
		t.Errorf("got %v", err)
	}
}

func TestBrowserInterrupted(t *testing.T) {
	c := consenting(t, &oauthtest.Server{})
	ctx, cancel := context.WithCancel(context.Background())
	var to string
	_, err := c.Browser(ctx, func(u string) {
		asked, _ := url.Parse(u)
		to = asked.Query().Get("redirect_uri")
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := foreign(t, to); err == nil {
		t.Error("somebody still listens")
	}
}

// What is stored goes to the server that it is of, for the client and the scopes
// that were asked for.
func TestStored(t *testing.T) {
	o := declared(abi.OAuthRefresh)
	s := oauth.Stored{Version: 1, RefreshToken: "refresh-1", TokenURL: o.TokenURL, ClientID: "client",
		Scopes: []string{"mail.read", "x"}}
	if err := s.For(o, "client"); err != nil {
		t.Error(err)
	}
	if err := s.For(o, "other"); !errors.Is(err, oauth.ErrOther) {
		t.Errorf("another client: %v", err)
	}
	moved := *o
	moved.TokenURL = "https://evil.example/token"
	if err := s.For(&moved, "client"); !errors.Is(err, oauth.ErrOther) {
		t.Errorf("another server: %v", err)
	}
	more := *o
	more.Scopes = []string{"mail"}
	if err := s.For(&more, "client"); !errors.Is(err, oauth.ErrOther) {
		t.Errorf("another scope: %v", err)
	}
	if bare, err := oauth.ReadStored([]byte("1//refresh")); err != nil || bare.RefreshToken != "1//refresh" ||
		bare.For(&moved, "x") != nil {
		t.Errorf("a token from elsewhere: %v", err)
	}
	var logged strings.Builder
	c := oauth.Client{Secret: "PLANTED", Declared: o}
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "stored", s, "client", c, "pointer", &c)
	fmt.Fprintf(&logged, "%v %+v %#v %s %v %+v %#v", s, s, s, s, c, &c, c)
	if strings.Contains(logged.String(), "refresh-1") || strings.Contains(logged.String(), "PLANTED") {
		t.Errorf("printed %s", logged.String())
	}
	for _, bad := range []string{"", "{", "{}", "a b", "a\r\nb",
		`{"version": 2, "refresh_token": "PLANTED", "token_url": "x"}`,
		`{"version": 1, "refresh_token": "PLAN TED", "token_url": "x"}`, `{"version": 1, "refresh_token": "PLANTED"}`} {
		if _, err := oauth.ReadStored([]byte(bad)); !errors.Is(err, oauth.ErrMissing) ||
			strings.Contains(err.Error(), "PLAN") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
