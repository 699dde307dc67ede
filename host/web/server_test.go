package web_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

func memory(t *testing.T) store.Store {
	t.Helper()
	st, err := badger.OpenMemory(badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// serveServer runs a server until the test ends, or stop is called.
func serveServer(t *testing.T, o web.ServerOptions) (s *web.Server, addr string, stop func()) {
	t.Helper()
	if o.Store == nil {
		o.Store = memory(t)
	}
	if o.Listen == nil {
		o.Listen = []string{"127.0.0.1:0"}
	}
	s, err := web.OpenServer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	ended := false
	stop = func() {
		cancel()
		if !ended {
			ended = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return s, s.Addresses()[0].String(), stop
}

// A reply is what came back, with its body read.
type reply struct {
	*http.Response
	body string
}

func (r reply) code() string {
	var e struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal([]byte(r.body), &e)
	return e.Error
}

// send makes one request over a connection of its own; headers are name, value.
func send(t *testing.T, c net.Conn, method, url, body string, headers ...string) reply {
	t.Helper()
	defer c.Close()
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	q.Close = true
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	if err := q.Write(c); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), q)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res, string(b)}
}

func dial(t *testing.T, network, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestExposure: which options are refused, and that the refusal names what is
// missing.
func TestExposure(t *testing.T) {
	cert, key := certificate(t)
	for _, c := range []struct {
		o    web.ServerOptions
		want string // "" is accepted
	}{
		{web.ServerOptions{Listen: []string{"127.0.0.1:0"}}, ""},
		{web.ServerOptions{Listen: []string{"localhost:0"}}, ""},
		{web.ServerOptions{Listen: []string{"127.0.0.1:0"}, Cert: cert, Key: key}, ""},
		{web.ServerOptions{Listen: []string{"0.0.0.0:0"}}, "set expose"},
		{web.ServerOptions{Listen: []string{":0"}}, "set expose"},
		{web.ServerOptions{Listen: []string{"[::]:0"}}, "set expose"},
		{web.ServerOptions{Listen: []string{"127.0.0.1.example:0"}}, "set expose"},
		{web.ServerOptions{Listen: []string{"127.0.0.1:0", "0.0.0.0:0"}}, "set expose"},
		{web.ServerOptions{Listen: []string{"0.0.0.0:0"}, Cert: cert, Key: key}, "set expose"},
		{web.ServerOptions{Listen: []string{"0.0.0.0:0"}, Expose: true}, "set cert and key"},
		{web.ServerOptions{Listen: []string{"0.0.0.0:0"}, Expose: true, Cert: cert}, "together"},
		{web.ServerOptions{Listen: []string{"0.0.0.0:0"}, Expose: true, Cert: cert, Key: key}, ""},
		{web.ServerOptions{Listen: []string{"0.0.0.0:0"}, Expose: true, Proxies: []string{"10.0.0.1"}}, ""},
		{web.ServerOptions{Listen: []string{"0.0.0.0:0"}, Expose: true, Proxies: []string{"anybody"}}, "proxy"},
		{web.ServerOptions{Listen: []string{"127.0.0.1"}}, "want an address and a port"},
		{web.ServerOptions{Listen: []string{"127.0.0.1:0"}, PublicURL: "sluice.example"}, "public URL"},
		{web.ServerOptions{Listen: []string{"127.0.0.1:0"}, Cert: key, Key: key}, "load certificate"},
	} {
		c.o.Store = memory(t)
		s, err := web.OpenServer(t.Context(), c.o)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.o.Listen, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.o.Listen, err, c.want)
		}
		if err == nil {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOneAddress: hosts that share a store and are reached at one address take each other's sessions, also without TLS.
func TestOneAddress(t *testing.T) {
	const at = "127.0.0.1:7500"
	shared := memory(t)
	one, _, _ := serveServer(t, web.ServerOptions{Store: shared, Hosts: []string{at}})
	_, other, _ := serveServer(t, web.ServerOptions{Store: shared, Hosts: []string{at}})
	link, err := one.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(link.PlainURL, "#")
	own := []string{"Origin", "http://" + at, "Sec-Fetch-Site", "same-origin"}
	r := send(t, dial(t, "tcp", other), "POST", "http://"+at+"/ui/session", `{"token":"`+token+`"}`, own...)
	if r.StatusCode != 200 || len(r.Cookies()) != 1 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	own = append(own, "Cookie", r.Cookies()[0].Name+"="+r.Cookies()[0].Value)
	for _, address := range []string{one.Addresses()[0].String(), other} {
		if r := send(t, dial(t, "tcp", address), "GET", "http://"+at+"/ui/session", "", own...); r.StatusCode != 200 {
			t.Errorf("the session at %s: %d %s", address, r.StatusCode, r.body)
		}
	}
}

// TestLogin follows the owner from the link to the end of the session.
func TestLogin(t *testing.T) {
	var audited []string
	s, addr, _ := serveServer(t, web.ServerOptions{Audit: func(action, outcome, _, address string) {
		audited = append(audited, action+" "+outcome+" "+address)
	}})
	link, err := s.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	plain, token, _ := strings.Cut(link.PlainURL, "#")
	if plain != "http://127.0.0.1:"+port+"/ui/login" || len(token) != 43 ||
		!strings.HasPrefix(link.URL, "http://sluice-") ||
		!strings.HasSuffix(link.URL, ".localhost:"+port+"/ui/login#"+token) {
		t.Fatalf("%+v", link)
	}
	base := "http://" + addr
	own := []string{"Origin", base, "Sec-Fetch-Site", "same-origin"}
	post := func(body string, headers ...string) reply {
		return send(t, dial(t, "tcp", addr), "POST", base+"/ui/session", body, append(headers, own...)...)
	}
	if r := post(`{"token":"wrong"}`); r.StatusCode != 401 || r.code() != "unauthenticated" ||
		r.Header.Get("Set-Cookie") != "" {
		t.Errorf("wrong token: %d %s", r.StatusCode, r.body)
	}
	r := post(`{"token":"` + token + `"}`)
	if r.StatusCode != 200 || len(r.Cookies()) != 1 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	cookie := r.Cookies()[0]
	if cookie.Name != "sluice_"+port || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode ||
		cookie.Path != "/" || cookie.Domain != "" || cookie.Secure || len(cookie.Value) != 43 {
		t.Errorf("cookie %+v", cookie)
	}
	var opened struct{ Principal, CSRFToken, ExpiresAt string }
	if err := json.Unmarshal([]byte(r.body), &opened); err != nil || opened.CSRFToken == "" {
		t.Fatal(r.body)
	}
	if r := post(`{"token":"` + token + `"}`); r.StatusCode != 401 {
		t.Errorf("used token: %d", r.StatusCode)
	}
	session := append([]string{"Cookie", cookie.Name + "=" + cookie.Value}, own...)
	get := func() reply {
		return send(t, dial(t, "tcp", addr), "GET", base+"/ui/session", "", session...)
	}
	if r := get(); r.StatusCode != 200 || !strings.Contains(r.body, `"principal":"owner"`) ||
		!strings.Contains(r.body, opened.CSRFToken) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := send(t, dial(t, "tcp", addr), "DELETE", base+"/ui/session", "", session...); r.StatusCode != 403 {
		t.Errorf("logout without the page token: %d", r.StatusCode)
	}
	if r := send(t, dial(t, "tcp", addr), "DELETE", base+"/ui/session", "",
		append(session, web.HeaderCSRF, opened.CSRFToken)...); r.StatusCode != 204 {
		t.Errorf("logout: %d %s", r.StatusCode, r.body)
	}
	if r := get(); r.StatusCode != 401 {
		t.Errorf("after logout: %d", r.StatusCode)
	}
	// Three attempts are spent; two more, and the address waits.
	post(`{"token":"wrong"}`)
	post(`{"token":"wrong"}`)
	if r := post(`{"token":"wrong"}`); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("sixth attempt: %d", r.StatusCode)
	}
	want := "login.failed refused 127.0.0.1|session.created done 127.0.0.1|login.failed refused 127.0.0.1|session.ended done 127.0.0.1|login.failed refused 127.0.0.1|login.failed refused 127.0.0.1"
	if got := strings.Join(audited, "|"); got != want {
		t.Errorf("audited %s", got)
	}
}

// TestSocket: the local socket is the owner's, for programs, and for nobody that a
// proxy hands through.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.sock")
	_, _, stop := serveServer(t, web.ServerOptions{Socket: path})
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatal(fi, err)
	}
	ask := func(method string, headers ...string) reply {
		return send(t, dial(t, "unix", path), method, "http://sluice/ui/login-link", "", headers...)
	}
	r := ask("POST")
	if r.StatusCode != 201 || !strings.Contains(r.body, "/ui/login#") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	for _, h := range []string{"Origin", "Sec-Fetch-Site", "Cookie", "X-Forwarded-For", "Forwarded", "Via",
		"X-Forwarded-Host", "X-Real-Ip"} {
		if r := ask("POST", h, "x"); r.StatusCode != 403 || r.code() != "origin_not_allowed" {
			t.Errorf("with %s: %d %s", h, r.StatusCode, r.body)
		}
	}
	if r := ask("POST", "Authorization", "Bearer x"); r.StatusCode != 401 {
		t.Errorf("with a bad key: %d", r.StatusCode)
	}
	if _, err := web.OpenServer(t.Context(),
		web.ServerOptions{Store: memory(t), Listen: []string{"127.0.0.1:0"}, Socket: path}); err == nil ||
		!strings.Contains(err.Error(), "in use") {
		t.Errorf("second server: %v", err)
	}
	stop()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	// What a dead process left is replaced; what is no socket is not.
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	_, _, stop = serveServer(t, web.ServerOptions{Socket: path})
	if r := ask("POST"); r.StatusCode != 201 {
		t.Errorf("%d", r.StatusCode)
	}
	stop()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := web.OpenServer(t.Context(),
		web.ServerOptions{Store: memory(t), Listen: []string{"127.0.0.1:0"}, Socket: path}); err == nil {
		t.Error("a file was replaced by a socket")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file holds %q", b)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".s*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestHealth: without a credential, and without reasons.
func TestHealth(t *testing.T) {
	ready := map[string]error{"store": nil, "sandbox": nil}
	for _, open := range []bool{false, true} {
		_, addr, _ := serveServer(t, web.ServerOptions{
			Ready:       func(context.Context) map[string]error { return ready },
			Metrics:     func(w io.Writer) error { _, err := io.WriteString(w, "sluice_up 1\n"); return err },
			MetricsOpen: open,
		})
		get := func(path string) reply { return send(t, dial(t, "tcp", addr), "GET", "http://"+addr+path, "") }
		if r := get("/healthz"); r.StatusCode != 200 || r.body != `{"status":"ok"}` {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		delete(ready, "scheduler")
		if r := get("/readyz"); r.StatusCode != 200 || r.body != `{"checks":{"sandbox":"ok","store":"ok"},"status":"ok"}` {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		ready["scheduler"] = errors.New("stopped at /home/anna")
		if r := get("/readyz"); r.StatusCode != 503 || !strings.Contains(r.body, `"scheduler":"failed"`) ||
			strings.Contains(r.body, "anna") {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		if r := get("/"); r.StatusCode != 302 || r.Header.Get("Location") != "/ui/" {
			t.Errorf("%d %s", r.StatusCode, r.Header.Get("Location"))
		}
		if r := get("/metrics"); open != (r.StatusCode == 200 && r.body == "sluice_up 1\n") || !open && r.StatusCode != 401 {
			t.Errorf("open %v: %d %s", open, r.StatusCode, r.body)
		}
	}
}

// TestTLS: the cookie is bound to the host, and HSTS is sent.
func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	s, addr, _ := serveServer(t, web.ServerOptions{Cert: cert, Key: key, PublicURL: "https://sluice.example"})
	link, err := s.LoginLink(t.Context())
	if err != nil || !strings.HasPrefix(link.URL, "https://sluice.example/ui/login#") || link.PlainURL != "" {
		t.Fatal(link, err)
	}
	_, token, _ := strings.Cut(link.URL, "#")
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, ServerName: "sluice.example", NextProtos: []string{"h2", "http/1.1"}}) // #nosec G402 -- made by the test
	if err != nil {
		t.Fatal(err)
	}
	r := send(t, c, "POST", "https://sluice.example/ui/session", `{"token":"`+token+`"}`, "Origin",
		"https://sluice.example")
	if r.StatusCode != 200 || len(r.Cookies()) != 1 || r.Cookies()[0].Name != "__Host-sluice" || !r.Cookies()[0].Secure {
		t.Errorf("%d %s %v", r.StatusCode, r.body, r.Cookies())
	}
	if r.Header.Get("Strict-Transport-Security") == "" {
		t.Error("no HSTS")
	}
}

// A certificate that was renewed is in use without a restart; files that do not fit
// each other, as in the moment between the two, change nothing.
func TestCertificateRenewed(t *testing.T) {
	cert, key := certificate(t)
	_, addr, _ := serveServer(t, web.ServerOptions{Cert: cert, Key: key, PublicURL: "https://sluice.example"})
	inUse := func() []byte {
		t.Helper()
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, ServerName: "sluice.example"}) // #nosec G402 -- made by the test
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Raw
	}
	first := inUse()
	later := time.Now()
	move := func(from, to string) {
		t.Helper()
		later = later.Add(time.Second) // also where the file system counts whole seconds
		for _, err := range []error{os.Chtimes(from, later, later), os.Rename(from, to)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	newCert, newKey := certificate(t)
	move(newCert, cert)
	for range 2 {
		if !bytes.Equal(inUse(), first) {
			t.Error("a certificate without its key is in use")
		}
	}
	move(newKey, key)
	if bytes.Equal(inUse(), first) {
		t.Error("the old certificate is in use still")
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(inUse(), first) {
		t.Error("a certificate whose file is gone was dropped")
	}
}

// TestConnections: so many of one address, and no more.
func TestConnections(t *testing.T) {
	_, addr, _ := serveServer(t, web.ServerOptions{PerAddress: 3, Connections: 100})
	var held []net.Conn
	for range 3 {
		c := dial(t, "tcp", addr)
		defer c.Close()
		_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
		if _, err := c.Read(make([]byte, 1)); err != nil { // it was accepted
			t.Fatal(err)
		}
		held = append(held, c)
	}
	over := dial(t, "tcp", addr)
	res, err := http.ReadResponse(bufio.NewReader(over), nil)
	if err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
		t.Fatal(res, err)
	}
	var e map[string]any
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil || e["error"] != "rate_limited" {
		t.Error(e, err)
	}
	_ = held[0].Close()
	for range 100 { // the server learns of it when it reads
		c := dial(t, "tcp", addr)
		if r, err := http.ReadResponse(bufio.NewReader(writing(c, addr)), nil); err == nil && r.StatusCode == 200 {
			_ = c.Close()
			return
		}
		_ = c.Close()
	}
	t.Error("a place that was left stays taken")
}

func writing(c net.Conn, addr string) net.Conn {
	_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr)
	return c
}

// TestShutdown: open streams end first, then the server; mounted routes see
// the owner's keys.
func TestShutdown(t *testing.T) {
	s, addr, stop := serveServer(t, web.ServerOptions{Mount: []func(*web.App){func(a *web.App) {
		a.Add(web.Route{Method: "GET", Path: "/v1/events", Scope: access.RunsRead, Stream: true,
			Handle: func(c *fiber.Ctx) error {
				return web.Stream(c, web.EventStream, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
					_, _ = w.WriteString("data: hello\n\n")
					_ = web.Flush(w, conn)
					<-ctx.Done()
				})
			}})
	}}})
	_, key, err := s.Access().Keys.Create(t.Context(), &access.Principal{ID: access.Owner, Scopes: access.Everything},
		access.NewKey{Name: "k", Scopes: access.All(), Mode: access.Live}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, "tcp", addr)
	defer c.Close()
	_, _ = fmt.Fprintf(c, "GET /v1/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", addr, key)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	stop()
	if b, err := io.ReadAll(res.Body); err != nil || string(b) != "data: hello\n\n" {
		t.Errorf("%q %v: the stream was cut, not ended", b, err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("still listening")
	}
}

func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"sluice.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	priv, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: priv}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Connections that never asked anything, as browsers open in advance, make no
// end a failure.
func TestShutdownOfSilentConnections(t *testing.T) {
	_, addr, stop := serveServer(t, web.ServerOptions{})
	for range 4 {
		dial(t, "tcp", addr)
	}
	dial(t, "tcp", addr) // the others are accepted by the time that this one is in the queue
	stop()
}

// An App that is shut down before, or while, it begins to serve ends.
func TestShutdownBeforeServe(t *testing.T) {
	for range 200 {
		app := web.New(web.Options{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- app.Serve(l) }()
		if err := app.Shutdown(time.Minute); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("still serving")
		}
	}
}
