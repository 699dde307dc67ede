package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/access"
)

// sweepEvery is how often expired documents are deleted: sessions, login tokens, stored answers.
const sweepEvery = 10 * time.Minute

// A Server serves one store. It is opened and served once.
type Server struct {
	o       ServerOptions
	c       parsedOptions
	access  *access.Access
	app     *App
	private string // host name of this installation only

	listeners []net.Listener
	open      connections
	closing   sync.Once
}

// OpenServer checks the options, opens the listeners and adds the routes. Nothing is answered
// before Serve. An error says which setting is wrong.
func OpenServer(ctx context.Context, o ServerOptions) (*Server, error) {
	s := &Server{o: o, open: connections{byAddress: map[netip.Addr]int{}}}
	var err error
	if s.c, err = s.o.check(); err != nil {
		return nil, &OptionsError{err}
	}
	if s.access, err = access.Open(ctx, access.Options{Store: o.Store, Now: s.o.Now, Rates: o.Rates}); err != nil {
		return nil, err
	}
	if s.private, err = access.PrivateHost(ctx, o.Store); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.app = New(Options{
		Access: s.access, Log: s.o.Log, Hosts: s.o.hosts(s.c, s.private, s.Addresses()), Proxies: s.c.proxies,
		ErrorPage: o.ErrorPage, Observe: o.Observe, Denied: o.Denied, Assistants: o.Assistants, Now: s.o.Now,
	})
	s.routes()
	for _, mount := range o.Mount {
		mount(s.app)
	}
	return s, nil
}

// App returns the App, for routes.
func (s *Server) App() *App { return s.app }

// Access returns the access control.
func (s *Server) Access() *access.Access { return s.access }

// Addresses returns the listeners' addresses, with the actual ports.
func (s *Server) Addresses() []net.Addr {
	list := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		list[i] = l.Addr()
	}
	return list
}

// Grace bounds the shutdown of streams, and then that of requests.
const Grace = 5 * time.Second

// Serve answers until ctx ends, shuts down (streams, then requests) and returns nil, or returns the
// error that ended it.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	failed := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		running.Go(func() { failed <- s.app.Serve(l) })
	}
	running.Go(func() { s.sweep(ctx) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	}
	cancel()
	err = errors.Join(err, s.Shutdown())
	running.Wait()
	return err
}

// Drain refuses changes from now on; reads and streams continue until Shutdown.
func (s *Server) Drain() { s.app.Drain() }

// Shutdown refuses new streams, ends the open ones, stops listening and lets requests finish. Serve
// calls it; a Server that is never served needs it.
func (s *Server) Shutdown() (err error) {
	s.closing.Do(func() {
		s.app.EndStreams(Grace)
		err = s.app.Shutdown(Grace)
		s.closeListeners()
		if s.o.Socket != "" {
			_ = os.Remove(s.o.Socket)
		}
	})
	return err
}

func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.o.Store.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.o.Log.Warn("expired documents were not deleted", slog.String("error", err.Error()))
			}
		}
	}
}

// A Login is one login token as two links, of which only one can be used, once.
type Login struct {
	// URL has the public name, or this installation's private host name.
	URL string `json:"url"`
	// PlainURL has the address, for systems that do not resolve *.localhost; it is "" with a public
	// name.
	PlainURL  string    `json:"plainUrl,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// LoginLink makes a login token.
func (s *Server) LoginLink(ctx context.Context) (Login, error) {
	token, err := s.access.Sessions.NewLogin(ctx)
	if err != nil {
		return Login{}, err
	}
	l := Login{ExpiresAt: s.o.Now().Add(access.LoginLife).UTC().Truncate(time.Millisecond)}
	tail := "/ui/login#" + token
	if s.c.public != nil {
		l.URL = s.c.public.Scheme + "://" + s.c.public.Host + tail
		return l, nil
	}
	scheme := "http://"
	if s.c.tls {
		scheme = "https://"
	}
	for _, at := range s.Addresses() {
		tcp, ok := at.(*net.TCPAddr)
		if !ok {
			continue
		}
		plain := tcp.IP.String()
		if tcp.IP.IsUnspecified() {
			plain = "127.0.0.1"
		}
		port := strconv.Itoa(tcp.Port)
		l.URL, l.PlainURL = scheme+net.JoinHostPort(s.private, port)+tail, scheme+net.JoinHostPort(plain, port)+tail
		break
	}
	return l, nil
}
