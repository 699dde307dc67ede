package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/oauth/oauthtest"
)

// direct brings requests to a handler, without a network, so that time is the
// bubble's.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.ServeHTTP(w, r)
	}()
	<-done
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

func declared(grant string) *abi.OAuth {
	return &abi.OAuth{
		Grant: grant, TokenURL: "https://auth.example/token", DeviceURL: "https://auth.example/device",
		AuthorizeURL: "https://auth.example/authorize", RedirectPath: "/callback", Scopes: []string{"mail.read"},
		ClientAuth: abi.ClientAuthBasic,
	}
}

// kept is a vault of one secret, which may fail.
type kept struct {
	mu    sync.Mutex
	s     oauth.Stored
	err   error
	saves int
	when  func() // at a save
}

func (k *kept) Load() (oauth.Stored, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.s.RefreshToken == "" {
		return oauth.Stored{}, oauth.ErrMissing
	}
	return k.s, nil
}

func (k *kept) Save(_, now oauth.Stored) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return k.err
	}
	if k.when != nil {
		k.when()
	}
	k.s = now
	k.saves++
	return nil
}

// refreshing is a source over a server, and what it keeps.
func refreshing(t *testing.T, s *oauthtest.Server) (*oauth.Source, *kept) {
	t.Helper()
	s.ClientID = "client"
	k := &kept{s: oauth.Stored{RefreshToken: s.Authorization()}}
	src := oauth.NewSource(&oauth.Client{Declared: declared(abi.OAuthRefresh), ID: "client",
		Secret: s.ClientSecret, Via: direct{s}}, k)
	t.Cleanup(src.Close)
	return src, k
}

func current(t *testing.T, s *oauth.Source, refused string) string {
	t.Helper()
	v, err := s.Current(context.Background(), refused)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func code(err error) string {
	var e *oauth.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

// A token is used until a minute before it expires; the refresh token that comes
// with the next one is durable before that is used.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Lifetime: time.Hour, Rotate: true, ClientSecret: "the client's"}
		src, k := refreshing(t, s)
		var told []string
		src.OnSecret(func(v string) { told = append(told, v) })
		first := current(t, src, "")
		time.Sleep(59*time.Minute - time.Second)
		if got := current(t, src, ""); got != first || len(s.Asked()) != 1 {
			t.Errorf("a good token was replaced after %d requests", len(s.Asked()))
		}
		time.Sleep(time.Second)
		k.when = func() {
			if len(told) != 6 {
				t.Errorf("told of %d secrets before the new ones could be used, want 6", len(told))
			}
		}
		second := current(t, src, "")
		if second == first || k.saves != 2 {
			t.Errorf("after its time: the same token %v, stored %d times", second == first, k.saves)
		}
		// The client's secret, and every token of both kinds.
		want := append(s.Issued(), "the client's")
		for _, v := range want {
			if !slices.Contains(told, v) {
				t.Errorf("nobody was told of %s", v)
			}
		}
		if len(told) != len(want) {
			t.Errorf("told of %d secrets, want %d", len(told), len(want))
		}
	})
}

// A refused token is replaced once; a second refusal at once is for something
// else, and one of an older token changes nothing.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Lifetime: time.Hour}
		src, _ := refreshing(t, s)
		first := current(t, src, "")
		second := current(t, src, first)
		if second == first {
			t.Fatal("a refused token was not replaced")
		}
		for range 100 {
			if got := current(t, src, first); got != second {
				t.Fatal("the refusal of an older token replaced the newer one")
			}
			if got := current(t, src, second); got != second {
				t.Fatal("a token that was refused at once was replaced")
			}
		}
		if n := len(s.Asked()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
		time.Sleep(time.Minute)
		if current(t, src, second) == second {
			t.Error("a token that was refused later was not replaced")
		}
	})
}

// One request at a time, however many wait for it; a wait that ends does not end
// the request.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Rotate: true}
		s.Token = func(http.ResponseWriter, *http.Request) bool {
			time.Sleep(5 * time.Second)
			return false
		}
		src, k := refreshing(t, s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := src.Current(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		var waiting sync.WaitGroup
		for range 50 {
			waiting.Go(func() { current(t, src, "") })
		}
		waiting.Wait()
		if n := len(s.Asked()); n != 1 || k.saves != 1 {
			t.Errorf("%d requests, stored %d times; want 1 and 1", n, k.saves)
		}
	})
}

// What a server says to a refresh becomes one of three codes, and nothing that
// it said is in the error.
func TestRefreshFailures(t *testing.T) {
	say := func(status int, kind, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	const json = "application/json"
	for _, tt := range []struct {
		name, want string
		again      bool // a later request asks again
		token      func(http.ResponseWriter, *http.Request) bool
	}{
		{"expired", oauth.CodeExpired, false, say(400, json, `{"error": "invalid_grant", "error_description": "PLANTED"}`)},
		{"expired with 200", oauth.CodeExpired, false, say(200, json, `{"error": "invalid_grant"}`)},
		{"a form", oauth.CodeExpired, false,
			say(400, "application/x-www-form-urlencoded", `error=invalid_grant&error_description=PLANTED`)},
		{"client", oauth.CodeRefused, false, say(401, json, `{"error": "invalid_client"}`)},
		{"of its own", oauth.CodeRefused, false, say(400, json, `{"error": "PLANTED"}`)},
		{"busy", oauth.CodeUnavailable, true, say(503, json, `{"error": "temporarily_unavailable"}`)},
		{"too many", oauth.CodeUnavailable, true, say(429, "text/plain", `PLANTED`)},
		{"page", oauth.CodeUnavailable, true, say(403, "text/html", `<html>PLANTED</html>`)},
		{"page with 200", oauth.CodeUnavailable, true, say(200, "text/html", `<html>PLANTED</html>`)},
		{"empty", oauth.CodeUnavailable, true, say(200, json, ``)},
		{"null", oauth.CodeUnavailable, true, say(200, json, `null`)},
		{"no token", oauth.CodeUnavailable, true, say(200, json, `{"token_type": "bearer"}`)},
		{"short token", oauth.CodeUnavailable, true, say(200, json, `{"access_token": "the", "token_type": "bearer"}`)},
		{"lines", oauth.CodeUnavailable, true,
			say(200, json, `{"access_token": "abcdefgh\r\nX-Evil: 1", "token_type": "bearer"}`)},
		{"long token", oauth.CodeUnavailable, true,
			say(200, json, `{"access_token": "`+strings.Repeat("x", 9000)+`", "token_type": "bearer"}`)},
		{"long refresh token", oauth.CodeUnavailable, true,
			say(200, json, `{"access_token": "abcdefghi", "refresh_token": "`+strings.Repeat("x", 9000)+`"}`)},
		{"bound token", oauth.CodeRefused, false, say(200, json, `{"access_token": "abcdefghi", "token_type": "DPoP"}`)},
		{"huge", oauth.CodeUnavailable, true,
			say(200, json, `{"x": "`+strings.Repeat("x", 1<<17)+`", "access_token": "abcdefghi"}`)},
		{"redirect", oauth.CodeUnavailable, true, func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://evil.example/token", http.StatusTemporaryRedirect)
			return true
		}},
		{"slow", oauth.CodeUnavailable, true, func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				s := &oauthtest.Server{}
				s.Token = func(w http.ResponseWriter, r *http.Request) bool {
					asked++
					if r.URL.Host != "auth.example" {
						t.Errorf("%s was asked for a token", r.URL.Host)
					}
					return tt.token(w, r)
				}
				src, _ := refreshing(t, s)
				for range 20 { // no storm
					_, err := src.Current(context.Background(), "")
					if got := code(err); got != tt.want || strings.Contains(err.Error(), "PLANTED") {
						t.Fatalf("got %s: %v", got, err)
					}
				}
				if asked != 1 {
					t.Errorf("asked %d times, want 1", asked)
				}
				time.Sleep(time.Minute)
				if _, err := src.Current(context.Background(), ""); err == nil || asked == 2 != tt.again {
					t.Errorf("asked %d times after a minute: %v", asked, err)
				}
			})
		})
	}
}

// A refresh token that could not be stored is not lost, and its access token is
// not used.
func TestUnsaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Rotate: true, Lifetime: time.Hour}
		src, k := refreshing(t, s)
		k.err = errors.New("disk full")
		_, err := src.Current(context.Background(), "")
		if code(err) != oauth.CodeUnavailable || !errors.Is(err, k.err) {
			t.Fatalf("got %v", err)
		}
		k.mu.Lock()
		k.err = nil
		k.mu.Unlock()
		time.Sleep(time.Minute)
		current(t, src, "")
		if k.saves != 2 {
			t.Errorf("stored %d times, want 2", k.saves)
		}
		issued := slices.DeleteFunc(s.Issued(), func(v string) bool { return !strings.HasPrefix(v, "refresh-") })
		if have, _ := k.Load(); have.RefreshToken != issued[len(issued)-1] {
			t.Error("the last refresh token is not stored")
		}
	})
}

// One that could be stored only when the run ends is stored then: the server
// has forgotten the one before.
func TestUnsavedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Rotate: true, Lifetime: time.Hour}
		src, k := refreshing(t, s)
		k.err = errors.New("disk full")
		if _, err := src.Current(context.Background(), ""); code(err) != oauth.CodeUnavailable {
			t.Fatalf("got %v", err)
		}
		k.err = nil
		src.Close()
		issued := slices.DeleteFunc(s.Issued(), func(v string) bool { return !strings.HasPrefix(v, "refresh-") })
		if have, _ := k.Load(); have.RefreshToken != issued[len(issued)-1] {
			t.Error("the last refresh token is not stored")
		}
	})
}

// A refresh token that the owner brought from elsewhere is there for the next
// run too, when the server replaced it; from then on it is of that server.
func TestBroughtAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Rotate: true, Lifetime: time.Hour}
		src, k := refreshing(t, s)
		current(t, src, "")
		have, _ := k.Load()
		b, err := have.Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := oauth.ReadStored(b)
		if err != nil || read.RefreshToken != have.RefreshToken {
			t.Fatalf("what was stored cannot be read: %v", err)
		}
		moved := *declared(abi.OAuthRefresh)
		moved.TokenURL = "https://evil.example/token"
		if err := read.For(&moved, "client"); !errors.Is(err, oauth.ErrOther) {
			t.Errorf("another server: %v", err)
		}
	})
}

// An owner who authorizes again while a run lasts is noticed.
func TestAuthorizedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Lifetime: time.Hour}
		src, k := refreshing(t, s)
		s.Revoke(true)
		again := s.Authorization()
		s.Token = func(http.ResponseWriter, *http.Request) bool {
			k.mu.Lock()
			k.s = oauth.Stored{RefreshToken: again}
			k.mu.Unlock()
			return false
		}
		current(t, src, "")
		if n := len(s.Asked()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

// When a run ends, a request for a token is let finish, for its answer may have
// to be stored.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Rotate: true, Lifetime: 10 * time.Minute}
		s.Token = func(http.ResponseWriter, *http.Request) bool {
			time.Sleep(2 * time.Second)
			return false
		}
		src, k := refreshing(t, s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = src.Current(ctx, "")
		src.Close()
		if k.saves != 1 {
			t.Error("the new refresh token was lost")
		}
		time.Sleep(time.Hour)
		if _, err := src.Current(context.Background(), ""); err == nil || len(s.Asked()) != 1 {
			t.Errorf("asked again after the end: %v", err)
		}
	})
}

// A server that is slow at the end of a run holds nobody up for long.
func TestCloseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{}
		s.Token = func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}
		src, _ := refreshing(t, s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = src.Current(ctx, "")
		began := time.Now()
		src.Close()
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// A run is given so many tokens, however short-lived they are said to be.
func TestManyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oauthtest.Server{Lifetime: time.Second}
		src, _ := refreshing(t, s)
		for range 400 {
			time.Sleep(time.Second)
			if _, err := src.Current(context.Background(), ""); err != nil {
				if n := len(s.Asked()); n != 256 || code(err) != oauth.CodeLimit {
					t.Errorf("after %d requests: %v", n, err)
				}
				return
			}
		}
		t.Error("no end of tokens")
	})
}

// Client credentials are sent as the manifest says, and nothing is stored.
func TestClientCredentials(t *testing.T) {
	for _, style := range []string{abi.ClientAuthBasic, abi.ClientAuthPost} {
		synctest.Test(t, func(t *testing.T) {
			s := &oauthtest.Server{ClientID: "cli:ent", ClientSecret: "se&cret", Lifetime: time.Hour}
			o := declared(abi.OAuthClient)
			o.ClientAuth, o.Audience, o.Params = style, "https://api.example", map[string]string{"resource": "mail"}
			src := oauth.NewSource(&oauth.Client{Declared: o, ID: "cli:ent", Secret: "se&cret", Via: direct{s}}, nil)
			defer src.Close()
			first := current(t, src, "")
			if current(t, src, first) == first {
				t.Error("a refused token was not replaced")
			}
			f := s.Asked()[0]
			if f.Get("audience") != "https://api.example" || f.Get("resource") != "mail" || f.Get("scope") != "mail.read" ||
				f.Has("client_secret") != (style == abi.ClientAuthPost) {
				t.Errorf("%s: asked with %v", style, f)
			}
		})
	}
}

// Nothing goes through net/http's own client, not even when there is no other.
func TestNoWay(t *testing.T) {
	src := oauth.NewSource(&oauth.Client{Declared: declared(abi.OAuthRefresh), ID: "client"},
		&kept{s: oauth.Stored{RefreshToken: "refresh-1"}})
	defer src.Close()
	if _, err := src.Current(context.Background(), ""); code(err) != oauth.CodeUnavailable ||
		!strings.Contains(err.Error(), "no way to auth.example") {
		t.Errorf("got %v", err)
	}
}
