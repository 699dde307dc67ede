package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// An arrival is a request that a real server got.
type arrival struct {
	header http.Header
	body   []byte
}

// server answers https for example.com, and hands over what arrives.
func server(t *testing.T, handler http.HandlerFunc) (port string, conf *tls.Config, arrivals chan arrival) {
	t.Helper()
	arrivals = make(chan arrival, 16)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s, %v", r.Method, err)
		}
		handler(w, r)
		arrivals <- arrival{r.Header.Clone(), b}
	}))
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.URL[strings.LastIndex(s.URL, ":"):], &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, arrivals
}

func here(m *memory, conf *tls.Config) webhook.Options {
	return webhook.Options{
		Store: m, Secrets: m.secrets, Version: "1.2.3", Forbidden: forbidden, AllowLoopback: true,
		Resolver: names{"example.com": {"127.0.0.1"}},
	}.Trust(conf)
}

// What arrives over TLS is what the standard's own library takes, for secrets in
// both forms.
func TestSignature(t *testing.T) {
	for _, given := range []string{"", "an owner's own words"} {
		port, conf, arrivals := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
		m := newMemory()
		h, err := webhook.Open(t.Context(), here(m, conf))
		if err != nil {
			t.Fatal(err)
		}
		_, secret, err := h.Create(t.Context(), "owner",
			webhook.Definition{URL: "https://example.com" + port + "/in?a=b", Events: []string{"run.started"}, Secret: given},
			nil)
		if err != nil {
			t.Fatal(err)
		}
		if given != "" {
			secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(given))
		}
		m.say(m.begin(), "run.started")
		a := <-arrivals
		verifier, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(a.body, a.header); err != nil {
			t.Errorf("%v: %v", a.header, err)
		}
		if err := verifier.Verify(append(a.body, ' '), a.header); err == nil {
			t.Error("a changed body has the same signature")
		}
		var b struct {
			Type, Timestamp string
			Data            timeline.Doc
		}
		if err := json.Unmarshal(a.body, &b); err != nil || b.Type != "run.started" || b.Data.Type != "run.started" ||
			b.Data.Timestamp != b.Timestamp {
			t.Errorf("body %s, %v", a.body, err)
		}
		if got := a.header.Get("User-Agent"); got != "Sluice/1.2.3" {
			t.Errorf("user agent %q", got)
		}
		if got := a.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("content type %q", got)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Plain http reaches this machine when that is configured.
func TestPlainLoopback(t *testing.T) {
	arrived := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} }))
	defer s.Close()
	m := newMemory()
	h, err := webhook.Open(t.Context(), here(m, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, h)
	if _, _, err := h.Create(t.Context(), "owner", webhook.Definition{URL: s.URL, Events: []string{"*"}},
		nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Create(t.Context(), "owner", webhook.Definition{URL: "http://93.184.216.34/", Events: []string{"*"}},
		nil); err == nil {
		t.Error("http to a public address was taken")
	}
	m.say(m.begin(), "run.started")
	<-arrived
}

// turning is a name that leads elsewhere once it was checked.
type turning struct {
	asked atomic.Int32
	then  string
}

func (r *turning) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if r.asked.Add(1) == 1 {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr(r.then)}, nil
}

// The address is checked whenever it is dialled, so a name that turns to this
// machine after its webhook was created reaches nothing.
func TestRebinding(t *testing.T) {
	port, conf, arrivals := server(t, func(http.ResponseWriter, *http.Request) {})
	for _, then := range []string{"127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254"} {
		m := newMemory()
		o := here(m, conf)
		o.AllowLoopback = false
		resolver := &turning{then: then}
		o.Resolver = resolver
		outcome := make(chan string, 4)
		o.Observed = func(s string) { outcome <- s }
		h, err := webhook.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.Create(t.Context(), "owner",
			webhook.Definition{URL: "https://example.com" + port, Events: []string{"*"}}, nil); err != nil {
			t.Fatal(err)
		}
		m.say(m.begin(), "run.started")
		if got := <-outcome; got != "failed" {
			t.Errorf("delivery to %s: %s", then, got)
		}
		if n := resolver.asked.Load(); n != 2 {
			t.Errorf("looked up %d times for one attempt", n-1)
		}
		closed(t, h)
	}
	if len(arrivals) > 0 {
		t.Error("something arrived")
	}
}

// A host that is stopped between its look at an event and the sending of it, until another one may
// deliver, sends nothing: neither is that an attempt, nor is anything lost.
func TestStopped(t *testing.T) {
	for _, moment := range []string{"while the name is looked up", "while the server shows its certificate"} {
		port, conf, arrivals := server(t, func(http.ResponseWriter, *http.Request) {})
		m := newMemory()
		o := here(m, conf)
		var silent atomic.Bool
		var stops, refused atomic.Int32
		stop := func(at string, nth int32) {
			if at == moment && stops.Add(1) == nth {
				silent.Store(true)
			}
		}
		resolver := o.Resolver
		o.Resolver = resolverFunc(func(ctx context.Context, network, host string) ([]netip.Addr, error) {
			stop("while the name is looked up", 2) // the first is of the definition
			return resolver.LookupNetIP(ctx, network, host)
		})
		conf.VerifyConnection = func(tls.ConnectionState) error {
			stop("while the server shows its certificate", 1)
			return nil
		}
		o.Alive = func() error {
			if silent.Load() {
				refused.Add(1)
				return store.ErrSilent
			}
			return nil
		}
		outcome := make(chan string, 4)
		o.Observed = func(s string) { outcome <- s }
		h, err := webhook.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		w, _, err := h.Create(t.Context(), "owner",
			webhook.Definition{URL: "https://example.com" + port, Events: []string{"*"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.say(m.begin(), "run.started")
		for refused.Load() == 0 {
			select {
			case <-arrivals:
				t.Fatalf("%s: something arrived of a host that may have been removed", moment)
			case <-time.After(10 * time.Millisecond):
			}
		}
		if a, err := h.Test(t.Context(), w.ID); !errors.Is(err, store.ErrSilent) {
			t.Errorf("%s: a test: %+v, %v", moment, a, err)
		}
		silent.Store(false)
		<-arrivals
		if got := <-outcome; got != "delivered" {
			t.Errorf("%s: heard of again: %s", moment, got)
		}
		if all, err := h.Deliveries(t.Context(), w.ID); err != nil || len(arrivals) > 0 || len(all) > 1 ||
			len(all) == 1 && all[0].Error != "" {
			t.Errorf("%s: %d more arrived, attempts %+v, %v", moment, len(arrivals), all, err)
		}
		closed(t, h)
	}
}

// resolverFunc is a resolver.
type resolverFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return f(ctx, network, host)
}

// Redirects are not followed, of a long answer 64 KiB are read, and the
// environment's proxies are not used.
func TestAnswers(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	var followed atomic.Bool
	wrote := make(chan error, 1)
	port, conf, arrivals := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/elsewhere":
			followed.Store(true)
		case "/long":
			chunk := make([]byte, 1<<20)
			var err error
			for range 1024 {
				if _, err = w.Write(chunk); err != nil {
					break
				}
			}
			wrote <- err
		}
	})
	m := newMemory()
	o := here(m, conf)
	outcome := make(chan string, 4)
	o.Observed = func(s string) { outcome <- s }
	h, err := webhook.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, h)
	for path, want := range map[string]string{"/redirect": "failed", "/long": "delivered"} {
		w, _, err := h.Create(t.Context(), "owner",
			webhook.Definition{URL: "https://example.com" + port + path, Events: []string{"run.started"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.say(m.begin(), "run.started")
		<-arrivals
		if got := <-outcome; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		if err := h.Delete(t.Context(), w.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-wrote; err == nil {
		t.Error("a gigabyte of answer was read")
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, fmt.Errorf("gone: %w", r.Context().Err())
}

// A server that says nothing has 15 s.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := webhook.PostThrough(t.Context(), silence{}, target)
		if d := time.Since(begun); err == nil || d != 15*time.Second {
			t.Errorf("gave up after %v, %v", d, err)
		}
	})
}
