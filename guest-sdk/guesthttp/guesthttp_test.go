//go:build !wasip1

package guesthttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

var manifest = []byte(`{
 "protocol_version": "0.1.0", "connector_id": "https://connectors.example/web", "version": "1.0.0", "display_name": "Web",
 "runtime_requirements": {"bindings": {"network": {"hosts": ["api.example.org"]}}}, "capabilities": {},
 "streams": [{"name": "notes", "semantics": "append_only", "primary_key": ["id"],
   "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}]}`)

// inside runs f as a connector whose network is a handler.
func inside(t *testing.T, network http.HandlerFunc, f func(ctx context.Context, run *guest.Run)) {
	t.Helper()
	collect := func(ctx context.Context, run *guest.Run) error { f(ctx, run); return nil }
	guesttest.Run(t, guest.Connector{Collect: collect}, guesttest.Options{Manifest: manifest, Network: network})
}

// echo says what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	text := fmt.Sprintf("%s %s %s %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"), body)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	fmt.Fprint(w, text)
}

func readAll(t *testing.T, res *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Error(err)
		return ""
	}
	b, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestGetAndPost(t *testing.T) {
	inside(t, echo, func(_ context.Context, run *guest.Run) {
		c := guesthttp.Client(run)
		res, err := c.Get("https://api.example.org/a")
		if got := readAll(t, res, err); got != `GET /a  ""` || res.ContentLength != int64(len(got)) {
			t.Errorf("%s", got)
		}
		res, err = c.Post("https://api.example.org/b", "text/plain", strings.NewReader("hello"))
		if got := readAll(t, res, err); got != `POST /b text/plain "hello"` {
			t.Errorf("%s", got)
		}
	})
}

// TestRedirects: http.Client follows them, CheckRedirect is asked, and each hop
// is checked as a request of its own.
func TestRedirects(t *testing.T) {
	var asked []string
	inside(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		switch r.URL.Path {
		case "/1":
			http.Redirect(w, r, "/2", http.StatusFound)
		case "/2":
			http.Redirect(w, r, "https://api.example.org/3", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		default:
			echo(w, r)
		}
	}, func(_ context.Context, run *guest.Run) {
		c := guesthttp.Client(run)
		hops := 0
		c.CheckRedirect = func(*http.Request, []*http.Request) error { hops++; return nil }
		res, err := c.Post("https://api.example.org/1", "text/plain", strings.NewReader("x"))
		if got := readAll(t, res, err); got != `GET /3  ""` || hops != 2 || res.Request.URL.Path != "/3" {
			t.Errorf("%s after %d hops", got, hops)
		}
		if _, err := c.Get("https://api.example.org/away"); !errors.Is(err, abi.EDENIED) {
			t.Errorf("to a host that is not granted: %v", err)
		}
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		res, err = c.Get("https://api.example.org/1")
		if readAll(t, res, err); res.StatusCode != http.StatusFound || res.Header.Get("Location") != "/2" {
			t.Errorf("%s to %q", res.Status, res.Header.Get("Location"))
		}
	})
	if diff := cmp.Diff([]string{"POST /1", "GET /2", "GET /3", "GET /away", "GET /1"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestDeniedHost(t *testing.T) {
	inside(t, echo, func(_ context.Context, run *guest.Run) {
		_, err := guesthttp.Client(run).Get("https://evil.example/")
		e, ok := errors.AsType[*guest.Error](err)
		if !errors.Is(err, abi.EDENIED) || !ok || e.Code != "host_not_approved" {
			t.Errorf("%v", err)
		}
	})
}

// TestJar: the cookies of a client's own jar reach the host, which refuses them
// unless the manifest manages its own.
func TestJar(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(&url.URL{Scheme: "https", Host: "h.example"}, []*http.Cookie{{Name: "session", Value: "1"}})
	f := refuses(abi.EDENIED, "header")
	c := &http.Client{Transport: guesthttp.Over(f), Jar: jar}
	if _, err := c.Get("https://h.example/"); !errors.Is(err, abi.EDENIED) {
		t.Errorf("refused: %v", err)
	}
	if diff := cmp.Diff([]any{[]any{"Cookie", "session=1"}}, f.sentHead(t)["headers"]); diff != "" {
		t.Error(diff)
	}
	f.refused, f.reply = nil, strings.Replace(ok, `[]`, `[["Set-Cookie","session=2"]]`, 1)
	for _, want := range []string{"session=1", "session=2"} {
		res, err := c.Get("https://h.example/")
		readAll(t, res, err)
		if diff := cmp.Diff([]any{[]any{"Cookie", want}}, f.sentHead(t)["headers"]); diff != "" {
			t.Error(diff)
		}
	}
}

// TestHandles: hundreds of responses, read to the end or dropped early, do not
// run out of the 64 handles.
func TestHandles(t *testing.T) {
	inside(t, echo, func(ctx context.Context, run *guest.Run) {
		c := guesthttp.Client(run)
		for i := range 4 * abi.MaxHandles {
			req, err := http.NewRequestWithContext(ctx, []string{"GET", "HEAD"}[i%2], "https://api.example.org/", nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Do(req)
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if i%4 == 0 {
				_, err = io.Copy(io.Discard, res.Body) // and no Close
			} else {
				err = res.Body.Close()
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestInstall: libraries that use the defaults go through the host too, even one
// that has kept the client.
func TestInstall(t *testing.T) {
	before, kept, client := http.DefaultTransport, http.DefaultClient, *http.DefaultClient
	defer func() { http.DefaultTransport, *http.DefaultClient = before, client }()
	inside(t, echo, func(_ context.Context, run *guest.Run) {
		guesthttp.Install(run)
		for _, c := range []*http.Client{http.DefaultClient, kept, {}} {
			res, err := c.Get("https://api.example.org/x")
			if got := readAll(t, res, err); got != `GET /x  ""` {
				t.Errorf("%s", got)
			}
		}
	})
}

func ExampleClient() {
	collect := func(_ context.Context, run *guest.Run) error {
		res, err := guesthttp.Client(run).Get("https://api.example.org/notes")
		if err != nil {
			return err // EDENIED, EUNAVAIL, … end the run with that cause
		}
		defer res.Body.Close()
		var notes []struct {
			ID string `json:"id"`
		}
		if err := json.NewDecoder(res.Body).Decode(&notes); err != nil {
			return err
		}
		for _, n := range notes {
			if err := run.Emit("notes", n.ID, n); err != nil {
				return err
			}
		}
		return nil
	}
	_ = guest.Connector{Collect: collect}
}
