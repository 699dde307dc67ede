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
	// maxUploads are read at one time: each is held in memory whole.
	maxUploads = 4
)

// Options are what an App needs.
type Options struct {
	Access *access.Access
	Log    *slog.Logger // nil: discarded
	// Hosts are the values of the Host header that are answered, in lower
	// case, with the port unless it is the scheme's own. None are needed at the local
	// socket.
	Hosts []string
	// Proxies terminate TLS for us; X-Forwarded-For and -Proto of these alone are
	// believed.
	Proxies []netip.Prefix
	// Assistants say who presents a token of theirs; nil: there are none.
	Assistants Assistants
	// ErrorPage shows a refusal to a person, for routes with Page; nil: as JSON.
	ErrorPage func(c *fiber.Ctx, p *Problem) error
	// Observe is told of every answer, for metrics; nil: nobody. The route is a
	// template, or "" if there is none that exists.
	Observe func(method, route string, status int, took time.Duration)
	// Denied is told of every request whose key lacks the scope; nil: nobody.
	Denied func(who host.Principal, scope string)
	Now    func() time.Time // nil: time.Now
}

// Assistants are those who may come in by routes for assistants. What they refuse is one of
// the errors of host/access.
type Assistants interface {
	AuthenticateAssistant(token string) (name string, err error)
	KnownAssistant(name string) error
}

// An App is the routes and what stands before them. Add routes, then use it; it
// may then be used concurrently.
type App struct {
	o      Options
	hosts  map[string]bool
	fiber  *fiber.App
	routes []Route
	roots  map[string]bool // first segments below /v1
	built  atomic.Bool     // the table is closed
	ready  sync.Once       // of build: whoever serves waits until it is done

	listeners listeners
	streams   streams
	uploads   chan struct{} // a token for each that is in memory
	sockets   atomic.Int64  // that are open
	draining  atomic.Bool   // nothing is changed any more
}

// New makes an App without routes.
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
			a.listeners.silent(c, true)
		case fasthttp.StateIdle:
			_ = c.SetWriteDeadline(time.Time{}) // that of leave was for one answer
		case fasthttp.StateClosed:
			a.listeners.silent(c, false)
			a.streams.start(c, nil) // it lost its connection before it had it, and learns so
		}
	}
	a.fiber.Server().KeepHijackedConns = true // streams and sockets close theirs
	a.fiber.Use(a.enter)
	return a
}

// Access returns who may do what here, for those who mount routes.
func (a *App) Access() *access.Access { return a.o.Access }

// Fiber returns the application underneath, for a test's Test and for its Server. The
// table of routes is closed by it.
func (a *App) Fiber() *fiber.App {
	a.ready.Do(a.build)
	return a.fiber
}

// Serve answers on a listener until Shutdown, which closes it. Several may be
// served at once; after Shutdown it returns at once.
func (a *App) Serve(l net.Listener) error {
	l = &closedOnce{Listener: l}
	if !a.listeners.add(l) {
		return l.Close()
	}
	defer a.listeners.served.Done()
	return a.Fiber().Server().Serve(l)
}

// Drain refuses with 503 every request that would change something, from now on.
// Reads and streams go on.
func (a *App) Drain() { a.draining.Store(true) }

// EndStreams refuses new streams with 503, ends those that there are, and waits
// for them, or until the time is over. Shutdown comes after it.
func (a *App) EndStreams(timeout time.Duration) { a.streams.end(timeout) }

// Shutdown stops listening and waits until requests are answered, or the time is
// over. Then Context ends.
func (a *App) Shutdown(timeout time.Duration) error {
	defer a.streams.stop()
	a.listeners.close()
	a.listeners.served.Wait() // or the server underneath, which looks every 100 ms, sees them as open
	return a.Fiber().ShutdownWithTimeout(timeout)
}

// quiet takes what fasthttp says of connections, which clients can make it say
// as often as they like.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("http", slog.String("said", fmt.Sprintf(format, args...)))
}
