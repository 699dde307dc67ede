package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

// tokens are values that change: the next one each time that one is refused.
type tokens struct {
	seals   *egress.Seals
	mu      sync.Mutex
	n       int
	refused []string
	err     error
	last    bool // no newer one comes
}

func (k *tokens) value() string { return fmt.Sprintf("token-number-%d", k.n) }

func (k *tokens) current(_ context.Context, refused string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if refused != "" {
		k.refused = append(k.refused, refused)
		if k.err != nil {
			return "", k.err
		}
		if refused == k.value() && !k.last {
			k.n++
		}
	}
	k.seals.Echo(handle, [][]byte{[]byte(k.value())})
	return k.value(), nil
}

// refreshed is a client with a changing secret for base.
func refreshed(t *testing.T, base string, entries ...egress.Entry) (*egress.Client, *tokens) {
	t.Helper()
	k := &tokens{seals: &egress.Seals{}}
	k.seals.AddSource("token", handle, k.current,
		[]abi.Destination{{Origin: base, PathPrefix: "/api", Placements: []string{"header:Authorization", "body"}}})
	return client(t, egress.Options{Seals: k.seals}, entries...), k
}

func send(t *testing.T, c *egress.Client, u, method, body string) (*egress.Response, string, error) {
	t.Helper()
	q := &egress.Request{Method: method, URL: u, Redirect: "follow", Body: []byte(body),
		Headers: [][2]string{{"Authorization", "Bearer " + handle}}}
	if body != "" {
		q.Headers = append(q.Headers, [2]string{"Content-Type", "application/json"})
	}
	r, err := c.Do(context.Background(), q)
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r, string(b), err
}

// wants answers 401 until it gets the token of number n, and gives back what it
// got.
func wants(n int, got *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*got = append(*got, r.Method+" "+r.Header.Get("Authorization")+" "+string(b))
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-number-%d", n) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprintf(w, "%s", (*got)[len(*got)-1])
	}
}

// A request whose token is refused is made once more with a newer one, its body
// too, and never a third time. What comes back has the handle for each.
func TestRefusedValue(t *testing.T) {
	var got []string
	base, e := serve(t, wants(1, &got))
	c, k := refreshed(t, base, e)
	r, body, err := send(t, c, base+"/api/x", "POST", `{"t":"`+handle+`"}`)
	if err != nil || r.Status != http.StatusOK {
		t.Fatalf("got %v, %v", r, err)
	}
	want := []string{`POST Bearer token-number-0 {"t":"token-number-0"}`,
		`POST Bearer token-number-1 {"t":"token-number-1"}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if body != `POST Bearer `+handle+` {"t":"`+handle+`"}` {
		t.Errorf("the guest reads %s", body)
	}
	if d := cmp.Diff([]string{"token-number-0"}, k.refused); d != "" {
		t.Error(d)
	}
}

func TestRefusedTwice(t *testing.T) {
	var got []string
	base, e := serve(t, wants(99, &got))
	c, _ := refreshed(t, base, e)
	r, body, err := send(t, c, base+"/api/x", "GET", "")
	if err != nil || r.Status != http.StatusUnauthorized || len(got) != 2 || strings.Contains(body, "token-number") {
		t.Errorf("%d requests, got %v %q, %v", len(got), r, body, err)
	}
}

// Without a newer value the guest has the server's answer.
func TestRefusedLast(t *testing.T) {
	var got []string
	base, e := serve(t, wants(99, &got))
	c, k := refreshed(t, base, e)
	k.last = true
	r, body, err := send(t, c, base+"/api/x", "GET", "")
	if err != nil || r.Status != http.StatusUnauthorized || len(got) != 1 || body != "GET Bearer "+handle+" " {
		t.Errorf("%d requests, got %v %q, %v", len(got), r, body, err)
	}
}

// When there can be none any more, the guest is told why instead.
func TestRefusedForGood(t *testing.T) {
	var got []string
	base, e := serve(t, wants(99, &got))
	c, k := refreshed(t, base, e)
	k.err = &egress.Error{Errno: abi.EDENIED, Code: "authorization_expired", Message: "authorize again"}
	_, _, err := send(t, c, base+"/api/x", "GET", "")
	var denied *egress.Error
	if !errors.As(err, &denied) || denied.Code != "authorization_expired" || denied.Errno != abi.EDENIED || len(got) != 1 {
		t.Errorf("%d requests, got %v", len(got), err)
	}
}

// A 401 of a request without a changing value is the guest's.
func TestRefusedOther(t *testing.T) {
	var got []string
	base, e := serve(t, wants(99, &got))
	c, k := refreshed(t, base, e)
	r, err := get(c, base+"/api/x")
	if err != nil || r.Status != http.StatusUnauthorized || len(got) != 1 || len(k.refused) > 0 {
		t.Errorf("%d requests, got %v, %v", len(got), r, err)
	}
	_ = r.Body.Close()
}

// A changing value goes where one that stays may go, and no token is asked for
// what may not be sent.
func TestCurrentElsewhere(t *testing.T) {
	base, e := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	elsewhere, other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	k := &tokens{seals: &egress.Seals{}}
	k.seals.AddSource("token", handle, func(context.Context, string) (string, error) {
		t.Error("a token was asked for")
		return "", errors.New("no")
	}, []abi.Destination{{Origin: base, PathPrefix: "/api", Placements: []string{"header:Authorization"}}})
	c := client(t, egress.Options{Seals: k.seals}, e, other)
	for u, code := range map[string]string{
		base + "/token":               "sealed_destination_denied",
		base + "/api/../token":        "sealed_destination_denied",
		base + "/api/%2e%2e/token":    "sealed_destination_denied",
		base + "/api/x?a=" + handle:   "sealed_placement_denied",
		elsewhere + "/api/x":          "sealed_destination_denied",
		"http://unapproved.example/x": "host_denied",
	} {
		_, _, err := send(t, c, u, "GET", "")
		var denied *egress.Error
		if !errors.As(err, &denied) || denied.Code != code {
			t.Errorf("%s: got %v, want %s", u, err, code)
		}
	}
}

// The host's own requests: bounded, under the policy, and not redirected.
func TestTransport(t *testing.T) {
	elsewhere, other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was redirected") })
	arrived := make(chan struct{})
	base, e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		case "/big":
			_, _ = io.WriteString(w, strings.Repeat("x", 2000))
		case "/slow":
			<-r.Context().Done()
		case "/held":
			close(arrived)
			<-r.Context().Done()
		default:
			w.Header().Set("X-Seen", r.Header.Get("X-Sent"))
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write(b)
		}
	})
	var hops []egress.Hop
	c := client(t, egress.Options{Audit: func(h egress.Hop) { hops = append(hops, h) }}, e, other)
	h := &http.Client{Transport: &egress.Transport{Client: c, MaxBody: 1000, Timeout: time.Minute}}
	hasty := &http.Client{Transport: &egress.Transport{Client: c, MaxBody: 1000, Timeout: time.Second}}
	post := func(u, body string) (*http.Response, error) {
		if strings.HasSuffix(u, "/slow") {
			return hasty.Post(u, "text/plain", strings.NewReader(body))
		}
		return h.Post(u, "text/plain", strings.NewReader(body))
	}
	req, _ := http.NewRequest("POST", base+"/x", strings.NewReader("hello"))
	req.Header.Set("X-Sent", "yes")
	r, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusTeapot || string(b) != "hello" || r.Header.Get("X-Seen") != "yes" {
		t.Errorf("got %d %q %v", r.StatusCode, b, r.Header)
	}
	for u, code := range map[string]string{
		base + "/away": "redirect_denied", base + "/big": "response_too_large", base + "/slow": "timeout",
		"https://unapproved.example/": "host_denied",
	} {
		_, err := post(u, "x")
		var bad *egress.Error
		if !errors.As(err, &bad) || bad.Code != code {
			t.Errorf("%s: got %v, want %s", u, err, code)
		}
	}
	if _, err := post(base+"/x", strings.Repeat("x", 1001)); err == nil {
		t.Error("a body over the limit was sent")
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-arrived
		cancel()
	}()
	req, _ = http.NewRequestWithContext(ctx, "GET", base+"/held", nil)
	if _, err := h.Do(req); err == nil {
		t.Error("a request outlived its context")
	}
	if len(hops) != 6 {
		t.Errorf("%d audit lines, want 6: %v", len(hops), hops)
	}
}

// What is the host's alone is not the guest's, and it is told so.
func TestReserved(t *testing.T) {
	base, e := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	c := client(t, egress.Options{Reserved: egress.NewPolicy(e)})
	_, err := get(c, base+"/token")
	var denied *egress.Error
	if !errors.As(err, &denied) || denied.Errno != abi.EDENIED ||
		!strings.Contains(denied.Message, "for fetching tokens only") {
		t.Errorf("got %v", err)
	}
	u, _ := url.Parse(base)
	if _, err := get(c, "http://"+u.Hostname()+":1/"); err == nil || strings.Contains(err.Error(), "tokens only") {
		t.Errorf("got %v", err)
	}
}
