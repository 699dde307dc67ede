package web

import (
	"bytes"
	"context"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
)

// routes adds the routes of the server itself.
func (s *Server) routes() {
	s.app.Add(
		Route{Method: "GET", Path: "/", Open: true, Handle: func(c *fiber.Ctx) error { return c.Redirect("/ui/") }},
		Route{Method: "GET", Path: "/ui", Open: true, Handle: func(c *fiber.Ctx) error { return c.Redirect("/ui/") }},
		Route{Method: "GET", Path: "/healthz", Open: true, Handle: func(c *fiber.Ctx) error {
			return JSON(c, fiber.StatusOK, map[string]string{"status": "ok"})
		}},
		Route{Method: "GET", Path: "/readyz", Open: true, Handle: s.ready},
		Route{Method: "POST", Path: "/ui/session", Open: true, Handle: s.login},
		Route{Method: "GET", Path: "/ui/session", Owner: true, Handle: session},
		Route{Method: "DELETE", Path: "/ui/session", Owner: true, Handle: s.logout},
		Route{Method: "POST", Path: "/ui/login-link", Owner: true, Handle: s.link},
	)
	if s.o.Metrics == nil {
		return
	}
	metrics := Route{Method: "GET", Path: "/metrics", Scope: access.MetricsRead, Handle: s.metrics}
	if s.o.MetricsOpen && s.local() {
		metrics.Scope, metrics.Open = "", true
	}
	s.app.Add(metrics)
}

// local reports whether nobody else can reach the server.
func (s *Server) local() bool {
	for _, at := range s.Addresses() {
		if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			return false
		}
	}
	return len(s.c.proxies) == 0
}

// ready answers with the name of every check and ok or failed, without reasons, since it needs no
// credential.
func (s *Server) ready(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(Context(c), 2*time.Second)
	defer cancel()
	found := map[string]error{}
	if s.o.Ready != nil {
		found = s.o.Ready(ctx)
	}
	if _, looked := found["store"]; !looked {
		_, err := access.PrivateHost(ctx, s.o.Store)
		found["store"] = err
	}
	status, word := fiber.StatusOK, "ok"
	checks := map[string]string{}
	for name, err := range found {
		checks[name] = "ok"
		if err != nil {
			checks[name], status, word = "failed", fiber.StatusServiceUnavailable, "failed"
		}
	}
	return JSON(c, status, map[string]any{"status": word, "checks": checks})
}

func (s *Server) metrics(c *fiber.Ctx) error {
	var text bytes.Buffer
	if err := s.o.Metrics(&text); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "text/plain; version=0.0.4; charset=utf-8")
	return c.Send(text.Bytes())
}

// login begins a session.
func (s *Server) login(c *fiber.Ctx) error {
	who := Who(c)
	if err := s.access.Logins.Take(addressName(requestOf(c).address)); err != nil {
		return err
	}
	var q struct {
		Token string `json:"token"`
	}
	if err := Body(c, &q); err != nil {
		return err
	}
	Wipe(c)
	session, err := s.access.Sessions.Login(Context(c), q.Token, sessionCookie(c))
	if err != nil {
		s.audit("login.failed", "refused", who.RequestID, who.Address)
		return err
	}
	s.audit("session.created", "done", who.RequestID, who.Address)
	setSession(c, session)
	return JSON(c, fiber.StatusOK, sessionAnswer{CSRFToken: session.CSRFToken, ExpiresAt: stamp(session.ExpiresAt)})
}

type sessionAnswer struct {
	Principal string `json:"principal,omitempty"`
	CSRFToken string `json:"csrfToken"`
	ExpiresAt string `json:"expiresAt,omitempty"`
}

func session(c *fiber.Ctx) error {
	session := Session(c)
	return JSON(c, fiber.StatusOK, sessionAnswer{Principal: access.Owner, CSRFToken: session.CSRFToken,
		ExpiresAt: stamp(session.ExpiresAt)})
}

func (s *Server) logout(c *fiber.Ctx) error {
	if cookie := Session(c).Cookie; cookie != "" {
		if err := s.access.Sessions.Close(Context(c), cookie); err != nil {
			return err
		}
		who := Who(c)
		s.audit("session.ended", "done", who.RequestID, who.Address)
	}
	dropSession(c)
	return Nothing(c)
}

// link makes another login link, for the command line at the local socket and for the owner's other
// devices.
func (s *Server) link(c *fiber.Ctx) error {
	l, err := s.LoginLink(Context(c))
	if err != nil {
		return err
	}
	who := Who(c)
	s.audit("login.created", "done", who.RequestID, who.Address)
	return JSON(c, fiber.StatusCreated, l)
}

func (s *Server) audit(action, outcome, requestID, address string) {
	if s.o.Audit != nil {
		s.o.Audit(action, outcome, requestID, address)
	}
}

// stamp formats a time in UTC with milliseconds, or "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
