package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A site is an App on a real socket, with keys and a session.
type site struct {
	t      *testing.T
	app    *web.App
	access *access.Access
	store  store.Store
	addr   string
	log    *lines
	key    string // with every scope
	reader string // with runs:read
	login  access.Session
	clock  *clock
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// lines is a log that tests read.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func serve(t *testing.T, change func(*web.Options), routes ...web.Route) *site {
	t.Helper()
	s := &site{t: t, log: &lines{}, clock: &clock{at: time.Now()}}
	st, err := badger.OpenMemory(badger.Options{Small: true, Now: s.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	ctx := context.Background()
	s.store = st
	if s.access, err = access.Open(ctx, access.Options{Store: st, Now: s.clock.now}); err != nil {
		t.Fatal(err)
	}
	owner := &access.Principal{ID: access.Owner, Scopes: access.Everything}
	for _, k := range []struct {
		to     *string
		scopes []access.Scope
	}{{&s.key, access.All()}, {&s.reader, []access.Scope{access.RunsRead}}} {
		if _, *k.to, err = s.access.Keys.Create(ctx, owner, access.NewKey{Name: "k", Scopes: k.scopes, Mode: access.Live},
			nil); err != nil {
			t.Fatal(err)
		}
	}
	token, err := s.access.Sessions.NewLogin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s.login, err = s.access.Sessions.Login(ctx, token, ""); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	_, port, _ := net.SplitHostPort(s.addr)
	o := web.Options{Access: s.access, Log: slog.New(slog.NewTextHandler(s.log, nil)), Now: s.clock.now,
		Hosts: []string{s.addr, "localhost:" + port, "[::1]:" + port, "sluice-abcdefgh.localhost:" + port}}
	if change != nil {
		change(&o)
	}
	s.app = web.New(o)
	s.app.Add(routes...)
	done := make(chan error, 1)
	go func() { done <- s.app.Serve(l) }()
	t.Cleanup(func() {
		s.app.EndStreams(time.Minute)
		if err := errors.Join(s.app.Shutdown(time.Minute), <-done); err != nil {
			t.Error(err)
		}
	})
	return s
}

// An answer is what came back.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Error  struct {
		Error   string
		Message string
		Details map[string]any
	}
}

// raw sends bytes over a connection of its own and returns the answers to all
// requests in them, until the server closes or has nothing more to say.
func (s *site) raw(request string) []answer {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	go func() {
		_, _ = io.WriteString(c, request)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	method, _, _ := strings.Cut(request, " ")
	var all []answer
	for r := bufio.NewReader(c); ; {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return all
		}
		all = append(all, s.read(res))
	}
}

func (s *site) read(res *http.Response) answer {
	s.t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{Status: res.StatusCode, Header: res.Header, Body: string(b)}
	if res.StatusCode >= 400 && len(b) > 0 {
		d := json.NewDecoder(strings.NewReader(a.Body))
		d.DisallowUnknownFields()
		if err := d.Decode(&a.Error); err != nil || a.Error.Error == "" || a.Error.Message == "" {
			s.t.Errorf("%d is no error envelope: %q %v", res.StatusCode, a.Body, err)
		}
	}
	return a
}

// do sends one request; headers are "Name: value".
func (s *site) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	all := s.raw(s.request(method, path, body, headers...))
	if len(all) != 1 {
		s.t.Fatalf("%s %s: %d answers", method, path, len(all))
	}
	return all[0]
}

func (s *site) request(method, path, body string, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, path)
	if !strings.Contains(strings.Join(headers, "\n"), "Host: ") {
		fmt.Fprintf(&b, "Host: %s\r\n", s.addr)
	}
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
		if !strings.Contains(strings.Join(headers, "\n"), "Content-Type: ") {
			b.WriteString("Content-Type: application/json\r\n")
		}
	}
	return b.String() + "\r\n" + body
}

func (s *site) bearer() string { return "Authorization: Bearer " + s.key }

func (s *site) cookie() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return "Cookie: sluice_" + port + "=" + s.login.Cookie
}

func ok(c *fiber.Ctx) error { return web.JSON(c, 200, map[string]string{"ok": "yes"}) }

func (a answer) is(t *testing.T, what string, status int, code string) {
	t.Helper()
	if a.Status != status || a.Error.Error != code {
		t.Errorf("%s: %d %s, want %d %s (%s)", what, a.Status, a.Error.Error, status, code, a.Body)
	}
}
