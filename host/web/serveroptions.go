package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// An OptionsError reports an invalid ServerOptions.
type OptionsError struct{ Err error }

func (e *OptionsError) Error() string { return e.Err.Error() }
func (e *OptionsError) Unwrap() error { return e.Err }

// Default limits of open connections.
const (
	DefaultPerAddress  = 64
	DefaultConnections = 4096
)

// DefaultListen is the default listen address.
const DefaultListen = "127.0.0.1:7373"

// ServerOptions configure a Server.
type ServerOptions struct {
	Store store.Documents
	Log   *slog.Logger // nil: discarded

	// Listen lists TCP addresses; empty means DefaultListen.
	Listen []string
	// Expose allows addresses other than loopback.
	Expose bool
	// Cert and Key are PEM files; with them every address uses TLS.
	Cert, Key string
	// Proxies lists addresses or prefixes of proxies that terminate TLS.
	Proxies []string
	// PublicURL is the server's external address, such as https://sluice.example.
	PublicURL string
	// Hosts lists further accepted host names, with a port unless it is the scheme's default.
	Hosts []string
	// Socket is the path of the local socket, or "" for none. Whoever can open it counts as the
	// owner, so it has mode 0600, and no proxy may be put in front of it.
	Socket string
	// Local is a listener inside this process whose peers count as the owner; it may be nil. With
	// it, and without Listen, there are no TCP addresses.
	Local net.Listener

	// Mount adds routes.
	Mount []func(*App)
	// Ready returns the readiness checks by name; if it is nil, only the store is checked. It may
	// take a second or two.
	Ready func(context.Context) map[string]error
	// Metrics writes the Prometheus text; nil: there is no such route.
	Metrics func(io.Writer) error
	// MetricsOpen serves metrics without a credential if all addresses are loopback.
	MetricsOpen bool
	// Audit receives logins; it may be nil. outcome is done or refused.
	Audit func(action, outcome, requestID, address string)
	// Assistants authenticates assistants; nil: there are none.
	Assistants Assistants
	// Denied receives requests whose key lacks the scope; it may be nil.
	Denied    func(who host.Principal, scope string)
	ErrorPage func(*fiber.Ctx, *Problem) error
	Observe   func(method, route string, status int, took time.Duration)

	Rates access.Rates
	// Limits of open connections, per address and in total; 0 is DefaultPerAddress and
	// DefaultConnections. Proxies and the local socket count only towards the total.
	PerAddress, Connections int
	Now                     func() time.Time // nil: time.Now
}

// parsedOptions holds the parsed ServerOptions.
type parsedOptions struct {
	proxies []netip.Prefix
	public  *url.URL
	tls     bool
}

func (o *ServerOptions) check() (parsedOptions, error) {
	var c parsedOptions
	if len(o.Listen) == 0 && o.Local == nil {
		o.Listen = []string{DefaultListen}
	}
	if o.PerAddress <= 0 {
		o.PerAddress = DefaultPerAddress
	}
	if o.Connections <= 0 {
		o.Connections = DefaultConnections
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if (o.Cert == "") != (o.Key == "") {
		return c, errors.New("a certificate and its key are needed together")
	}
	c.tls = o.Cert != ""
	for _, s := range o.Proxies {
		p, err := prefix(s)
		if err != nil {
			return c, err
		}
		c.proxies = append(c.proxies, p)
	}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" && u.Path != "/" ||
			u.RawQuery != "" || u.User != nil {
			return c, errors.New("the public URL must be http:// or https:// and a host, such as https://sluice.example")
		}
		c.public = u
	}
	for _, at := range o.Listen {
		if err := o.exposed(at, c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// exposed refuses an address that others can reach, unless that is wanted and protected.
func (o *ServerOptions) exposed(at string, c parsedOptions) error {
	host, port, err := net.SplitHostPort(at)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("listen address %q: want an address and a port, such as %s", at, DefaultListen)
	}
	switch {
	case loopback(host):
		return nil
	case !o.Expose:
		return fmt.Errorf("listen address %s can be reached by others: set expose to allow that", at)
	case !c.tls && len(c.proxies) == 0:
		return fmt.Errorf(
			"listen address %s can be reached by others: set cert and key, or list the proxies that terminate TLS", at)
	}
	return nil
}

// loopback reports whether a host can only be this machine. A name other than localhost can be
// anything.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

func prefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), nil
	}
	at, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("proxy %q: want an address or a prefix, such as 10.0.0.5 or 10.0.0.0/24", s)
	}
	return netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()), nil
}

// hosts returns the accepted values of Host for the ports of the listeners.
func (o *ServerOptions) hosts(c parsedOptions, private string, at []net.Addr) []string {
	var list []string
	add := func(host string, port int) {
		list = append(list, net.JoinHostPort(host, strconv.Itoa(port)))
		if c.tls && port == 443 || !c.tls && port == 80 {
			if strings.Contains(host, ":") {
				host = "[" + host + "]"
			}
			list = append(list, host)
		}
	}
	for _, a := range at {
		tcp, ok := a.(*net.TCPAddr)
		if !ok {
			continue
		}
		for _, host := range []string{"127.0.0.1", "localhost", "::1", private} {
			add(host, tcp.Port)
		}
		if !tcp.IP.IsUnspecified() && !tcp.IP.IsLoopback() {
			add(tcp.IP.String(), tcp.Port) // an IP address cannot be rebound
		}
	}
	if c.public != nil {
		list = append(list, c.public.Host)
	}
	return append(list, o.Hosts...)
}
