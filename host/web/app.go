// Package web is how HTTP is spoken here: which requests are let in, in which
// order they are checked, how bodies, parameters and cursors are read, and how
// answers and refusals look. Routes live in host/api and dashboard; they are
// added to an App with what they need, and get requests that have passed.
//
// Everything a request holds is hostile, and everything that a *fiber.Ctx returns
// is a view of a buffer that the next request overwrites. What this package
// returns is copied; what a handler takes from the Ctx itself is not.
//
// Fiber's BodyParser, Format, Hostname, Protocol, IP, session, csrf, cache, proxy
// and timeout functions are not used, here or in routes.
package web

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
)

// Bounds of requests, in bytes.
const (
	MaxBody   = 1 << 20
	MaxUpload = 64 << 20
	maxHeader = 16 << 10
	// maxUploads bounds concurrent uploads, each of which is in memory as a whole.
	maxUploads = 4
)

// Options configure an App.
type Options struct {
	Access *access.Access
	Log    *slog.Logger // nil: discarded
	// Hosts are the accepted values of the Host header, in lower case, with the port unless it is
	// the scheme's default. The local socket needs none.
	Hosts []string
	// Proxies terminate TLS for this server. X-Forwarded-For and -Proto are trusted only from them.
	Proxies []netip.Prefix
	// Assistants authenticates assistants; nil: there are none.
	Assistants Assistants
	// ErrorPage shows a refusal to a person, for routes with Page; nil: answer with JSON.
	ErrorPage func(c *fiber.Ctx, p *Problem) error
	// Observe receives every answer, for metrics; it may be nil. The route is a template, or "" if
	// none matched.
	Observe func(method, route string, status int, took time.Duration)
	// Denied receives every request whose key lacks the scope; it may be nil.
	Denied func(who host.Principal, scope string)
	Now    func() time.Time // nil: time.Now
}

// Assistants authenticates assistants at the routes for them. Its errors are those of host/access.
type Assistants interface {
	AuthenticateAssistant(ctx context.Context, token string) (name string, err error)
	KnownAssistant(ctx context.Context, name string) error
}

// An App holds the routes and the checks in front of them. Once all routes are added it is safe for
// concurrent use.
type App struct {
	o      Options
	hosts  map[string]bool
	fiber  *fiber.App
	routes []Route
	roots  map[string]bool // first path segments below /v1
	built  atomic.Bool     // no more routes may be added
	ready  sync.Once       // guards build

	listeners listeners
	streams   streams
	uploads   chan struct{} // one entry for each upload in memory
	sockets   atomic.Int64  // open sockets
	draining  atomic.Bool   // changes are refused
}

// New returns an App without routes.
func New(o Options) *App {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &App{o: o, hosts: map[string]bool{}, roots: map[string]bool{}, uploads: make(chan struct{}, maxUploads)}
	for _, h := range o.Hosts {
		a.hosts[strings.ToLower(h)] = true
	}
	a.streams.init()
	a.fiber = fiber.New(fiber.Config{
		CaseSensitive:                true,
		StrictRouting:                true,
		UnescapePath:                 false,
		Immutable:                    false,
		ReadTimeout:                  60 * time.Second,
		WriteTimeout:                 0,
		IdleTimeout:                  60 * time.Second,
		ReadBufferSize:               maxHeader,
		StreamRequestBody:            true,
		BodyLimit:                    MaxUpload,
		DisableStartupMessage:        true,
		EnableTrustedProxyCheck:      true,
		DisablePreParseMultipartForm: true,
		ErrorHandler:                 a.frameworkError,
	})
	a.fiber.Server().Logger = quiet{o.Log}
	a.fiber.Server().ExpectHandler = expectContinue
	a.fiber.Server().ConnState = func(c net.Conn, s fasthttp.ConnState) {
		switch s {
		case fasthttp.StateNew:
			a.listeners.setSilent(c, true)
		case fasthttp.StateIdle:
			_ = c.SetWriteDeadline(time.Time{}) // the deadline set by leave was for one answer
		case fasthttp.StateClosed:
			a.listeners.setSilent(c, false)
			a.streams.start(c, nil) // the connection was lost before the stream got it; tell the stream
		}
	}
	a.fiber.Server().KeepHijackedConns = true // streams and sockets close their connections
	a.fiber.Use(a.enter)
	return a
}

// Access returns the access control, for those who mount routes.
func (a *App) Access() *access.Access { return a.o.Access }

// Fiber returns the underlying application, for Test and Server. No routes may be added afterwards.
func (a *App) Fiber() *fiber.App {
	a.ready.Do(a.build)
	return a.fiber
}

// Serve answers on a listener until Shutdown closes it. Several listeners may be served at once.
// After Shutdown it returns at once.
func (a *App) Serve(l net.Listener) error {
	l = &closedOnce{Listener: l}
	if !a.listeners.add(l) {
		return l.Close()
	}
	defer a.listeners.served.Done()
	return a.Fiber().Server().Serve(l)
}

// Drain refuses, from now on, every request that would change something with 503. Reads and streams
// continue.
func (a *App) Drain() { a.draining.Store(true) }

// EndStreams refuses new streams with 503, ends the open ones and waits for them, at most for
// timeout. Shutdown follows it.
func (a *App) EndStreams(timeout time.Duration) { a.streams.end(timeout) }

// Shutdown stops listening and waits until requests are answered, at most for timeout. Then Context
// ends.
func (a *App) Shutdown(timeout time.Duration) error {
	defer a.streams.stop()
	a.listeners.close()
	a.listeners.served.Wait() // otherwise the server, which polls every 100 ms, counts them as open
	return a.Fiber().ShutdownWithTimeout(timeout)
}

// quiet logs fasthttp's messages about connections at debug level, since clients can cause any
// number of them.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("http", slog.String("said", fmt.Sprintf(format, args...)))
}
